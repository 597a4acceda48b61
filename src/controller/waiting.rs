//! What blocks a call to EC2, as data: it is waited for, and is no failure of the pass. Pure.

use jiff::Timestamp;

use crate::api::Reason;
use crate::cloud::Class;

/// An answer of EC2 that is waited for, and is no failure of the pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldUp {
    /// For the conditions.
    pub reason: Reason,
    /// The class of EC2's error; `None` for a limit of our own. Decisions read this, never the reason.
    pub class: Option<Class>,
    /// In words.
    pub message: String,
    /// Look again then.
    pub until: Option<Timestamp>,
}

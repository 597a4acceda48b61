//! Waiting is data: what an object waits for, and what blocks a call to EC2. Pure.

use jiff::Timestamp;

use crate::api::Reason;
use crate::cloud::Class;

/// What an object waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// For the conditions.
    pub reason: Reason,
    /// In words.
    pub message: String,
    /// Nothing changes until a person does something.
    pub stalled: bool,
}

impl Waiting {
    /// It will pass by itself.
    pub fn on(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), stalled: false }
    }

    /// It will not pass by itself.
    pub fn stalled(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), stalled: true }
    }
}

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

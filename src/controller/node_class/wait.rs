//! What a NodeClass waits for, besides its faults. Pure.

use crate::api::Reason;
use crate::controller::call_blocked::CallBlocked;

/// What a NodeClass waits for.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum ClassWait {
    /// The finalizer is being added.
    AddingFinalizer,
    /// EC2 could not be read.
    Unread(CallBlocked),
    /// The class is being deleted, and these use it.
    InUse(Vec<String>),
    /// The class is being deleted, and nothing uses it.
    Unused,
}

impl ClassWait {
    /// For the conditions.
    pub fn reason(&self) -> Reason {
        match self {
            Self::AddingFinalizer => Reason::Progressing,
            Self::Unread(blocked) => blocked.reason(),
            Self::InUse(_) => Reason::InUse,
            Self::Unused => Reason::Deleting,
        }
    }

    /// Whether nothing changes until a person does something.
    pub fn is_stalled(&self) -> bool {
        match self {
            Self::InUse(_) => true,
            Self::AddingFinalizer | Self::Unread(_) | Self::Unused => false,
        }
    }
}

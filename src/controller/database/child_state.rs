//! What the conditions of a Node or Volume say, as data for the conditions of its Database. Pure.

use crate::api::Reason;

/// What the conditions of a Node or Volume say, for display in those of its Database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChildState {
    /// It has no conditions yet.
    New,
    /// It is ready, and its controller has not seen the newest spec.
    Outdated,
    /// It is not ready.
    NotReady {
        /// The reason of its condition Ready, if it is one of ours.
        reason: Option<Reason>,
        /// The message of that condition.
        message: String,
    },
    /// It is stalled.
    Stalled {
        /// The reason of its condition Stalled, if it is one of ours.
        reason: Option<Reason>,
        /// The message of that condition.
        message: String,
    },
}

impl ChildState {
    /// The reason that it shows, if it is one of ours.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::New | Self::Outdated => None,
            Self::NotReady { reason, .. } | Self::Stalled { reason, .. } => *reason,
        }
    }
}

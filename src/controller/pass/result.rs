//! How a pass ends: when the object is looked at again, or what went wrong.

use std::error::Error as StdError;
use std::time::Duration;

/// A pass that went wrong; trying again may help.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// Reading failed: nothing was decided.
    #[error("failed to observe")]
    Observe(#[source] Box<dyn StdError + Send + Sync>),
    /// A write failed: what was done before it stands.
    #[error("failed to act")]
    Act(#[source] Box<dyn StdError + Send + Sync>),
    /// The closing status patch failed.
    #[error("failed to write the status")]
    Status(#[source] Box<dyn StdError + Send + Sync>),
    /// Another client wrote the object first: this view was old.
    #[error("the object changed meanwhile")]
    Conflict,
    /// The pass came upon a mistake in Freehold's code, and ended where it was. The other objects go on.
    #[error("the pass panicked, which is a defect of Freehold: {0}")]
    Panicked(String),
    /// The pass took too long and was abandoned.
    #[error("the pass took longer than {0:?}")]
    TimedOut(Duration),
}

/// When the object is looked at again, if nothing wakes it before.
pub type Again = Duration;

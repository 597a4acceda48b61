//! Why the administrator's password is not the one that the spec asks for, as data. Pure.

use crate::api::Reason;

/// Why the password is not the one that the spec asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum RotationWait {
    /// It cannot be rotated.
    Refused(RotationRefusal),
    /// The next one is being generated.
    Preparing,
    /// The engine is being stopped, to begin with the next one.
    Stopping,
    /// The engine is being given the next one.
    Giving,
    /// The database moves to another machine first, what was changed outside Freehold is restored, or its pod
    /// has no address yet.
    Postponed,
}

/// Why the password cannot be rotated.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum RotationRefusal {
    /// The Secret of an adopted database is its user's.
    Adopted,
    /// It is not known whether the engine takes another password.
    CustomEngine,
    /// The Secret of this name is immutable, as an earlier version of Freehold created it.
    Immutable(String),
}

impl RotationWait {
    /// For the conditions.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Refused(_) => Reason::RotationRefused,
            Self::Preparing | Self::Stopping | Self::Giving | Self::Postponed => Reason::Rotating,
        }
    }

    /// Whether nothing changes until a person acts.
    pub fn is_stalled(&self) -> bool {
        matches!(self, Self::Refused(_))
    }
}

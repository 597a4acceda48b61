//! Why the engine does not run with the settings of the spec, though nothing is restarted for them, as data.
//! Pure.

use crate::api::Reason;

/// Why the settings of the spec are not in force.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum ReloadWait {
    /// The engine has not said yet whether it takes them while it runs.
    Asking,
    /// It did not say so: why.
    Unanswered(String),
    /// It is to load them as soon as it sees the file with them.
    Loading,
    /// It rejects them: why.
    Rejected(String),
}

impl ReloadWait {
    /// For the conditions.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Asking | Self::Unanswered(_) | Self::Loading => Reason::ConfigReloading,
            Self::Rejected(_) => Reason::ConfigRejected,
        }
    }

    /// Whether nothing changes until a person acts.
    pub fn is_stalled(&self) -> bool {
        matches!(self, Self::Rejected(_))
    }
}

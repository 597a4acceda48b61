//! Why a Database does not have the data of its backup yet, as data. Pure.

use crate::api::{Reason, SnapshotId};
use crate::controller::restoring::RestoreRefusal;

/// Why a Database does not have the data of its backup yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum RestoreWait {
    /// The backup does not fit, or is none.
    Refused(RestoreRefusal),
    /// The Backup of this name, or the snapshot of this id, is not complete.
    Incomplete(String),
    /// EC2's snapshots were not listed yet.
    FirstSync,
    /// What is restored is being recorded.
    Recording(SnapshotId),
}

impl RestoreWait {
    /// For the conditions.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Refused(_) => Reason::RestoreRefused,
            Self::FirstSync => Reason::AwaitingInventory,
            Self::Incomplete(_) | Self::Recording(_) => Reason::Restoring,
        }
    }

    /// Whether nothing changes until a person acts.
    pub fn is_stalled(&self) -> bool {
        matches!(self, Self::Refused(_))
    }
}

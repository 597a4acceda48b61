//! Why a Database does not have the data of its backup yet, as data. Pure.

use jiff::Timestamp;

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
    /// The backup that is to be restored in place does not fit, or is none: the database has its data.
    RefusedInPlace(RestoreRefusal),
    /// The NodeClass' limit leaves so many GiB too few for another volume beside the one that is retained.
    NoStorage(i32),
    /// A restore in place begins once the database is not paused.
    Paused,
    /// The Volume of this name is being deleted, and its EBS volume retained, for another one.
    Replacing {
        /// The Volume.
        volume: String,
        /// The message of its condition Ready.
        message: Option<String>,
    },
    /// The database goes back to the data that it had: why.
    GoingBack(String),
    /// The retention record of the data that the database had is not there, or is another Database's.
    NoWayBack(String),
    /// The database went back to the data that it had: when, and why.
    WentBack(Timestamp, String),
}

impl RestoreWait {
    /// For the conditions.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Refused(_) | Self::RefusedInPlace(_) => Reason::RestoreRefused,
            Self::FirstSync => Reason::AwaitingInventory,
            Self::NoStorage(_) => Reason::NotPermitted,
            Self::Paused => Reason::Paused,
            Self::NoWayBack(_) => Reason::VolumeLost,
            Self::GoingBack(_) | Self::WentBack(..) => Reason::WentBack,
            Self::Incomplete(_) | Self::Recording(_) | Self::Replacing { .. } => Reason::Restoring,
        }
    }

    /// Whether nothing changes until a person acts.
    pub fn is_stalled(&self) -> bool {
        match self {
            Self::Refused(_)
            | Self::RefusedInPlace(_)
            | Self::NoStorage(_)
            | Self::NoWayBack(_)
            | Self::WentBack(..) => true,
            Self::Incomplete(_)
            | Self::FirstSync
            | Self::Recording(_)
            | Self::Paused
            | Self::Replacing { .. }
            | Self::GoingBack(_) => false,
        }
    }
}

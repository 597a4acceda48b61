//! What a change of the engine behind a backup waits for, as data. Pure.

use jiff::Timestamp;

use crate::api::{Reason, SnapshotId};
use crate::controller::restoring::RestoreRefusal;

/// What a change of the engine behind a backup waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum UpgradeWait {
    /// The Backup of this name is not complete. The engine goes on.
    AwaitingBackup(String),
    /// The Backup of this name, which was to be complete before the engine is stopped, has failed.
    BackupFailed(String),
    /// It is not recorded what the database would go back to; the image that it runs with.
    NothingServed(String),
    /// The change is being recorded.
    Recording,
    /// The engine accepts connections, and the Service is closed to clients still.
    Opening,
    /// The engine is stopped, and the Backup of this name has no snapshot yet; the message of its condition
    /// Complete.
    BackingUp(String, Option<String>),
    /// The database goes back to the engine that it had: why.
    GoingBack(String),
    /// EC2 has not completed the snapshot that the database goes back to.
    AwaitingSnapshot(SnapshotId),
    /// The database cannot go back to the data of this snapshot; why.
    NoWayBack(SnapshotId, RestoreRefusal),
    /// The database went back to the engine that it had.
    WentBack {
        /// When that was decided.
        at: Timestamp,
        /// Why.
        message: String,
        /// Its data is that of the snapshot from before.
        data_restored: bool,
    },
}

impl UpgradeWait {
    /// For the conditions.
    pub fn reason(&self) -> Reason {
        match self {
            Self::AwaitingBackup(_)
            | Self::BackupFailed(_)
            | Self::NothingServed(_)
            | Self::BackingUp(..) => Reason::AwaitingBackup,
            Self::Recording | Self::Opening => Reason::Progressing,
            Self::AwaitingSnapshot(_) => Reason::AwaitingSnapshot,
            Self::NoWayBack(..) => Reason::RestoreRefused,
            Self::GoingBack(_) | Self::WentBack { .. } => Reason::WentBack,
        }
    }

    /// Whether nothing changes until a person acts.
    pub fn is_stalled(&self) -> bool {
        match self {
            Self::BackupFailed(_) | Self::NothingServed(_) | Self::NoWayBack(..) | Self::WentBack { .. } => {
                true
            }
            Self::AwaitingBackup(_)
            | Self::Recording
            | Self::Opening
            | Self::BackingUp(..)
            | Self::GoingBack(_)
            | Self::AwaitingSnapshot(_) => false,
        }
    }
}

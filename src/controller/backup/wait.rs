//! What a Backup waits for: a value with the data of the wait, its reason, and whether a person must act.
//! Pure.
//!
//! The sentences are in `messages`.

use jiff::Timestamp;

use crate::api::{Reason, SnapshotId, VolumeId};
use crate::controller::blocker::Blocker;
use crate::controller::call_blocked::CallBlocked;

/// What a Backup waits for.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum BackupWait {
    /// The finalizer is being added.
    AddingFinalizer,
    /// The first full sync of the EC2 inventory.
    FirstSync,
    /// The Database of this name does not exist.
    NoDatabase(String),
    /// The Database of this name was never Ready.
    NeverReady(String),
    /// The Database of this name has no EBS volume that EC2 shows.
    NoVolume(String),
    /// This EBS volume of a database that is stopped for the Backup is attached still.
    Attached(VolumeId),
    /// The Backup of this name goes first.
    Other(String),
    /// The engine of the Database of this name does not accept connections.
    EngineNotReady(String),
    /// The engine cannot be asked for its checkpoint; why.
    EngineUnreadable(String),
    /// The engine holds the checkpoint of another client, since then by its own time.
    OtherCheckpoint(Timestamp),
    /// The engine of the Database of this name does not have its root on the EBS volume.
    RootElsewhere(String),
    /// The last checkpoint was released before a snapshot had started.
    Pausing,
    /// The file system of the Database of this name has too little free for a checkpoint.
    NearlyFull(String),
    /// The checkpoint is being requested.
    BeginningCheckpoint,
    /// Whether the engine has begun the checkpoint is unconfirmed.
    CheckpointUnconfirmed,
    /// The checkpoint is being released.
    Releasing,
    /// The release of the checkpoint is owed, and the engine cannot be asked; why.
    ReleaseOwed(String),
    /// EC2 did not accept a call about the snapshot; the call is made again later.
    Blocked(CallBlocked),
    /// The snapshot of this EBS volume is being requested.
    Requesting(VolumeId),
    /// Whether EC2 took the snapshot of this EBS volume is unconfirmed.
    InDoubt(VolumeId),
    /// A snapshot was found, and its id is being recorded.
    Recording(SnapshotId),
    /// EC2 does not list the snapshot.
    NotListed(SnapshotId),
    /// The snapshot is being tagged with what it is.
    Tagging(SnapshotId),
    /// The snapshot is not complete yet.
    Pending(SnapshotId),
    /// A BackupSchedule has begun to delete the Backup, and has not: the deletion policy is being set back.
    PuttingPolicyBack,
    /// The Backup is being deleted: other controllers have finalizers on it.
    OtherFinalizers,
    /// The Backup is being deleted: its snapshot stays, if it has one.
    Retained(Option<SnapshotId>),
    /// The Backup is being deleted: the Database of this name is being restored from it.
    InUse(String),
    /// The Backup is being deleted: its snapshot must not be.
    Unsafe(Blocker),
    /// The Backup is being deleted, and so is its snapshot.
    Deleting(SnapshotId),
    /// EC2 shows the snapshot by its id, without the tags of the Backup, which has this UID.
    WithoutTags(SnapshotId, String),
    /// The Backup is being deleted: the absence of its snapshot is not proven yet.
    ProvingAbsence,
    /// The Backup is being deleted: its snapshot is gone.
    Gone,
}

impl BackupWait {
    /// For the conditions.
    pub fn reason(&self) -> Reason {
        match self {
            Self::AddingFinalizer | Self::PuttingPolicyBack => Reason::Progressing,
            Self::FirstSync => Reason::AwaitingInventory,
            Self::NoDatabase(_) | Self::NeverReady(_) => Reason::AwaitingDatabase,
            Self::NoVolume(_) | Self::Attached(_) => Reason::AwaitingVolume,
            Self::Other(_) => Reason::AwaitingBackup,
            Self::EngineNotReady(_) => Reason::EngineStarting,
            Self::EngineUnreadable(_)
            | Self::OtherCheckpoint(_)
            | Self::RootElsewhere(_)
            | Self::Pausing
            | Self::NearlyFull(_)
            | Self::BeginningCheckpoint
            | Self::CheckpointUnconfirmed
            | Self::Releasing
            | Self::ReleaseOwed(_) => Reason::AwaitingCheckpoint,
            Self::Blocked(call_blocked) => call_blocked.reason(),
            Self::InDoubt(_) => Reason::InDoubt,
            Self::Requesting(_)
            | Self::Recording(_)
            | Self::NotListed(_)
            | Self::Tagging(_)
            | Self::Pending(_) => Reason::AwaitingSnapshot,
            Self::WithoutTags(..) => Reason::SnapshotMissing,
            Self::OtherFinalizers
            | Self::Retained(_)
            | Self::InUse(_)
            | Self::Deleting(_)
            | Self::ProvingAbsence
            | Self::Gone => Reason::Deleting,
            Self::Unsafe(blocker) => blocker.reason(),
        }
    }

    /// Whether nothing changes until a person does something.
    pub fn is_stalled(&self) -> bool {
        let is_untagged = matches!(self, Self::Unsafe(Blocker::SnapshotTagMissing { .. }));
        let of_person = matches!(
            self,
            Self::NoDatabase(_) | Self::RootElsewhere(_) | Self::NearlyFull(_) | Self::WithoutTags(..)
        );
        is_untagged || of_person
    }

    /// Whether EC2 takes up to hours for it: a change is then seen within a minute, and not within seconds.
    pub fn takes_long(&self) -> bool {
        matches!(self, Self::Pending(_) | Self::Unsafe(_) | Self::WithoutTags(..))
    }
}

//! Why a Volume that is being deleted is not gone yet. Pure.

use super::creation::Found;
use crate::api::{Reason, SnapshotId, VolumeId};
use crate::controller::blocker::Blocker;

/// Why a Volume that is being deleted is not gone yet.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum DeletionWait {
    /// Other controllers have finalizers on the Volume.
    OtherFinalizers,
    /// The Volume was deleted, and its Database has not decided what becomes of the EBS volume.
    DatabaseRemains,
    /// The claim of this name is not gone yet.
    ClaimRemains(String),
    /// An EBS volume was found, and its id is being recorded.
    Recording(VolumeId, Found),
    /// Several EBS volumes carry the tags of this Volume.
    Several(Vec<VolumeId>),
    /// An unconfirmed attempt is not sent again for a Volume that is being deleted.
    NotResent,
    /// The EBS volume is not detached yet.
    NotDetached(VolumeId),
    /// The EBS volume must not be deleted.
    Unsafe(Blocker),
    /// The EBS volume is being deleted.
    DeletingVolume(VolumeId),
    /// EC2 does not list the EBS volume, whose absence is not proven yet.
    ProvingAbsence(VolumeId),
    /// The EBS volume is retained.
    Retaining {
        /// The EBS volume.
        id: VolumeId,
        /// The PersistentVolume that records it.
        record: String,
    },
    /// The retention record is being deleted, and another follows.
    RecordDeleted {
        /// The EBS volume.
        id: VolumeId,
        /// The PersistentVolume.
        record: String,
    },
    /// The PersistentVolume that should be the retention record is not this Volume's.
    RecordNotOurs {
        /// The EBS volume.
        id: VolumeId,
        /// The PersistentVolume.
        record: String,
        /// The UID of this Volume.
        uid: String,
    },
    /// The EBS volume is gone.
    Gone,
}

/// Why the final snapshot is not complete yet.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum SnapshotWait {
    /// The EBS volume must be detached first.
    NotDetached(VolumeId),
    /// The first full sync of EC2's snapshots.
    FirstSync,
    /// A snapshot was found, and its id is being recorded.
    Recording(SnapshotId),
    /// The snapshot of this EBS volume is being requested.
    Requesting(VolumeId),
    /// The snapshot is not complete yet.
    Pending(SnapshotId),
    /// The snapshot failed.
    Failed {
        /// The snapshot.
        snapshot: SnapshotId,
        /// The EBS volume.
        id: VolumeId,
    },
    /// Whether EC2 took the snapshot of this EBS volume is unconfirmed.
    InDoubt(VolumeId),
    /// EC2 does not list the snapshot.
    NotListed(SnapshotId),
}

impl DeletionWait {
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::OtherFinalizers
            | Self::DatabaseRemains
            | Self::Recording(..)
            | Self::Retaining { .. }
            | Self::RecordDeleted { .. }
            | Self::Gone => Reason::Deleting,
            Self::ClaimRemains(_) | Self::NotDetached(_) => Reason::AwaitingDetach,
            Self::Several(_) | Self::NotResent => Reason::InDoubt,
            Self::Unsafe(blocker) => blocker.reason(),
            Self::DeletingVolume(_) | Self::ProvingAbsence(_) => Reason::AwaitingVolumeDeletion,
            Self::RecordNotOurs { .. } => Reason::NameConflict,
        }
    }
}

impl SnapshotWait {
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::NotDetached(_) => Reason::AwaitingDetach,
            Self::FirstSync
            | Self::Recording(_)
            | Self::Requesting(_)
            | Self::Pending(_)
            | Self::Failed { .. }
            | Self::InDoubt(_)
            | Self::NotListed(_) => Reason::AwaitingSnapshot,
        }
    }
}

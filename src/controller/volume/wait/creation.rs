//! Why a Volume has no EBS volume yet: its creation, or its adoption of a retained one. Pure.

use crate::api::creation::Refusal;
use crate::api::{Reason, VolumeId};
use crate::cloud::VolumeState;
use crate::cloud::quota::Quota;
use crate::controller::creation::judge::Doubt;

/// Where an EBS volume that the status does not name was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It carries the tags of the current attempt.
    ByAttempt,
    /// It carries the tags of the Volume, whose status knows of no attempt.
    ByTags,
    /// The PersistentVolume of the Volume names it.
    ByPersistentVolume,
}

/// Why there is no EBS volume yet.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum CreationWait {
    /// An EBS volume was found, and its id is being recorded.
    Recording(VolumeId, Found),
    /// Several EBS volumes carry the tags of this Volume.
    Several(Vec<VolumeId>),
    /// This quota of the AWS account is reached.
    Quota(Quota),
    /// EC2 throttled the call and created nothing.
    Throttled,
    /// The attempt of this number is unconfirmed, and the identical call is made again.
    Resending(i32),
    /// The attempt is unconfirmed.
    InDoubt {
        /// Its number.
        attempt: i32,
        /// Why the call is not made again now.
        doubt: Doubt,
    },
    /// EC2 refused the attempt for lack of permission.
    Forbidden(Refusal),
    /// EC2 refused the attempt for lack of capacity.
    NoCapacity(Refusal),
    /// EC2 refused the attempt as invalid.
    Invalid(Refusal),
    /// EC2 is being asked for a new EBS volume.
    Requesting {
        /// Its type.
        volume_type: String,
        /// Its size in GiB.
        size: i32,
        /// Its zone.
        zone: String,
    },
    /// EC2 shows the EBS volume in the state creating.
    Creating(VolumeId),
    /// EC2 does not list the new EBS volume yet.
    NotListed(VolumeId),
}

/// Why a retained EBS volume is not adopted yet.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum AdoptionWait {
    /// EC2 does not list the EBS volume with the tags of its retention record.
    NotListed {
        /// The EBS volume.
        id: VolumeId,
        /// The PersistentVolume that records it.
        record: String,
    },
    /// The EBS volume cannot be adopted.
    Refused {
        /// The PersistentVolume that records it.
        record: String,
        /// Why.
        cause: AdoptionRefusal,
    },
    /// The EBS volume is not available.
    NotAvailable {
        /// The EBS volume.
        id: VolumeId,
        /// The state that EC2 shows.
        state: VolumeState,
    },
    /// The adoption is being announced and the EBS volume tagged.
    Adopting(VolumeId),
    /// The EBS volume is being tagged again.
    Tagging(VolumeId),
    /// EC2 does not show the new tags yet.
    TagsNotShown(VolumeId),
    /// The former retention record is being deleted.
    ClosingRecord(VolumeId),
}

/// Why a retained EBS volume cannot be adopted.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum AdoptionRefusal {
    /// The PersistentVolume is no retention record of this namespace.
    NoRecord {
        /// The namespace.
        namespace: String,
    },
    /// The record is not held by the Database of this Volume.
    NotHeld,
    /// Another file system than this one is on it.
    FileSystem(&'static str),
    /// The EBS volume does not carry the tag of this namespace.
    Tag(VolumeId),
    /// The EBS volume is in another zone.
    Zone {
        /// The EBS volume.
        id: VolumeId,
        /// Its zone.
        zone: String,
        /// The zone of the Volume.
        wanted: String,
    },
    /// The EBS volume is larger than the Volume.
    Larger {
        /// The EBS volume.
        id: VolumeId,
        /// Its size in GiB.
        size: i32,
    },
}

impl CreationWait {
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::Recording(..) | Self::Requesting { .. } | Self::Creating(_) | Self::NotListed(_) => {
                Reason::Creating
            }
            Self::Several(_) | Self::Resending(_) | Self::InDoubt { .. } => Reason::InDoubt,
            Self::Quota(_) => Reason::QuotaExceeded,
            Self::Throttled => Reason::Throttled,
            Self::Forbidden(_) => Reason::Forbidden,
            Self::NoCapacity(_) => Reason::InsufficientCapacity,
            Self::Invalid(_) => Reason::InvalidRequest,
        }
    }
}

impl AdoptionWait {
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::NotListed { .. } | Self::Refused { .. } => Reason::AdoptionRefused,
            Self::NotAvailable { .. }
            | Self::Adopting(_)
            | Self::Tagging(_)
            | Self::TagsNotShown(_)
            | Self::ClosingRecord(_) => Reason::Adopting,
        }
    }
}

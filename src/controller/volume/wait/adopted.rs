//! Why an EBS volume that a database used before is not adopted in place yet, or not released. Pure.

use crate::api::{InstanceId, Reason, VolumeId};
use crate::cloud::VolumeState;

/// Why an EBS volume that a database used before is not adopted in place yet, or not released.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum AdoptedWait {
    /// The EBS volume is read from EC2 by its id.
    Reading(VolumeId),
    /// The EBS volume cannot be adopted.
    Refused(VolumeId, AdoptedRefusal),
    /// The EBS volume is adopted, and its PersistentVolume or claim cannot be used.
    Unbound(VolumeId, AdoptedRefusal),
    /// The PersistentVolume of this name is made the record of the Volume.
    Recording(String),
    /// The claim of this name is made the Volume's.
    Owning(String),
    /// The claim of this name is no longer the Volume's.
    Disowning(String),
    /// What Freehold has put on the three is being removed.
    GivingBack(VolumeId),
    /// Nothing of Freehold's is on the three any more.
    GivenBack(VolumeId),
}

/// Why an EBS volume cannot be adopted in place, or used.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum AdoptedRefusal {
    /// EC2 shows no EBS volume of this id with the tag `freehold.dev/adopt` of this value.
    NotTagged(String),
    /// It carries the tag of another cluster of this identity.
    OtherCluster(String),
    /// It carries the tag of another Volume of this UID.
    OtherVolume(String),
    /// It is in another zone.
    Zone {
        /// Its zone.
        zone: String,
        /// The zone of the Volume.
        wanted: String,
    },
    /// Several instances may have it attached at once.
    MultiAttach,
    /// EC2 deletes it when the instance that it is attached to is terminated.
    EndsWithInstance {
        /// The instance.
        instance: InstanceId,
        /// The device name.
        device: String,
    },
    /// It is neither available nor in use.
    State(VolumeState),
    /// It has this many GiB, which is more than the Volume.
    Larger(i32),
    /// No PersistentVolume of this name names it.
    NoPersistentVolume(String),
    /// The PersistentVolume of this name is being deleted.
    PersistentVolumeDeleted(String),
    /// The PersistentVolume is the record of another Volume.
    OtherRecord {
        /// The PersistentVolume.
        persistent_volume: String,
        /// The UID of that Volume.
        uid: String,
    },
    /// The PersistentVolume and the claim are not bound to each other.
    NotBound {
        /// The PersistentVolume.
        persistent_volume: String,
        /// The claim.
        claim: String,
    },
    /// The claim of this name is being deleted.
    ClaimDeleted(String),
    /// Another file system is on it.
    FileSystem {
        /// The one that the PersistentVolume names.
        has: String,
        /// The one of the Volume.
        wanted: &'static str,
    },
}

impl AdoptedWait {
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::Reading(_) => Reason::Adopting,
            Self::Refused(..) => Reason::AdoptionRefused,
            Self::Unbound(..) | Self::Recording(_) | Self::Owning(_) | Self::Disowning(_) => {
                Reason::AwaitingBinding
            }
            Self::GivingBack(_) | Self::GivenBack(_) => Reason::Deleting,
        }
    }
}

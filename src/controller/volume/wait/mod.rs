//! What a Volume waits for: a value with the data of the wait, its reason, and whether a person must act.
//! Pure.
//!
//! The sentences are in `messages`.

pub mod adopted;
pub mod creation;
pub mod deletion;
pub mod modification;

use self::adopted::AdoptedWait;
use self::creation::{AdoptionWait, CreationWait};
use self::deletion::{DeletionWait, SnapshotWait};
use self::modification::{BindingWait, ModificationWait};
use crate::api::{Reason, Size, VolumeId};
use crate::cloud::ModificationState;
use crate::controller::blocker::Blocker;
use crate::controller::call_blocked::CallBlocked;

/// What a Volume waits for.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum VolumeWait {
    /// The finalizer is being added.
    AddingFinalizer,
    /// The first full sync of the EC2 inventory.
    FirstSync,
    /// `spec.size` cannot be read.
    InvalidSize(Size),
    /// The NodeClass of this name does not exist.
    ClassNotFound(String),
    /// EC2 did not accept a call about the EBS volume; the call is made again later.
    Blocked(CallBlocked),
    /// EC2 does not list this EBS volume, which may hold data.
    Missing(VolumeId),
    /// EC2 shows this EBS volume by its id, and not by this Volume's tags.
    WithoutTags(VolumeId),
    /// EC2 shows this EBS volume in the state error.
    Broken(VolumeId),
    /// The EBS volume held data and is gone.
    Lost {
        /// The Volume.
        volume: String,
        /// The EBS volume.
        id: VolumeId,
    },
    /// The EBS volume is not created yet.
    Creation(CreationWait),
    /// A retained EBS volume is not adopted yet.
    Adoption(AdoptionWait),
    /// An EBS volume that a database used before is not adopted in place yet, or not released.
    Adopted(AdoptedWait),
    /// The PersistentVolume and the claim are not bound to each other yet.
    Binding(BindingWait),
    /// Size, type, IOPS or throughput are not as wanted yet.
    Modification(ModificationWait),
    /// The Volume is being deleted.
    Deletion(DeletionWait),
    /// The final snapshot is not complete yet.
    Snapshot(SnapshotWait),
}

impl VolumeWait {
    /// For the conditions.
    pub fn reason(&self) -> Reason {
        match self {
            Self::AddingFinalizer => Reason::Progressing,
            Self::FirstSync => Reason::AwaitingInventory,
            Self::InvalidSize(_) => Reason::InvalidSpec,
            Self::ClassNotFound(_) => Reason::NodeClassNotFound,
            Self::Blocked(call_blocked) => call_blocked.reason(),
            Self::Missing(_) | Self::WithoutTags(_) | Self::Broken(_) | Self::Lost { .. } => {
                Reason::VolumeLost
            }
            Self::Creation(wait) => wait.reason(),
            Self::Adoption(wait) => wait.reason(),
            Self::Adopted(wait) => wait.reason(),
            Self::Binding(wait) => wait.reason(),
            Self::Modification(wait) => wait.reason(),
            Self::Deletion(wait) => wait.reason(),
            Self::Snapshot(wait) => wait.reason(),
        }
    }

    /// Whether nothing changes until a person does something.
    pub fn is_stalled(&self) -> bool {
        match self {
            Self::InvalidSize(_) | Self::ClassNotFound(_) | Self::Broken(_) | Self::Lost { .. } => true,
            Self::AddingFinalizer
            | Self::FirstSync
            | Self::Blocked(_)
            | Self::Missing(_)
            | Self::WithoutTags(_) => false,
            Self::Creation(wait) => matches!(wait, CreationWait::Several(_) | CreationWait::Invalid(_)),
            Self::Adoption(wait) => matches!(wait, AdoptionWait::Refused { .. }),
            Self::Adopted(wait) => matches!(wait, AdoptedWait::Refused(..) | AdoptedWait::Unbound(..)),
            Self::Binding(wait) => {
                matches!(wait, BindingWait::NameConflict { .. } | BindingWait::OtherVolume { .. })
            }
            Self::Modification(wait) => {
                matches!(wait, ModificationWait::NotExpandable { .. } | ModificationWait::Refused(_))
            }
            Self::Deletion(wait) => {
                matches!(wait, DeletionWait::Several(_) | DeletionWait::RecordNotOurs { .. })
            }
            Self::Snapshot(wait) => matches!(wait, SnapshotWait::Failed { .. }),
        }
    }

    /// Whether EC2 takes up to hours for it, or it ends only when a person acts: a change is then seen within
    /// a minute, and not within seconds.
    pub fn takes_long(&self) -> bool {
        match self {
            Self::Modification(ModificationWait::Running { state, .. }) => {
                *state == ModificationState::Optimizing
            }
            Self::Snapshot(wait) => matches!(wait, SnapshotWait::Pending(_)),
            Self::Creation(wait) => matches!(wait, CreationWait::Quota(_)),
            Self::WithoutTags(_) => true,
            Self::Deletion(DeletionWait::Unsafe(blocker)) => matches!(blocker, Blocker::TagMissing { .. }),
            Self::AddingFinalizer
            | Self::FirstSync
            | Self::InvalidSize(_)
            | Self::ClassNotFound(_)
            | Self::Blocked(_)
            | Self::Missing(_)
            | Self::Broken(_)
            | Self::Lost { .. }
            | Self::Adoption(_)
            | Self::Adopted(_)
            | Self::Binding(_)
            | Self::Modification(_)
            | Self::Deletion(_) => false,
        }
    }

    /// Whether the EBS volume counts as lost: it held data and is proven gone, or it is broken.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Broken(_) | Self::Lost { .. })
    }
}

impl From<CreationWait> for VolumeWait {
    fn from(wait: CreationWait) -> Self {
        Self::Creation(wait)
    }
}

impl From<AdoptionWait> for VolumeWait {
    fn from(wait: AdoptionWait) -> Self {
        Self::Adoption(wait)
    }
}

impl From<AdoptedWait> for VolumeWait {
    fn from(wait: AdoptedWait) -> Self {
        Self::Adopted(wait)
    }
}

impl From<BindingWait> for VolumeWait {
    fn from(wait: BindingWait) -> Self {
        Self::Binding(wait)
    }
}

impl From<ModificationWait> for VolumeWait {
    fn from(wait: ModificationWait) -> Self {
        Self::Modification(wait)
    }
}

impl From<DeletionWait> for VolumeWait {
    fn from(wait: DeletionWait) -> Self {
        Self::Deletion(wait)
    }
}

impl From<SnapshotWait> for VolumeWait {
    fn from(wait: SnapshotWait) -> Self {
        Self::Snapshot(wait)
    }
}

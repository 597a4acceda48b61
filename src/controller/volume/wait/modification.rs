//! Why the EBS volume of a Volume is not bound or not as wanted yet. Pure.

use jiff::Timestamp;

use crate::api::volume::ModificationRefusal;
use crate::api::{Reason, VolumeId};
use crate::cloud::ModificationState;
use crate::controller::volume::expansion::NotExpandable;

/// Why the PersistentVolume and the claim are not bound to each other yet.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum BindingWait {
    /// The PersistentVolume is being created.
    CreatingPersistentVolume,
    /// The claim is being created.
    CreatingClaim,
    /// An object of the derived name belongs to something else.
    NameConflict {
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// The PersistentVolume names another EBS volume.
    OtherVolume {
        /// The PersistentVolume.
        persistent_volume: String,
        /// The EBS volume that it names.
        named: VolumeId,
        /// The EBS volume of this Volume.
        id: VolumeId,
    },
    /// The claim of this name is being deleted, and another is created once it is gone.
    ClaimDeleted(String),
    /// Kubernetes has not bound them yet.
    NotBound {
        /// The claim.
        claim: String,
        /// The PersistentVolume.
        persistent_volume: String,
    },
}

/// Why the volume is not as the spec wants it.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum ModificationWait {
    /// Kubernetes would refuse to expand the claim.
    NotExpandable {
        /// The claim.
        claim: String,
        /// The GiB that the spec asks for.
        wanted: i32,
        /// Why.
        cause: NotExpandable,
    },
    /// EC2 refused the modification of this generation as invalid.
    Refused(ModificationRefusal),
    /// A modification is running.
    Running {
        /// The EBS volume.
        id: VolumeId,
        /// The state of the modification.
        state: ModificationState,
    },
    /// Edits of the coalescing window become one modification.
    Coalescing(VolumeId),
    /// EC2 was asked for the modification and does not show it yet.
    NotShown(VolumeId),
    /// The daily budget of modifications is used up.
    Budget {
        /// The EBS volume.
        id: VolumeId,
        /// How many modifications EBS allows in a day.
        allowed: usize,
        /// When the next one is allowed.
        until: Timestamp,
    },
    /// Whether a modification is running is being looked up.
    LookingUp(VolumeId),
    /// EC2 is being asked for the modification.
    Modifying {
        /// The EBS volume.
        id: VolumeId,
        /// The GiB asked for.
        size: i32,
        /// The type asked for.
        volume_type: String,
    },
    /// The claim is being changed to the new size.
    GrowingClaim {
        /// The claim.
        claim: String,
        /// GiB.
        size: i32,
    },
    /// The file system is not expanded to this many GiB yet.
    GrowingFileSystem(i32),
}

impl BindingWait {
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::NameConflict { .. } | Self::OtherVolume { .. } => Reason::NameConflict,
            Self::CreatingPersistentVolume
            | Self::CreatingClaim
            | Self::ClaimDeleted(_)
            | Self::NotBound { .. } => Reason::AwaitingBinding,
        }
    }
}

impl ModificationWait {
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::NotExpandable { .. } => Reason::ClaimNotExpandable,
            Self::Refused(_) => Reason::ModificationRefused,
            Self::Budget { .. } => Reason::ModificationBudget,
            Self::Running { .. }
            | Self::Coalescing(_)
            | Self::NotShown(_)
            | Self::LookingUp(_)
            | Self::Modifying { .. } => Reason::Modifying,
            Self::GrowingClaim { .. } | Self::GrowingFileSystem(_) => Reason::AwaitingFileSystem,
        }
    }
}

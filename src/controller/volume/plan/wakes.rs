//! What makes a pass follow for each wait of a Volume: `docs/development/waking.md` as data, which `check.rs`
//! holds every plan to. Pure.

use super::action::{Action, Plan, VolumeInterest};
use crate::controller::volume::observe::Observed;
use crate::controller::volume::wait::VolumeWait;
use crate::controller::volume::wait::adopted::AdoptedWait;
use crate::controller::volume::wait::creation::{AdoptionWait, CreationWait};
use crate::controller::volume::wait::deletion::{DeletionWait, SnapshotWait};
use crate::controller::volume::wait::modification::{BindingWait, ModificationWait};

/// What makes the next pass over a Volume follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// The Volume's own watch: its spec or status is changed, it is deleted, or a finalizer is removed.
    Itself,
    /// The Volume's own watch: this plan writes to the Volume.
    OwnWrite,
    /// The watch of NodeClasses.
    NodeClass,
    /// The watch of the claims that the Volume owns.
    Claim,
    /// The watch of the PersistentVolumes that carry the Volume's UID.
    PersistentVolume,
    /// The first full EC2 inventory sync; until then passes follow each other anyway.
    FirstSync,
    /// A full EC2 inventory sync that shows a change, however late it is.
    Sync,
    /// Frequent EC2 inventory syncs, and the look-ups of a proof.
    Interest,
    /// The same of the modification, too.
    ModificationInterest,
    /// The same of the final snapshot, too: without interest snapshots are never synced.
    SnapshotInterest,
    /// The time that the plan gives.
    Time,
}

/// Everything that may end this wait: each of it must be able to make a pass follow.
pub(super) fn wakes(wait: &VolumeWait) -> &'static [Wake] {
    match wait {
        VolumeWait::AddingFinalizer => &[Wake::OwnWrite],
        VolumeWait::FirstSync => &[Wake::FirstSync],
        VolumeWait::InvalidSize(_) => &[Wake::Itself],
        VolumeWait::ClassNotFound(_) => &[Wake::NodeClass],
        VolumeWait::Blocked(_) | VolumeWait::WithoutTags(_) => &[Wake::Time],
        VolumeWait::Missing(_) => &[Wake::Interest],
        VolumeWait::Broken(_) | VolumeWait::Lost { .. } => &[Wake::Sync],
        VolumeWait::Creation(wait) => of_creation(wait),
        VolumeWait::Adoption(wait) => of_adoption(wait),
        VolumeWait::Adopted(wait) => of_adopted(wait),
        VolumeWait::Binding(wait) => of_binding(wait),
        VolumeWait::Modification(wait) => of_modification(wait),
        VolumeWait::Deletion(wait) => of_deletion(wait),
        VolumeWait::Snapshot(wait) => of_snapshot(wait),
    }
}

fn of_creation(wait: &CreationWait) -> &'static [Wake] {
    match wait {
        CreationWait::Recording(..) => &[Wake::OwnWrite],
        CreationWait::Several(_) => &[Wake::Sync],
        CreationWait::Quota(_)
        | CreationWait::Throttled
        | CreationWait::Forbidden(_)
        | CreationWait::NoCapacity(_) => &[Wake::Time],
        CreationWait::Invalid(_) => &[Wake::Itself, Wake::NodeClass],
        CreationWait::Resending(_)
        | CreationWait::InDoubt { .. }
        | CreationWait::Requesting { .. }
        | CreationWait::Creating(_)
        | CreationWait::NotListed(_) => &[Wake::Interest],
    }
}

/// The former record carries the UID of another Volume: its watch does not find this one.
fn of_adoption(wait: &AdoptionWait) -> &'static [Wake] {
    match wait {
        AdoptionWait::NotListed { .. }
        | AdoptionWait::Refused { .. }
        | AdoptionWait::NotAvailable { .. }
        | AdoptionWait::ClosingRecord(_) => &[Wake::Time],
        AdoptionWait::Adopting(_) | AdoptionWait::Tagging(_) | AdoptionWait::TagsNotShown(_) => {
            &[Wake::Interest]
        }
    }
}

/// What Freehold has not labelled yet is not watched.
fn of_adopted(wait: &AdoptedWait) -> &'static [Wake] {
    match wait {
        AdoptedWait::Reading(_)
        | AdoptedWait::Refused(..)
        | AdoptedWait::Unbound(..)
        | AdoptedWait::Recording(_)
        | AdoptedWait::Owning(_)
        | AdoptedWait::Disowning(_)
        | AdoptedWait::GivingBack(_) => &[Wake::Time],
        AdoptedWait::GivenBack(_) => &[Wake::OwnWrite],
    }
}

fn of_binding(wait: &BindingWait) -> &'static [Wake] {
    match wait {
        BindingWait::CreatingPersistentVolume | BindingWait::OtherVolume { .. } => &[Wake::PersistentVolume],
        // What belongs to something else is not watched.
        BindingWait::NameConflict { .. } => &[Wake::Time],
        BindingWait::CreatingClaim | BindingWait::ClaimDeleted(_) => &[Wake::Claim],
        BindingWait::NotBound { .. } => &[Wake::Claim, Wake::PersistentVolume],
    }
}

fn of_modification(wait: &ModificationWait) -> &'static [Wake] {
    match wait {
        ModificationWait::Refused(_) => &[Wake::Itself],
        ModificationWait::Running { .. } | ModificationWait::Modifying { .. } => {
            &[Wake::ModificationInterest]
        }
        ModificationWait::NotShown(_) | ModificationWait::LookingUp(_) => {
            &[Wake::ModificationInterest, Wake::Time]
        }
        // StorageClasses are not watched.
        ModificationWait::NotExpandable { .. }
        | ModificationWait::Coalescing(_)
        | ModificationWait::Budget { .. } => &[Wake::Time],
        ModificationWait::GrowingClaim { .. } | ModificationWait::GrowingFileSystem(_) => &[Wake::Claim],
    }
}

fn of_deletion(wait: &DeletionWait) -> &'static [Wake] {
    match wait {
        DeletionWait::OtherFinalizers => &[Wake::Itself],
        DeletionWait::Recording(..) | DeletionWait::Retaining { .. } | DeletionWait::Gone => {
            &[Wake::OwnWrite]
        }
        DeletionWait::ClaimRemains(_) => &[Wake::Claim],
        DeletionWait::Several(_) => &[Wake::Sync],
        DeletionWait::DatabaseRemains
        | DeletionWait::NotDetached(_)
        | DeletionWait::RecordDeleted { .. }
        | DeletionWait::RecordNotOurs { .. } => &[Wake::Time],
        DeletionWait::NotResent
        | DeletionWait::Unsafe(_)
        | DeletionWait::DeletingVolume(_)
        | DeletionWait::ProvingAbsence(_) => &[Wake::Interest],
    }
}

fn of_snapshot(wait: &SnapshotWait) -> &'static [Wake] {
    match wait {
        SnapshotWait::NotDetached(_) => &[Wake::Time],
        SnapshotWait::Failed { .. } => &[Wake::Itself],
        SnapshotWait::FirstSync
        | SnapshotWait::Recording(_)
        | SnapshotWait::Requesting(_)
        | SnapshotWait::Pending(_)
        | SnapshotWait::InDoubt(_)
        | SnapshotWait::NotListed(_) => &[Wake::SnapshotInterest],
    }
}

/// Whether this can make a pass follow after this plan.
pub(super) fn is_registered(wake: Wake, observed: &Observed, plan: &Plan) -> bool {
    match wake {
        Wake::Itself | Wake::NodeClass | Wake::Claim | Wake::PersistentVolume => true,
        Wake::OwnWrite => plan.actions.iter().any(writes_the_volume),
        Wake::FirstSync => observed.volumes.swept_at.is_none(),
        Wake::Sync => observed.volumes.swept_at.is_some(),
        Wake::Interest => plan.interest != VolumeInterest::Settled,
        Wake::ModificationInterest => plan.interest == VolumeInterest::Modification,
        Wake::SnapshotInterest => plan.interest == VolumeInterest::Snapshot,
        Wake::Time => plan.requeue.is_some(),
    }
}

fn writes_the_volume(action: &Action) -> bool {
    match action {
        Action::AddFinalizer
        | Action::Create(_)
        | Action::Resend
        | Action::Adopt(..)
        | Action::RecordVolume(_)
        | Action::CreatePersistentVolume(_)
        | Action::Modify(_)
        | Action::Snapshot(..)
        | Action::RecordSnapshot(_)
        | Action::NoteDeleted
        | Action::RemoveFinalizer => true,
        Action::Retag(..)
        | Action::RecordAdopted(_)
        | Action::OwnClaim(_)
        | Action::DisownClaim(_)
        | Action::GiveBackRecord(_)
        | Action::Untag(..)
        | Action::ReleaseRecord(_)
        | Action::ReopenPersistentVolume(_)
        | Action::CreateClaim(_)
        | Action::GrowClaim(_)
        | Action::FreeClaim(_)
        | Action::DeleteClaim(_)
        | Action::MarkRetained(_)
        | Action::DeleteVolume(_)
        | Action::DeletePersistentVolume(_) => false,
    }
}

//! What makes a pass follow for each wait of a Backup: `docs/development/waking.md` as data, which `check.rs`
//! holds every plan to. Pure.

use super::action::{Action, Plan};
use crate::controller::backup::observe::Observed;
use crate::controller::backup::wait::BackupWait;

/// What makes the next pass over a Backup follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// The Backup's own watch: a finalizer is removed.
    Itself,
    /// The Backup's own watch: this plan writes to the Backup.
    OwnWrite,
    /// The first full EC2 inventory sync; until then passes follow each other anyway.
    FirstSync,
    /// Frequent EC2 inventory syncs, and the look-ups of a proof.
    Interest,
    /// The time that the plan gives: neither Databases nor pods nor engines wake a Backup.
    Time,
}

/// Everything that may end this wait: each of it must be able to make a pass follow.
pub(super) fn wakes(wait: &BackupWait) -> &'static [Wake] {
    match wait {
        BackupWait::OtherFinalizers => &[Wake::Itself],
        BackupWait::AddingFinalizer
        | BackupWait::PuttingPolicyBack
        | BackupWait::Retained(_)
        | BackupWait::Gone => &[Wake::OwnWrite],
        BackupWait::FirstSync => &[Wake::FirstSync],
        BackupWait::NoDatabase(_)
        | BackupWait::NeverReady(_)
        | BackupWait::NoVolume(_)
        | BackupWait::Attached(_)
        | BackupWait::Other(_)
        | BackupWait::InUse(_)
        | BackupWait::EngineNotReady(_)
        | BackupWait::EngineUnreadable(_)
        | BackupWait::OtherCheckpoint(_)
        | BackupWait::RootElsewhere(_)
        | BackupWait::Pausing
        | BackupWait::NearlyFull(_)
        | BackupWait::CheckpointUnconfirmed
        | BackupWait::ReleaseOwed(_)
        | BackupWait::Blocked(_) => &[Wake::Time],
        BackupWait::BeginningCheckpoint | BackupWait::Releasing | BackupWait::Requesting(_) => {
            &[Wake::OwnWrite]
        }
        BackupWait::InDoubt(_)
        | BackupWait::Recording(_)
        | BackupWait::NotListed(_)
        | BackupWait::Tagging(_)
        | BackupWait::Pending(_)
        | BackupWait::Unsafe(_)
        | BackupWait::WithoutTags(..)
        | BackupWait::Deleting(_)
        | BackupWait::ProvingAbsence => &[Wake::Interest],
    }
}

/// Whether this can make a pass follow after this plan.
pub(super) fn is_registered(wake: Wake, observed: &Observed, plan: &Plan) -> bool {
    match wake {
        Wake::Itself => true,
        Wake::OwnWrite => plan.actions.iter().any(writes_the_backup) || plan.requeue.is_some(),
        Wake::FirstSync => observed.snapshots.swept_at.is_none(),
        Wake::Interest => plan.is_pending,
        Wake::Time => plan.requeue.is_some(),
    }
}

fn writes_the_backup(action: &Action) -> bool {
    match action {
        Action::AddFinalizer
        | Action::Checkpoint { .. }
        | Action::NoteConsistent
        | Action::Release(_)
        | Action::NoteReleased
        | Action::Create(..)
        | Action::RecordSnapshot(_)
        | Action::PutPolicyBack
        | Action::DeleteSnapshot(_)
        | Action::RemoveFinalizer => true,
        Action::Tag(..) => false,
    }
}

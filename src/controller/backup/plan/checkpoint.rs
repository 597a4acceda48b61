//! The plan of a checkpoint: when it begins, and that its release is paid. Pure.

use std::time::Duration;

use jiff::Timestamp;

use super::action::{Action, Plan};
use super::facts::{Held, blocked, held, is_overdue, is_under};
use crate::api::BackupStatus;
use crate::cloud::call::Call;
use crate::cluster::kubelet::DiskUsage;
use crate::controller::backup::observe::{EngineView, Observed};
use crate::controller::backup::wait::BackupWait;
use crate::controller::engine_access::EnginePod;
use crate::time::later;

/// What must be free of a file system for a checkpoint, in percent: a volume that grows by itself is to have
/// four times as much, and the usual alerts of a cluster come at 3 (kubernetes-mixin,
/// `KubePersistentVolumeFillingUp`).
const LEAST_PERCENT: u64 = 5;

/// What an engine may write in a second to a gp3 as it is created (AWS, "General Purpose SSD volumes"): no
/// more is needed than what that comes to while a checkpoint may be held, however large the file system is.
const BYTES_A_SECOND: u64 = 125 << 20;

/// Whether a file system may fill up while a checkpoint is held for as long as it may be: the engine frees
/// nothing meanwhile.
fn is_tight(disk: DiskUsage, hold_limit: Duration) -> bool {
    let least = disk.capacity / 100 * LEAST_PERCENT;
    disk.available < least.min(BYTES_A_SECOND.saturating_mul(hold_limit.as_secs()))
}

/// What is done about a release that is owed; `None` when none is, or when the checkpoint is held for a
/// snapshot that has not started yet.
pub(super) fn owed(observed: &Observed, status: &BackupStatus, now: Timestamp) -> Option<Plan> {
    let owed = status.checkpoint.as_ref()?;
    let recheck = observed.timing.requeue_interval;
    let began_at = match held(observed, owed, now) {
        Held::Ours(began_at) => began_at,
        Held::Not => return Some(Plan::act(vec![Action::NoteReleased], BackupWait::Releasing)),
        Held::NotYet => return Some(Plan::wait(BackupWait::CheckpointUnconfirmed).after(recheck)),
        Held::Unknown(why) => return Some(Plan::wait(BackupWait::ReleaseOwed(why)).after(recheck)),
    };
    let is_over = status.is_final() || status.snapshot_id.is_some();
    let is_deleting = observed.backup.metadata.deletion_timestamp.is_some();
    // QuestDB shows a checkpoint from its request on, and has written everything only when it answers. One
    // whose answer was lost may not be whole: no snapshot is taken under it.
    let is_unanswered = owed.began_at.is_none();
    // The Database is gone, or another of its name: nothing is snapshot under the checkpoint of its engine.
    let uid = observed.database.as_ref().and_then(|database| database.metadata.uid.as_ref());
    let is_unowned = owed.engine.as_ref().is_some_and(|engine| uid != Some(&engine.database_uid));
    if is_over || is_deleting || is_unanswered || is_unowned || is_overdue(observed, owed, now) {
        let is_certain = is_under(status, owed) && !status.is_final();
        let mut actions = Vec::new();
        if is_certain && status.consistency.is_none() {
            actions.push(Action::NoteConsistent);
        }
        actions.push(Action::Release(began_at));
        return Some(Plan::act(actions, BackupWait::Releasing).after(recheck));
    }
    None
}

/// What is done until the engine holds a checkpoint for the snapshot; `None` when it holds one.
pub(super) fn begin(observed: &Observed, status: &BackupStatus, now: Timestamp) -> Option<Plan> {
    if status.checkpoint.is_some() {
        return None;
    }
    let recheck = observed.timing.requeue_interval;
    let not_ready = || Plan::wait(BackupWait::EngineNotReady(observed.backup.spec.database_name.clone()));
    let EnginePod::Running { uid, is_ready: true, .. } = &observed.pod else {
        return Some(not_ready().after(recheck));
    };
    if observed.is_root_elsewhere {
        let wait = BackupWait::RootElsewhere(observed.backup.spec.database_name.clone());
        return Some(Plan::wait(wait).after(recheck.saturating_mul(12)));
    }
    let shown = match &observed.engine {
        EngineView::Shown(shown) => shown,
        EngineView::Unreadable(why) => {
            return Some(Plan::wait(BackupWait::EngineUnreadable(why.clone())).after(recheck));
        }
        EngineView::NotRead => return Some(not_ready().after(recheck)),
    };
    if let Some(since) = shown.held_since {
        return Some(Plan::wait(BackupWait::OtherCheckpoint(since)).after(recheck));
    }
    // The engine is to free space between two checkpoints, and none is held for a call that EC2 refuses.
    let pause = observed.timing.checkpoint_hold_limit;
    let again = status.released_in_vain_at.as_ref().map(|at| later(at.0, pause)).filter(|at| now < *at);
    if let Some(again) = again {
        return Some(Plan::wait(BackupWait::Pausing).until(again, now));
    }
    if let Some(plan) = blocked(observed, Call::CreateSnapshot, BackupWait::BeginningCheckpoint, now) {
        return Some(plan.after(recheck));
    }
    if observed.disk.is_some_and(|disk| is_tight(disk, pause)) {
        let wait = BackupWait::NearlyFull(observed.backup.spec.database_name.clone());
        return Some(Plan::wait(wait).after(recheck.saturating_mul(12)));
    }
    let action = Action::Checkpoint { pod_uid: uid.clone(), engine_time: shown.now };
    Some(Plan::act(vec![action], BackupWait::BeginningCheckpoint).after(recheck))
}

//! What the parts of the plan of the Backup controller share: questions about what was observed. Pure.

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;

use super::action::Plan;
use crate::api::backup::OwedCheckpoint;
use crate::api::creation::Attempt;
use crate::api::{Backup, BackupStatus, SnapshotId};
use crate::cloud::absence::{self, AbsenceProven, TokenLookup};
use crate::cloud::call::Call;
use crate::cloud::identity::{Kind, Owner};
use crate::controller::backup::observe::{ById, EngineView, Observed};
use crate::controller::backup::wait::BackupWait;
use crate::controller::creation::judge::last_possible_send;
use crate::controller::engine_access::EnginePod;
use crate::controller::memory::issued_requests::{Again, again};
use crate::engine::checkpoint::is_same;
use crate::time::later;

/// Whom the snapshot belongs to.
pub(super) fn owner_of(backup: &Backup, cluster_id: &str) -> Owner {
    Owner {
        cluster_id: cluster_id.to_owned(),
        kind: Kind::Backup,
        uid: backup.uid().unwrap_or_default(),
        database: format!("{}/{}", backup.namespace().unwrap_or_default(), backup.spec.database_name),
        name: backup.name_any(),
    }
}

/// What the engine holds of the checkpoint whose release is owed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// It is this Backup's, and began then.
    Ours(Timestamp),
    /// None of this Backup: the engine's process ended, or says so.
    Not,
    /// None, while the checkpoint that was requested may still begin: the engine's answer was lost.
    NotYet,
    /// That is not known; why.
    Unknown(String),
}

/// How long after the request a checkpoint may begin whose answer was lost: longer than the engine client
/// connects and waits together. Real time, whatever the time scale: engines do not run faster.
const MAY_BEGIN: Duration = Duration::from_secs(60);

/// Judges what the engine says. A checkpoint ends with the process that holds it. One that began before this
/// one was requested, or long after, is another client's, as is one that began at another time than the
/// engine said.
pub(super) fn held(observed: &Observed, owed: &OwedCheckpoint, now: Timestamp) -> Held {
    match &observed.pod {
        EnginePod::Absent | EnginePod::NotRunning => return Held::Not,
        EnginePod::Running { uid, .. } if *uid != owed.pod_uid => return Held::Not,
        EnginePod::Running { .. } => {}
    }
    let held_since = match &observed.engine {
        EngineView::Shown(status) => status.held_since,
        EngineView::Unreadable(why) => return Held::Unknown(why.clone()),
        EngineView::NotRead => return Held::Unknown("it was not asked".to_owned()),
    };
    let is_ours = |since: Timestamp| match &owed.began_at {
        Some(began_at) => is_same(since, began_at.0),
        None => since >= owed.engine_time.0 && since <= later(owed.engine_time.0, MAY_BEGIN),
    };
    match held_since {
        Some(since) if is_ours(since) => Held::Ours(since),
        None if owed.began_at.is_none() && now <= later(owed.since.0, MAY_BEGIN) => Held::NotYet,
        Some(_) | None => Held::Not,
    }
}

/// Whether the checkpoint has been held for as long as it may be.
pub(super) fn is_overdue(observed: &Observed, owed: &OwedCheckpoint, now: Timestamp) -> bool {
    now >= later(owed.since.0, observed.timing.checkpoint_hold_limit)
}

/// Whether the snapshot was requested while this checkpoint was held, and has started.
pub(super) fn is_under(status: &BackupStatus, owed: &OwedCheckpoint) -> bool {
    let is_after = status
        .creation
        .as_ref()
        .is_some_and(|it| it.with_checkpoint && it.attempt.started_at.0 >= owed.since.0);
    is_after && status.snapshot_id.is_some() && owed.began_at.is_some()
}

/// The proof that the snapshot of this attempt does not exist.
pub(super) fn proven_absent(observed: &Observed, attempt: Option<&Attempt>) -> Option<AbsenceProven> {
    let last = last_possible_send(attempt, None, observed.leading_since);
    absence::prove(last, observed.snapshots.empty, TokenLookup::NotPossible, observed.timing.absence_window)
}

/// This plan, which rests on the absence of the snapshot of this id, once EC2 does not show it by its id
/// either: the absence is proven by tag, and tags can be taken off. `wait` is waited for until then.
pub(super) fn once_confirmed(observed: &Observed, id: &SnapshotId, plan: Plan, wait: BackupWait) -> Plan {
    let recheck = observed.timing.requeue_interval;
    match observed.by_id {
        ById::NotShown => plan,
        ById::Shown => {
            let uid = observed.backup.uid().unwrap_or_default();
            let wait = BackupWait::WithoutTags(id.clone(), uid);
            Plan::wait(wait).pending().after(recheck.saturating_mul(12))
        }
        ById::NotRead => Plan { look_up: Some(id.clone()), ..Plan::wait(wait).pending().after(recheck) },
    }
}

/// The plan of a Backup whose next call was not accepted by EC2, or is not shown yet, and must not be made
/// again.
pub(super) fn blocked(observed: &Observed, call: Call, wait: BackupWait, now: Timestamp) -> Option<Plan> {
    let recheck = observed.timing.requeue_interval;
    match again(observed.issued.get(&call), observed.snapshots.swept_at, recheck, now) {
        Again::Later(call_blocked, until) => {
            let plan = Plan::wait(BackupWait::Blocked(call_blocked.clone()));
            Some(plan.until(until, now).pending())
        }
        Again::OnceShown => Some(Plan::wait(wait).pending()),
        Again::Now => None,
    }
}

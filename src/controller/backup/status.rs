//! The status step of the Backup controller: computes the BackupStatus, its conditions, and the events of
//! their change. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::messages;
use super::observe::Observed;
use super::plan::action::{Plan, Verdict};
use crate::api::ConditionType as Type;
use crate::api::backup::{BackupFailure, BackupFault};
use crate::api::verification::VerificationResult;
use crate::api::{Backup, BackupStatus, EventReason, Reason, Size};
use crate::cluster::events::Happened;
use crate::controller::conditions::{self, Entry};
use crate::controller::pass::acted::{Acted, why};
use crate::time::whole_second;

/// The status to write: the fields of the checkpoint and of the create protocol as the last write left them,
/// everything else from what was seen.
pub fn status(observed: &Observed, plan: &Plan, acted: &Acted<Backup>, now: Timestamp) -> BackupStatus {
    let old = acted.object.status.clone().unwrap_or_default();
    // Right after a start nothing is known of EC2 yet: what was said of it before stands.
    let is_known = observed.snapshots.swept_at.is_some();
    if old.is_final() && !is_known && !old.conditions.is_empty() {
        return old;
    }
    let shown = observed.snapshots.snapshots.iter().find(|it| Some(&it.id) == old.snapshot_id.as_ref());
    let mut new = BackupStatus {
        observed_generation: observed.backup.metadata.generation,
        size: shown.and_then(|it| it.size).map(Size::from_gib).or_else(|| old.size.clone()),
        started_at: shown.and_then(|it| it.started_at).map(|at| Time(whole_second(at))).or(old.started_at),
        ..old
    };
    match plan.verdict {
        Some(Verdict::Complete(consistency)) => {
            new.consistency = Some(consistency);
            new.completed_at.get_or_insert_with(|| Time(whole_second(now)));
        }
        Some(Verdict::Failed(what)) => {
            new.failure.get_or_insert_with(|| BackupFailure { at: Time(whole_second(now)), what });
        }
        None => {}
    }
    let entries = entries(plan, acted, &new);
    let generation = observed.backup.metadata.generation;
    new.conditions = conditions::merge(&new.conditions, &entries, generation, now);
    new
}

fn entries(plan: &Plan, acted: &Acted<Backup>, new: &BackupStatus) -> Vec<Entry> {
    let waiting = plan.waiting.as_ref().map(|waiting| (waiting.reason(), waiting.message()));
    let (reason, message) = why(acted.error.as_ref(), acted.call_blocked.as_ref(), waiting);
    let failure = new
        .failure
        .as_ref()
        .map(|failure| (fault(failure.what), messages::failed(failure.what, new.snapshot_id.as_ref())));
    let is_deleting = acted.object.metadata.deletion_timestamp.is_some();
    let complete = match &failure {
        // What keeps a Backup that is being deleted is said of one that is complete, too.
        _ if new.completed_at.is_some() && is_deleting && plan.waiting.is_some() => {
            Entry::yes(Type::Complete, reason, message)
        }
        _ if new.completed_at.is_some() => {
            Entry::yes(Type::Complete, Reason::AsExpected, messages::complete(new.consistency))
        }
        Some((reason, message)) => Entry::no(Type::Complete, *reason, message.clone()),
        None => Entry::no(Type::Complete, reason, message),
    };
    let failed = match failure {
        Some((reason, message)) => Entry::yes(Type::Failed, reason, message),
        None => Entry::no(Type::Failed, Reason::Progressing, messages::NOT_FAILED),
    };
    let stalled = plan.waiting.as_ref().filter(|waiting| waiting.is_stalled());
    let stalled = conditions::stalled(stalled.map(|waiting| (waiting.reason(), waiting.message())));
    let missing = plan.is_missing.then(|| {
        let message = messages::missing(new.snapshot_id.as_ref());
        Entry::yes(Type::SnapshotMissing, Reason::SnapshotMissing, message)
    });
    let verified = new.verification.as_ref().map(|it| match it.result {
        VerificationResult::Passed => Entry::yes(Type::Verified, Reason::AsExpected, messages::verified(it)),
        VerificationResult::Failed => {
            Entry::no(Type::Verified, Reason::VerificationFailed, it.message.clone().unwrap_or_default())
        }
    });
    [complete, failed, stalled].into_iter().chain(missing).chain(verified).collect()
}

fn fault(what: BackupFault) -> Reason {
    match what {
        BackupFault::SnapshotFailed => Reason::SnapshotFailed,
        BackupFault::CheckpointLost => Reason::CheckpointLost,
        BackupFault::SnapshotGone => Reason::SnapshotMissing,
    }
}

/// What changed so that an event reports it.
pub fn changes(old: &BackupStatus, new: &BackupStatus) -> Vec<Happened> {
    let became_true =
        |kind| !conditions::is_true(&old.conditions, kind) && conditions::is_true(&new.conditions, kind);
    let snapshot = new.snapshot_id.as_ref();
    let mut happened = Vec::new();
    if old.completed_at.is_none() && new.completed_at.is_some() {
        happened.push(Happened::normal(EventReason::BackupCompleted, messages::complete(new.consistency)));
    }
    if let (None, Some(failure)) = (&old.failure, &new.failure) {
        let note = messages::failed(failure.what, snapshot);
        happened.push(Happened::warning(EventReason::BackupFailed, note));
    }
    if became_true(Type::SnapshotMissing) {
        happened.push(Happened::warning(EventReason::SnapshotMissing, messages::missing(snapshot)));
    }
    happened
}

//! The plan step of the Backup controller: compares what is with what should be, and decides the actions.
//! Pure.
//!
//! A release that is owed comes before everything else, whatever else has become of the Backup.

mod check;
mod checkpoint;
mod deletion;
mod expiry;
mod facts;
mod snapshot;
mod wakes;

pub mod action;

use jiff::Timestamp;
use kube::ResourceExt;

use self::action::{Action, Plan};
use self::facts::proven_absent;
use super::observe::Observed;
use super::wait::BackupWait;
use crate::api::{BackupStatus, ConditionType};
use crate::cluster::finalizer;
use crate::controller::conditions;

/// Decides what to do about a Backup. A debug build checks each plan by the rules of `check.rs`.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let plan = decide(observed, now);
    debug_assert_eq!(
        check::violations(observed, &plan),
        Vec::<String>::new(),
        "the plan of {}",
        observed.backup.name_any()
    );
    plan
}

fn decide(observed: &Observed, now: Timestamp) -> Plan {
    let is_deleting = observed.backup.metadata.deletion_timestamp.is_some();
    if !finalizer::has(&observed.backup) {
        return if is_deleting {
            Plan::wait(BackupWait::OtherFinalizers)
        } else {
            Plan::act(vec![Action::AddFinalizer], BackupWait::AddingFinalizer)
        };
    }
    let status = observed.backup.status.clone().unwrap_or_default();
    if let Some(plan) = checkpoint::owed(observed, &status, now) {
        return plan;
    }
    if is_deleting {
        return deletion::plan(observed, &status, now);
    }
    if status.is_final() {
        return expiry::put_back(observed, over(observed, &status), now);
    }
    if observed.snapshots.swept_at.is_none() {
        return Plan::wait(BackupWait::FirstSync);
    }
    match &status.snapshot_id {
        Some(id) => snapshot::identified(observed, &status, id, now),
        None => snapshot::unidentified(observed, &status, now),
    }
}

/// Nothing follows but that the snapshot is missed, once its absence is proven: one answer of EC2 may be
/// incomplete, or that of another account.
fn over(observed: &Observed, status: &BackupStatus) -> Plan {
    let is_listed = observed.snapshots.snapshots.iter().any(|it| Some(&it.id) == status.snapshot_id.as_ref());
    let is_missed = status.completed_at.is_some() && observed.snapshots.swept_at.is_some() && !is_listed;
    let attempt = status.creation.as_ref().map(|creation| &creation.attempt);
    let was_gone = conditions::is_true(observed.backup.conditions(), ConditionType::SnapshotMissing);
    let is_gone = was_gone || proven_absent(observed, attempt).is_some();
    Plan { is_missing: is_missed && is_gone, is_pending: is_missed && !is_gone, ..Plan::done() }
}

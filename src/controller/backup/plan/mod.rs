//! The plan step of the Backup controller: compares what is with what should be, and decides the actions.
//! Pure.
//!
//! A release that is owed comes before everything else, whatever else has become of the Backup.

mod check;
mod checkpoint;
mod deletion;
mod facts;
mod snapshot;
mod wakes;

pub mod action;

use jiff::Timestamp;
use kube::ResourceExt;

use self::action::{Action, Plan};
use super::observe::Observed;
use super::wait::BackupWait;
use crate::api::BackupStatus;
use crate::cluster::finalizer;

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
        return over(observed, &status);
    }
    if observed.snapshots.swept_at.is_none() {
        return Plan::wait(BackupWait::FirstSync);
    }
    match &status.snapshot_id {
        Some(id) => snapshot::identified(observed, &status, id, now),
        None => snapshot::unidentified(observed, &status, now),
    }
}

/// Nothing follows but that the snapshot is missed.
fn over(observed: &Observed, status: &BackupStatus) -> Plan {
    let completed_at = status.completed_at.as_ref().map(|at| at.0);
    let is_listed = observed.snapshots.snapshots.iter().any(|it| Some(&it.id) == status.snapshot_id.as_ref());
    let is_missing =
        completed_at.zip(observed.snapshots.swept_at).is_some_and(|(at, swept)| swept > at && !is_listed);
    Plan { is_missing, ..Plan::done() }
}

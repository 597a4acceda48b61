//! What a BackupSchedule began and did not end: the deletion of a Backup. Pure.
//!
//! It sets the deletion policy Delete, then deletes, in one pass. A Backup that stays (the operator ended in
//! between, and now the Backup is to be kept) must not keep that policy: a person who deletes it later would
//! delete its snapshot, too.

use jiff::Timestamp;
use kube::ResourceExt;

use super::action::{Action, Plan};
use crate::api::keys::EXPIRING_SINCE_ANNOTATION;
use crate::controller::backup::observe::Observed;
use crate::controller::backup::wait::BackupWait;
use crate::time::{later, sooner, until};

/// The plan of a Backup that has come to its end, with the policy set back once the pass that began to delete
/// it has ended for certain.
pub(super) fn put_back(observed: &Observed, plan: Plan, now: Timestamp) -> Plan {
    let Some(since) = observed.backup.annotations().get(EXPIRING_SINCE_ANNOTATION) else { return plan };
    let over =
        since.parse().ok().map(|since| later(since, observed.timing.reconcile_timeout.saturating_mul(2)));
    match over.filter(|over| now < *over) {
        Some(over) => Plan { requeue: Some(sooner(until(over, now), plan.requeue)), ..plan },
        None => Plan {
            actions: vec![Action::PutPolicyBack],
            waiting: Some(BackupWait::PuttingPolicyBack),
            ..plan
        },
    }
}

//! How a database goes back from an engine that did not serve: to the engine of before, and to the data of
//! the snapshot, since the other one may have written to the volume. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use crate::api::database::{Upgrade, UpgradeWentBack};
use crate::api::{ConditionType, SnapshotId};
use crate::controller::conditions;
use crate::controller::database::observe::Observed;
use crate::controller::database::plan::action::{Action, Plan};
use crate::controller::database::plan::facts::slowly;
use crate::controller::database::plan::in_place::emptied;
use crate::controller::database::plan::prerequisites;
use crate::controller::database::plan::restore::{Backup, backup};
use crate::controller::database::wait::{DatabaseWait, RestoreWait, UpgradeWait};
use crate::controller::restoring::RestoreRefusal;
use crate::time::whole_second;

/// The changed engine may have written to the volume.
pub(super) fn go_back(upgrade: &Upgrade, message: String, observed: &Observed, now: Timestamp) -> Plan {
    let at = Time(whole_second(now));
    let went_back = UpgradeWentBack { at, message: message.clone(), data_restored: true };
    let record = Upgrade { went_back: Some(went_back), ..upgrade.clone() };
    let actions = vec![Action::RecordUpgrade(Box::new(record))];
    let wait = DatabaseWait::Upgrade(UpgradeWait::GoingBack(message));
    Plan::act(actions, wait).requeue(observed.timing.requeue_interval)
}

/// The engine is stopped until the Backup is complete.
pub(super) fn stopped(observed: &Observed, upgrade: &Upgrade, now: Timestamp) -> Plan {
    let mut actions = Vec::new();
    let id = upgrade.snapshot_id.clone().unwrap_or_else(|| SnapshotId(String::new()));
    let waiting = emptied(observed, &mut actions, now);
    let waiting = waiting.unwrap_or(DatabaseWait::Upgrade(UpgradeWait::AwaitingSnapshot(id)));
    Plan::act(actions, waiting).requeue(observed.timing.requeue_interval)
}

/// The engine is stopped until the snapshot can be restored: it is not to change the data any further, and
/// the one of before must not be started on it. The restore itself is one in place.
pub(super) fn going_back(observed: &Observed, upgrade: &Upgrade, now: Timestamp) -> Plan {
    let mut actions = Vec::new();
    if let Some(waiting) = emptied(observed, &mut actions, now) {
        return Plan::act(actions, waiting).requeue(observed.timing.requeue_interval);
    }
    let soon = observed.timing.requeue_interval;
    let id = upgrade.snapshot_id.clone().unwrap_or_else(|| SnapshotId(String::new()));
    let wait = match backup(observed) {
        // EC2 lists it later than it has started it.
        Backup::Refused(RestoreRefusal::NotOurs(_)) if is_expected(observed, upgrade) => {
            DatabaseWait::Upgrade(UpgradeWait::AwaitingSnapshot(id))
        }
        Backup::Refused(refusal) => {
            let wait = DatabaseWait::Upgrade(UpgradeWait::NoWayBack(id, refusal));
            return Plan::act(actions, wait).requeue(slowly(observed));
        }
        Backup::Awaited(RestoreWait::Incomplete(_)) => {
            DatabaseWait::Upgrade(UpgradeWait::AwaitingSnapshot(id))
        }
        Backup::Awaited(wait) => DatabaseWait::Restore(wait),
        // What keeps the engine of before from being started at all.
        Backup::Fits(restored) => match prerequisites::check(observed, &mut Vec::new()) {
            Err(Plan { waiting: Some(waiting), .. }) => waiting,
            Err(_) | Ok(_) => DatabaseWait::Restore(RestoreWait::Recording(restored.snapshot_id)),
        },
    };
    Plan::act(actions, wait).requeue(soon)
}

/// Whether the Backup says that there is, or will be, a snapshot.
fn is_expected(observed: &Observed, upgrade: &Upgrade) -> bool {
    let is_missing =
        |it: &crate::api::Backup| conditions::is_true(it.conditions(), ConditionType::SnapshotMissing);
    let has_failed =
        |it: &crate::api::Backup| it.status.as_ref().is_some_and(|status| status.failure.is_some());
    let mut backups = observed.kept.backups.iter().flatten();
    backups.any(|it| it.name_any() == upgrade.backup_name && !is_missing(it) && !has_failed(it))
}

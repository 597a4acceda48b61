//! How a database goes back from an engine that did not serve: to the engine of before, and to the data of
//! the snapshot, since the other one may have written to the volume. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

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
    let went_back = UpgradeWentBack { at, message: message.clone(), data_restored: true, in_doubt: false };
    let record = Upgrade { went_back: Some(went_back), ..upgrade.clone() };
    let actions = vec![Action::RecordUpgrade(Box::new(record))];
    let wait = DatabaseWait::Upgrade(UpgradeWait::GoingBack(message));
    Plan::act(actions, wait).requeue(observed.timing.requeue_interval)
}

/// The engine is stopped until the Backup is complete.
pub(super) fn stopped(observed: &Observed, upgrade: &Upgrade, now: Timestamp) -> Plan {
    let mut actions = Vec::new();
    let waiting = emptied(observed, &mut actions, now).unwrap_or_else(|| awaiting_snapshot(upgrade));
    Plan::act(actions, waiting).requeue(observed.timing.requeue_interval)
}

fn awaiting_snapshot(upgrade: &Upgrade) -> DatabaseWait {
    DatabaseWait::Upgrade(UpgradeWait::AwaitingSnapshot(snapshot_id(upgrade)))
}

/// Before it is known, nothing is gone back to.
fn snapshot_id(upgrade: &Upgrade) -> SnapshotId {
    upgrade.snapshot_id.clone().unwrap_or_else(|| SnapshotId(String::new()))
}

/// The engine is stopped until the snapshot can be restored: it is not to change the data any further, and
/// the one of before must not be started on it. The restore itself is one in place.
pub(super) fn going_back(observed: &Observed, upgrade: &Upgrade, now: Timestamp) -> Plan {
    let mut actions = Vec::new();
    if let Some(waiting) = emptied(observed, &mut actions, now) {
        return Plan::act(actions, waiting).requeue(observed.timing.requeue_interval);
    }
    let soon = observed.timing.requeue_interval;
    let wait = match backup(observed, None) {
        // EC2 lists it later than it has started it.
        Backup::Refused(RestoreRefusal::NotOurs(_)) if is_expected(observed, upgrade) => {
            awaiting_snapshot(upgrade)
        }
        Backup::Refused(refusal) => {
            let wait = DatabaseWait::Upgrade(UpgradeWait::NoWayBack(snapshot_id(upgrade), refusal));
            return Plan::act(actions, wait).requeue(slowly(observed));
        }
        Backup::Awaited(RestoreWait::Incomplete(_)) => awaiting_snapshot(upgrade),
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
    observed.kept.backup(&upgrade.backup_name).is_some_and(|backup| {
        let has_failed = backup.status.as_ref().is_some_and(|status| status.failure.is_some());
        !has_failed && !conditions::is_true(backup.conditions(), ConditionType::SnapshotMissing)
    })
}

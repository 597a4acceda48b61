//! The sentences of a Database whose engine changes behind a backup.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::api::SnapshotId;
use crate::api::database::{Engine, EngineType, FormerEngine, Upgrade};
use crate::controller::database::messages::upgrade::{self, CHANGED, TAKEN_BACK, not_backed_up};
use crate::controller::database::wait::UpgradeWait;
use crate::controller::restoring::RestoreRefusal;

const STOPPED: &str = "orders-upgrade-1767225600-stopped";

/// One of each.
pub(super) fn waits() -> Vec<DatabaseWait> {
    let running = t("orders-upgrade-1f2e3d4c-running");
    let snapshot = || SnapshotId(t("snap-1"));
    let back =
        |message: String, data_restored: bool| UpgradeWait::WentBack { at: at(0), message, data_restored };
    let waits = complete(vec![
        UpgradeWait::AwaitingBackup(running.clone()),
        UpgradeWait::BackupFailed(running),
        UpgradeWait::NothingServed(t("questdb/questdb:9.3.4")),
        UpgradeWait::Recording,
        UpgradeWait::Opening,
        UpgradeWait::GoingBack(CHANGED.to_owned()),
        UpgradeWait::BackingUp(t(STOPPED), None),
        UpgradeWait::BackingUp(t(STOPPED), Some(t("EBS volume vol-1 is attached"))),
        UpgradeWait::GoingBack(TAKEN_BACK.to_owned()),
        UpgradeWait::AwaitingSnapshot(snapshot()),
        UpgradeWait::NoWayBack(snapshot(), RestoreRefusal::NotOurs(t("snap-1"))),
        back(t("the engine does not accept connections"), true),
        back(not_backed_up(STOPPED, Some("EBS volume vol-1 is attached")), false),
    ]);
    waits.into_iter().map(DatabaseWait::Upgrade).collect()
}

fn record() -> Upgrade {
    let engine =
        |version: &str| Engine { kind: EngineType::Questdb, version: Some(version.to_owned()), custom: None };
    Upgrade {
        from: FormerEngine { engine: engine("9.3.4"), config: BTreeMap::new() },
        to: engine("9.3.5"),
        inputs_hash: t("1f2e3d4c"),
        started_at: Time(at(0)),
        pod_uid: t("pod-uid"),
        volume_id: None,
        backup_name: t(STOPPED),
        snapshot_id: None,
        again: false,
        startable_at: None,
        tried: None,
        went_back: None,
        ended_at: None,
    }
}

/// The notes of its events.
pub(super) fn begun() -> String {
    upgrade::begun(&record())
}

pub(super) fn done() -> String {
    upgrade::done(&record())
}

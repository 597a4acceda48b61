//! A Database that begins with the data of a backup: nothing is created before it is decided which.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pretty_assertions::assert_eq;

use super::status::status_of;
use super::*;
use crate::api::backup::Consistency;
use crate::api::database::{Initialization, Restore, Restored};
use crate::api::{Backup, SnapshotId, VolumeId};
use crate::cloud::{Snapshot, SnapshotState};
use crate::controller::backup::observe::uses;
use crate::controller::database::observe::restore::{RestoreView, ending, of_backup};
use crate::controller::tests::golden::variant;

pub(super) fn shown(state: SnapshotState, namespace: &str) -> RestoreView {
    let tags = [
        ("freehold.dev/database", format!("{namespace}/former")),
        ("freehold.dev/consistency", "EngineCheckpoint".to_owned()),
        ("freehold.dev/engine", "questdb".to_owned()),
        ("freehold.dev/engine-version", "9.3.4".to_owned()),
        ("freehold.dev/file-system", "xfs".to_owned()),
    ];
    RestoreView::Shown(Box::new(Snapshot {
        id: SnapshotId("snap-1".to_owned()),
        volume: VolumeId("vol-9".to_owned()),
        size: Some(100),
        state,
        started_at: None,
        tags: tags.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<BTreeMap<_, _>>(),
    }))
}

fn restored() -> Restored {
    Restored {
        snapshot_id: SnapshotId("snap-1".to_owned()),
        size: Some(crate::api::Size::from_gib(100)),
        taken_at: None,
        consistency: Consistency::EngineCheckpoint,
        engine_version: Some("9.3.4".to_owned()),
        recovery: None,
    }
}

/// A new Database that names a Backup of which this is known.
fn new(view: RestoreView) -> Observed {
    let mut observed = empty(json!({}), json!({}));
    observed.database.spec.restore =
        Some(Restore { backup_name: Some("nightly".to_owned()), ..Restore::default() });
    observed.kept.restore = view;
    observed
}

/// Whether anything but a status is written.
fn creates(plan: &Plan) -> bool {
    plan.actions.iter().any(|action| !matches!(action, Action::RecordRestore(_)))
}

#[test]
fn nothing_is_created_before_the_snapshot_is_decided() {
    let id = || SnapshotId("snap-1".to_owned());
    for (view, stalled) in [
        (RestoreView::NotListedYet, false),
        (RestoreView::Incomplete("nightly".to_owned()), false),
        (shown(SnapshotState::Pending, "team-a"), false),
        (RestoreView::NoBackup("nightly".to_owned()), true),
        (RestoreView::Unusable("nightly".to_owned()), true),
        (RestoreView::Ending("nightly".to_owned()), true),
        (RestoreView::NotShown(id()), true),
        (shown(SnapshotState::Error, "team-a"), true),
        (shown(SnapshotState::Completed, "team-b"), true),
    ] {
        let plan = plan(&new(view.clone()), now());
        let waiting = plan.waiting.as_ref().unwrap();
        assert_eq!((variant(waiting).as_str(), waiting.is_stalled()), ("Restore", stalled), "{view:?}");
        assert_eq!(plan.actions, [], "{view:?}");
        assert!(plan.requeue.is_some(), "Backups are not watched");
    }
    let decided = plan(&new(shown(SnapshotState::Completed, "team-a")), now());
    assert_eq!(decided.actions, [Action::RecordRestore(Box::new(restored()))]);
}

#[test]
fn once_it_is_decided_the_volume_is_created_from_it_whatever_becomes_of_the_backup() {
    let mut observed = new(RestoreView::NotRead);
    observed.database.status.get_or_insert_default().restored = Some(restored());
    assert!(creates(&plan(&observed, now())));
    let volume = build::volume(&observed.database, &observed.names, "us-east-1b");
    assert_eq!(volume.spec.snapshot_id.map(|id| id.0).as_deref(), Some("snap-1"));
    assert_eq!(volume.spec.initialization_rate, None);
    let other = build::volume(&empty(json!({}), json!({})).database, &observed.names, "us-east-1b");
    assert_eq!(other.spec.snapshot_id, None);
}

#[test]
fn a_database_begins_as_large_as_the_data_that_it_begins_with() {
    let begins_with = |storage: Value| {
        let restored = json!({"snapshotID": "snap-1", "size": "144Gi", "engineVersion": "9.3.4",
            "consistency": "EngineCheckpoint"});
        let spec = json!({"storage": storage, "restore": {"backupName": "nightly"}});
        let mut world = empty(spec, json!({"restored": restored}));
        as_applied(&mut world);
        let running = json!([
            condition("Ready", "False", "AwaitingRegistration", "m"),
            condition("Launched", "True", "AsExpected", "runs")
        ]);
        let node = build::node(&world.database, &world.names, 1, None);
        let status = json!({"observedGeneration": 1, "zone": ZONE, "conditions": running});
        world.nodes = vec![node_with(node, status)];
        plan(&world, now()).actions.iter().find_map(|action| {
            let Action::CreateVolume(volume) = action else { return None };
            Some(volume.spec.size.0.clone())
        })
    };
    let policy = json!({"size": "100Gi", "autoGrow": {"maxSize": "300Gi"}});
    assert_eq!(begins_with(policy), Some("144Gi".to_owned()));
    assert_eq!(begins_with(json!({"size": "200Gi"})), Some("200Gi".to_owned()));
}

#[test]
fn the_rate_that_the_spec_requests_is_that_of_the_volume_and_only_of_one_from_a_snapshot() {
    let mut observed = new(RestoreView::NotRead);
    observed.database.spec.restore.as_mut().unwrap().initialization_rate = Some(200);
    let rate = |observed: &Observed| {
        let spec = build::volume(&observed.database, &observed.names, "us-east-1b").spec;
        (spec.snapshot_id.is_some(), spec.initialization_rate)
    };
    assert_eq!(rate(&observed), (false, None), "nothing is decided, or the status was lost");
    observed.database.status.get_or_insert_default().restored = Some(restored());
    assert_eq!(rate(&observed), (true, Some(200)));
}

#[test]
fn what_the_volume_says_of_its_initialization_is_in_the_status_and_stays_when_the_volume_is_gone() {
    let said = Initialization { progress_percent: 40, expected_end: None, ended_at: None };
    let mut observed = new(RestoreView::NotRead);
    observed.database.status.get_or_insert_default().restored = Some(restored());
    let status = |observed: &Observed| status_of(observed).initialization;
    assert_eq!(status(&observed), None);
    let mut volume = build::volume(&observed.database, &observed.names, "us-east-1b");
    volume.status.get_or_insert_default().initialization = Some(said.clone());
    observed.volume = Child::Ours(Box::new(volume));
    assert_eq!(status(&observed), Some(said.clone()));
    observed.volume = Child::Absent;
    observed.database.status.get_or_insert_default().initialization = Some(said.clone());
    assert_eq!(status(&observed), Some(said));
}

/// A Backup with the snapshot snap-1, deleted at 100 under this policy, and the Database of `new`, created at
/// this second.
fn named(policy: &str, status: serde_json::Value, created: i64) -> (Backup, Database) {
    let second = |second| jiff::Timestamp::new(second, 0).unwrap().to_string();
    let backup = serde_json::from_value(json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "Backup",
        "metadata": {"name": "nightly", "namespace": "team-a", "deletionTimestamp": second(100)},
        "spec": {"databaseName": "orders", "deletionPolicy": policy}, "status": status,
    }));
    let mut database = new(RestoreView::NotRead).database;
    database.metadata.creation_timestamp = Some(Time(jiff::Timestamp::new(created, 0).unwrap()));
    (backup.unwrap(), database)
}

#[test]
fn a_backup_that_is_deleted_with_its_snapshot_is_restored_only_where_it_waits_for_that() {
    let whole = || json!({"snapshotID": "snap-1", "completedAt": "2026-11-25T19:34:16Z"});
    let pending = || json!({"snapshotID": "snap-1"});
    let deleted = json!({"snapshotID": "snap-1", "completedAt": "2026-11-25T19:34:16Z",
        "deletedAt": "2026-11-25T19:34:16Z"});
    for (situation, policy, status, created, expected) in [
        ("retained", "Retain", whole(), 101, "Ok"),
        ("created before the deletion", "Delete", whole(), 99, "Ok"),
        ("created in the same second", "Delete", whole(), 100, "Ending"),
        ("created after the deletion", "Delete", whole(), 101, "Ending"),
        ("never complete any more", "Delete", pending(), 99, "Ending"),
        ("nothing was requested", "Delete", json!({}), 99, "Ending"),
        ("its snapshot is deleted", "Delete", deleted, 99, "Ending"),
    ] {
        let (backup, mut database) = named(policy, status, created);
        let found = of_backup(&backup, &database);
        let is = |view: &RestoreView| *view == RestoreView::Ending("nightly".to_owned());
        assert_eq!(found.is_ok(), expected == "Ok", "{situation}: {found:?}");
        assert_eq!(found.as_ref().is_err_and(is), expected == "Ending", "{situation}");
        assert_eq!(uses(&database, &backup), expected == "Ok", "{situation}: the deletion waits for it");
        let id = SnapshotId("snap-1".to_owned());
        database.spec.restore = Some(Restore { snapshot_id: Some(id.clone()), ..Restore::default() });
        let has_snapshot = backup.status.as_ref().is_some_and(|it| it.snapshot_id.is_some());
        let is_ending = ending(&id, std::slice::from_ref(&backup), &database).is_some();
        assert_eq!(is_ending, expected == "Ending" && has_snapshot, "{situation}: by its id");
        assert_eq!(uses(&database, &backup), expected == "Ok", "{situation}: by its id");
        database.status.get_or_insert_default().restored = Some(restored());
        assert_eq!(uses(&database, &backup), has_snapshot, "{situation}: a restore that has begun");
        database.status.get_or_insert_default().first_ready_at = Some(Time(now()));
        assert!(!uses(&database, &backup), "{situation}: it has the data");
    }
}

//! Tables of the Backup controller: one obvious world, and what is planned when something in it is otherwise.

mod checkpoint;
mod ending;
mod life;
mod line;
mod messages;
mod root;
mod snapshot;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use serde_json::json;

use self::line::line;
use super::observe::{ById, EngineView, Observed};
use super::plan::action::{Action, Plan, Verdict};
use super::plan::plan;
use super::wait::BackupWait;
use crate::api::backup::{
    BackupFault, BackupSource, Consistency, OwedCheckpoint, SnapshotCreation, SnapshotPolicy,
};
use crate::api::creation::{Attempt, Refusal};
use crate::api::database::EngineType;
use crate::api::keys::FINALIZER;
use crate::api::{Backup, BackupStatus, Database, SnapshotId, Volume, VolumeId};
use crate::cloud::absence::EmptyRun;
use crate::cloud::call::Call;
use crate::cloud::inventory::{SnapshotView, VolumeView};
use crate::cloud::{CloudError, EbsVolume, Snapshot, SnapshotState, VolumeState};
use crate::controller::call_blocked::CallBlocked;
use crate::controller::engine_access::{Address, EnginePod, engine};
use crate::controller::memory::issued_requests::IssuedRequest;
use crate::engine::checkpoint::CheckpointStatus;
use crate::engine::client::Tls;
use crate::settings::Timing;

/// Seconds from when the fixtures' backup was begun; the process has run for long by then.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

/// The moment of most rows; the last sync is two seconds old.
fn now() -> Timestamp {
    at(10)
}

fn backup() -> Backup {
    serde_json::from_value(json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "Backup",
        "metadata": {"name": "nightly", "namespace": "team-a", "uid": "backup-uid", "generation": 1,
            "finalizers": [FINALIZER], "creationTimestamp": at(0).to_string()},
        "spec": {"databaseName": "orders"},
    }))
    .unwrap()
}

fn database(engine: &serde_json::Value) -> Database {
    serde_json::from_value(json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "Database",
        "metadata": {"name": "orders", "namespace": "team-a", "uid": "database-uid"},
        "spec": {"engine": engine, "storage": {"size": "100Gi"}},
        "status": {"volumeName": "orders-k3f9q", "firstReadyAt": at(-1000).to_string()},
    }))
    .unwrap()
}

fn volume() -> Volume {
    serde_json::from_value(json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "Volume",
        "metadata": {"name": "orders-k3f9q", "namespace": "team-a", "uid": "volume-uid"},
        "spec": {"nodeClassName": "default", "size": "100Gi", "type": "gp3", "fileSystem": "xfs",
            "zone": "us-east-1b", "deletionPolicy": "Retain"},
        "status": {"volumeID": "vol-1", "everHeld": true, "modifications": []},
    }))
    .unwrap()
}

fn ebs(state: VolumeState) -> EbsVolume {
    EbsVolume {
        id: VolumeId("vol-1".to_owned()),
        state,
        zone: "us-east-1b".to_owned(),
        size: 100,
        volume_type: "gp3".to_owned(),
        iops: None,
        throughput: None,
        encrypted: true,
        created_at: None,
        multi_attach: false,
        attachments: Vec::new(),
        tags: BTreeMap::new(),
    }
}

fn running() -> EnginePod {
    EnginePod::Running {
        uid: "pod-uid".to_owned(),
        address: Some(Address { ip: [10, 0, 0, 1].into(), tls: Tls::IfOffered }),
        is_ready: true,
        image: Some("questdb/questdb:9.3.4".to_owned()),
    }
}

fn shows(held_since: Option<i64>) -> EngineView {
    EngineView::Shown(CheckpointStatus { held_since: held_since.map(at), now: at(9) })
}

/// A Backup with our finalizer of a QuestDB that runs and holds no checkpoint.
fn world() -> Observed {
    Observed {
        backup: backup(),
        database: Some(database(&json!({"type": "questdb", "version": "9.3.4"}))),
        volume: Some(volume()),
        volumes: VolumeView {
            volumes: vec![ebs(VolumeState::InUse)],
            modification: None,
            modification_is_known: true,
            initialization: None,
            swept_at: Some(at(8)),
            empty: None,
        },
        ebs_now: None,
        class: None,
        pod: running(),
        engine: shows(None),
        is_root_elsewhere: false,
        disk: None,
        first: None,
        ended_turn: None,
        snapshots: SnapshotView { snapshots: Vec::new(), swept_at: Some(at(8)), empty: None },
        by_id: ById::NotRead,
        issued: BTreeMap::new(),
        namespace_uid: Some("namespace-uid".to_owned()),
        teardown: false,
        users: Vec::new(),
        cluster_id: "cluster".to_owned(),
        leading_since: at(-100_000),
        timing: Timing::default(),
    }
}

fn with(mut observed: Observed, change: impl FnOnce(&mut Observed)) -> Observed {
    change(&mut observed);
    observed
}

fn status(observed: &mut Observed) -> &mut BackupStatus {
    observed.backup.status.get_or_insert_with(BackupStatus::default)
}

fn snap(name: &str) -> SnapshotId {
    SnapshotId(name.to_owned())
}

/// The release is owed since 1; the checkpoint began then, if the answer came.
fn owed(began_at: Option<i64>) -> OwedCheckpoint {
    OwedCheckpoint {
        since: Time(at(1)),
        pod_uid: "pod-uid".to_owned(),
        engine_time: MicroTime(at(1)),
        began_at: began_at.map(|began_at| MicroTime(at(began_at))),
        engine: Some(engine(&database(&json!({"type": "questdb", "version": "9.3.4"})))),
    }
}

/// The world in which this Backup's checkpoint began at 2, and is held.
fn held() -> Observed {
    with(world(), |it| {
        status(it).checkpoint = Some(owed(Some(2)));
        it.engine = shows(Some(2));
    })
}

/// The request of an attempt that was decided at 3.
fn creation(attempt: i32, when: i64, with_checkpoint: bool) -> SnapshotCreation {
    let consistency = if with_checkpoint { "Unverified" } else { "CrashConsistent" };
    let tags = [
        ("Name", "nightly".to_owned()),
        ("freehold.dev/attempt", attempt.to_string()),
        ("freehold.dev/backup-uid", "backup-uid".to_owned()),
        ("freehold.dev/cluster-id", "cluster".to_owned()),
        ("freehold.dev/consistency", consistency.to_owned()),
        ("freehold.dev/database", "team-a/orders".to_owned()),
        ("freehold.dev/engine", "questdb".to_owned()),
        ("freehold.dev/engine-version", "9.3.4".to_owned()),
        ("freehold.dev/file-system", "xfs".to_owned()),
        ("freehold.dev/namespace-uid", "namespace-uid".to_owned()),
        ("freehold.dev/purpose", "backup".to_owned()),
    ];
    SnapshotCreation {
        attempt: Attempt::new(attempt, Time(at(when))),
        volume_id: VolumeId("vol-1".to_owned()),
        with_checkpoint,
        tags: tags.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
    }
}

fn source() -> BackupSource {
    BackupSource {
        database_uid: "database-uid".to_owned(),
        volume_name: "orders-k3f9q".to_owned(),
        volume_id: VolumeId("vol-1".to_owned()),
        file_system: "xfs".to_owned(),
        engine: EngineType::Questdb,
        engine_version: Some("9.3.4".to_owned()),
        image: Some("questdb/questdb:9.3.4".to_owned()),
    }
}

/// A snapshot that this attempt made.
fn snapshot(name: &str, attempt: i32, state: SnapshotState, consistency: &str) -> Snapshot {
    let mut tags = creation(attempt, 3, true).tags;
    tags.insert("freehold.dev/consistency".to_owned(), consistency.to_owned());
    Snapshot {
        id: snap(name),
        volume: VolumeId("vol-1".to_owned()),
        size: Some(100),
        state,
        started_at: Some(at(4)),
        tags,
    }
}

fn refusal(code: &str) -> Refusal {
    Refusal { code: code.to_owned(), message: "no".to_owned(), at: Time(at(4)) }
}

fn answered(call: Call, code: &str, until: i64) -> IssuedRequest {
    let error = CloudError::new(call.as_str(), Some(code), "what EC2 says", None, None);
    let call_blocked = CallBlocked::Refused { call, error, until: Some(at(until)) };
    IssuedRequest { at: at(5), call_blocked: Some(call_blocked) }
}

/// A row: its name, the world, the moment, and the plan as `line` writes it.
type Case = (&'static str, Observed, Timestamp, &'static str);

fn hold(rows: Vec<Case>) {
    for (name, observed, now, expected) in rows {
        let plan = plan(&observed, now);
        pretty_assertions::assert_eq!(line(now, &plan), expected, "{name}");
    }
}

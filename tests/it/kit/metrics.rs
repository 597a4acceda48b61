//! What the operator serves on `/metrics`, with a value in every metric: those with labels are served once
//! they have one.

use std::time::Duration;

use freehold::api::database::Occurrence;
use freehold::api::{Backup, BackupSchedule, Database, Volume};
use freehold::metrics::{After, Metrics};
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use serde_json::json;

use super::objects;

/// The text.
pub fn text() -> String {
    let metrics = Metrics::new();
    metrics.pass("node", "ok", Duration::from_millis(1));
    metrics.ec2_call("RunInstances".to_owned(), "ok");
    metrics.inventory_age("instances", 1);
    metrics.inventory_suspect("instances", false);
    metrics.unclaimed(0, 0);
    metrics.leading(true);
    metrics.repairs_underway(1);
    metrics.machine_lost("InstanceTerminated");
    metrics.fenced(Duration::from_secs(1));
    metrics.ready(After::Creation, Duration::from_secs(1));
    metrics.joined(Duration::from_secs(1));
    metrics.occurred(Occurrence::Moved);
    metrics.shown().retained(|| vec![("team-a".to_owned(), 1)]);
    let mut copy = Writer::default();
    metrics.shown().conditions(copy.as_reader(), |database: &Database| database.conditions());
    metrics.shown().databases(copy.as_reader());
    metrics.shown().wal_archives(copy.as_reader(), |_| Some(Duration::ZERO));
    let mut database = objects::database("team-a", "default", "orders", &json!({}));
    let condition = json!({"type": "Ready", "status": "True", "reason": "AsExpected", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    database["status"] = json!({"conditions": [condition], "run": {"podUID": "uid", "restarts": 0,
        "since": "2026-01-01T00:00:00Z"}, "walArchive": {"podUID": "uid", "destination": "s3://backups",
        "volumeID": "vol-1", "state": "Archiving", "since": "2026-01-01T00:00:00Z"},
        "replacement": {"from": "a", "to": "b", "cause": "c", "startedAt": "2026-01-01T00:00:00Z"}});
    copy.apply_watcher_event(&Event::Apply(serde_json::from_value(database).unwrap()));
    let mut volumes = Writer::default();
    metrics.shown().volumes(volumes.as_reader());
    let volume = json!({"apiVersion": "freehold.dev/v1alpha1", "kind": "Volume",
        "metadata": {"name": "orders", "namespace": "team-a"},
        "spec": {"nodeClassName": "default", "zone": "us-east-1a", "size": "1Gi", "type": "gp3", "iops": 3000,
            "fileSystem": "xfs", "deletionPolicy": "Retain"},
        "status": {"size": "1Gi"}});
    let volume: Volume = serde_json::from_value(volume).unwrap();
    volumes.apply_watcher_event(&Event::Apply(volume));
    let mut backups = Writer::default();
    metrics.shown().backups(backups.as_reader());
    let at = "2026-01-01T00:00:00Z";
    let owed = json!({"since": at, "podUID": "uid", "engineTime": "2026-01-01T00:00:00.000000Z"});
    let failure = json!({"at": at, "what": "CheckpointLost"});
    for (name, status) in [
        ("complete", json!({"conditions": [], "startedAt": at, "completedAt": at})),
        ("failed", json!({"conditions": [], "failure": failure, "checkpoint": owed})),
    ] {
        let backup = json!({"apiVersion": "freehold.dev/v1alpha1", "kind": "Backup",
            "metadata": {"name": name, "namespace": "team-a"}, "spec": {"databaseName": "orders"},
            "status": status});
        backups.apply_watcher_event(&Event::Apply(serde_json::from_value::<Backup>(backup).unwrap()));
    }
    let mut schedules = Writer::default();
    metrics.shown().backup_schedules(schedules.as_reader());
    let schedule = json!({"apiVersion": "freehold.dev/v1alpha1", "kind": "BackupSchedule",
        "metadata": {"name": "nightly", "namespace": "team-a"},
        "spec": {"databaseName": "orders", "schedule": "0 3 * * *", "verify": {"schedule": "0 4 * * *"}},
        "status": {"lastTime": at, "lastVerificationTime": at, "lastVerification": {"backupName": "complete",
            "verifiedAt": at, "result": "Failed", "passedAt": at}}});
    schedules.apply_watcher_event(&Event::Apply(serde_json::from_value::<BackupSchedule>(schedule).unwrap()));
    metrics.text().unwrap()
}

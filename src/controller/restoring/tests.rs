//! Which snapshots fit which Databases.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::api::{SnapshotId, VolumeId};

fn snapshot(changes: &[(&str, &str)]) -> Snapshot {
    let tags = [
        ("freehold.dev/database", "team-a/orders"),
        ("freehold.dev/namespace-uid", "uid"),
        ("freehold.dev/consistency", "EngineCheckpoint"),
        ("freehold.dev/engine", "questdb"),
        ("freehold.dev/engine-version", "9.3.4"),
        ("freehold.dev/file-system", "xfs"),
    ];
    let mut tags: BTreeMap<String, String> =
        tags.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    for (key, value) in changes {
        tags.insert(format!("freehold.dev/{key}"), (*value).to_owned());
    }
    tags.retain(|_, value| !value.is_empty());
    Snapshot {
        id: SnapshotId("snap-1".to_owned()),
        volume: VolumeId("vol-1".to_owned()),
        size: Some(100),
        state: SnapshotState::Completed,
        started_at: Some("2026-11-25T19:34:16Z".parse().unwrap()),
        tags,
    }
}

fn database(engine: Value, storage: Value) -> Database {
    serde_json::from_value(json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "Database",
        "metadata": {"name": "copy", "namespace": "team-a", "uid": "copy-uid"},
        "spec": {"engine": engine, "storage": storage},
    }))
    .unwrap()
}

fn questdb(version: &str) -> Database {
    database(json!({"type": "questdb", "version": version}), json!({"size": "100Gi"}))
}

fn postgresql(version: &str) -> Database {
    database(json!({"type": "postgresql", "version": version}), json!({"size": "100Gi"}))
}

fn of_postgresql<'a>() -> Vec<(&'a str, &'a str)> {
    vec![("engine", "postgresql"), ("engine-version", "17.5"), ("consistency", "CrashConsistent")]
}

/// Of an adopted PostgreSQL with its data in this directory of the volume.
fn in_directory(directory: &str) -> Vec<(&str, &str)> {
    [of_postgresql(), vec![("data-directory", directory)]].concat()
}

/// The same of an image of one's own.
fn of_image(directory: &str) -> Vec<(&str, &str)> {
    vec![("engine", "custom"), ("engine-version", "a:1"), ("data-directory", directory)]
}

fn image() -> Database {
    let custom = json!({"image": "a:2", "port": 5432, "dataPath": "/data"});
    database(json!({"type": "custom", "custom": custom}), json!({"size": "100Gi"}))
}

/// The name of the refusal; empty if it fits.
fn judged(snapshot: &Snapshot, database: &Database) -> String {
    let answer = fits(snapshot, database, None, Some("uid"));
    answer.err().map(|refusal| crate::controller::tests::golden::variant(&refusal)).unwrap_or_default()
}

#[test]
fn a_snapshot_fits_the_engine_that_wrote_it_or_a_newer_one_of_its_own_namespace() {
    let crash = ("consistency", "CrashConsistent");
    let small = database(json!({"type": "questdb", "version": "9.3.4"}), json!({"size": "99Gi"}));
    let ext4 = database(
        json!({"type": "questdb", "version": "9.3.4"}),
        json!({"size": "1Ti", "fileSystem": "ext4"}),
    );
    let rows = vec![
        (snapshot(&[]), questdb("9.3.4"), ""),
        (snapshot(&[]), questdb("9.4.0"), ""),
        (snapshot(&[]), questdb("9.3.3"), "Version"),
        (snapshot(&[]), questdb("10.0.0"), "Version"),
        (snapshot(&[crash]), questdb("10.0.0"), ""),
        (snapshot(&[crash]), questdb("9.3.3"), "Version"),
        (snapshot(&[("engine-version", "")]), questdb("9.3.4"), "Version"),
        (snapshot(&[]), postgresql("17.6"), "Engine"),
        (snapshot(&of_postgresql()), postgresql("17.6"), ""),
        (snapshot(&of_postgresql()), postgresql("17.4"), "Version"),
        (snapshot(&of_postgresql()), postgresql("18.0"), "Version"),
        (snapshot(&[("database", "team-b/orders")]), questdb("9.3.4"), "NotOurs"),
        (snapshot(&[("database", "team-a")]), questdb("9.3.4"), "NotOurs"),
        (snapshot(&[("database", "")]), questdb("9.3.4"), "NotOurs"),
        (snapshot(&[("namespace-uid", "former")]), questdb("9.3.4"), "EarlierNamespace"),
        (snapshot(&[("namespace-uid", "")]), questdb("9.3.4"), ""),
        (snapshot(&[("consistency", "Unverified")]), questdb("9.3.4"), "Unverified"),
        (snapshot(&[("consistency", "")]), questdb("9.3.4"), "Unverified"),
        (Snapshot { state: SnapshotState::Error, ..snapshot(&[]) }, questdb("9.3.4"), "Failed"),
        (snapshot(&[("data-directory", ".")]), questdb("9.3.4"), ""),
        (snapshot(&[("data-directory", "questdb")]), questdb("9.3.4"), "Layout"),
        (snapshot(&[("data-directory", "unknown")]), questdb("9.3.4"), "Layout"),
        (snapshot(&in_directory("17/data")), postgresql("17.6"), ""),
        (snapshot(&in_directory(".")), postgresql("17.6"), "Layout"),
        (snapshot(&in_directory("pgdata")), postgresql("17.6"), "Layout"),
        (snapshot(&in_directory("18/data")), postgresql("17.6"), "Layout"),
        (snapshot(&of_image(".")), image(), ""),
        (snapshot(&of_image("sub/path")), image(), "Layout"),
        (snapshot(&[]), small, "Larger"),
        (snapshot(&[]), ext4, "FileSystem"),
    ];
    for (number, (snapshot, database, expected)) in rows.into_iter().enumerate() {
        assert_eq!(judged(&snapshot, &database), expected, "row {number}: {snapshot:?}");
    }
    let restored = fits(&snapshot(&[]), &questdb("9.3.4"), None, Some("uid")).unwrap();
    assert_eq!(restored.snapshot_id.0, "snap-1");
    assert_eq!(restored.consistency, Consistency::EngineCheckpoint);
}

#[test]
fn data_is_recovered_to_a_moment_after_its_snapshot_where_its_log_was_archived() {
    let archived = [of_postgresql(), vec![("wal-archive", "s3://backups/one")]].concat();
    let mut reader = postgresql("17.6");
    reader.spec.wal_archive = serde_json::from_value(json!({"destination": "s3://backups/two"})).unwrap();
    let until = |until: Value| serde_json::from_value::<PointInTime>(until).unwrap();
    let (later, same) = (json!({"time": "2026-11-25T19:34:17Z"}), json!({"time": "2026-11-25T19:34:16Z"}));
    let lsn = json!({"lsn": "0/3000148"});
    for (tags, reader, requested, expected) in [
        (&archived, &reader, &later, ""),
        (&archived, &reader, &lsn, ""),
        (&archived, &reader, &json!({}), ""),
        (&archived, &reader, &same, "TooEarly"),
        (&archived, &postgresql("17.6"), &later, "NoArchive"),
        (&of_postgresql(), &reader, &later, "NotArchived"),
    ] {
        let answer = fits(&snapshot(tags), reader, Some(&until(requested.clone())), Some("uid"));
        let refused = answer.as_ref().err().map(crate::controller::tests::golden::variant);
        assert_eq!(refused.unwrap_or_default(), expected, "{tags:?} {requested}");
        let Ok(restored) = answer else { continue };
        let recovery = restored.recovery.unwrap();
        assert_eq!(recovery.destination, "s3://backups/one", "that of the backup");
        assert_eq!(recovery.volume_id.0, "vol-1", "the folder of the volume that was backed up");
        assert_eq!(recovery.until, until(requested.clone()));
    }
    assert_eq!(fits(&snapshot(&archived), &reader, None, Some("uid")).unwrap().recovery, None);
}

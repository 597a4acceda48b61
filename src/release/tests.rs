//! What is reported of a database that Freehold made, and of one that was adopted and moved since.

use serde_json::{Value, json};

use super::found::Found;
use super::preflight::check;
use super::report::Report;
use crate::api::names::Names;
use crate::api::{Database, Node, Volume};
use crate::command::finding::Level;
use crate::controller::tests::golden::compare;

fn from_json<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn ready(status: &str) -> Value {
    json!([{"type": "Ready", "status": status, "reason": "AwaitingPod", "message": "starting the engine",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}])
}

fn database(spec: Value, status: Value) -> Database {
    let mut whole = json!({"engine": {"type": "questdb", "version": "8.2.0"}, "storage": {"size": "100Gi"}});
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let mut known = json!({"conditions": ready("True"), "credentialsSecretName": "orders-admin"});
    known.as_object_mut().unwrap().extend(status.as_object().unwrap().clone());
    from_json(json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "Database",
        "metadata": {"name": "orders", "namespace": "team-a", "uid": "6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11"},
        "spec": whole, "status": known,
    }))
}

fn node(spec: Value) -> Node {
    let mut whole = json!({"nodeClassName": "default", "instanceTypes": ["r7i.large"]});
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    from_json(json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "Node",
        "metadata": {"name": "orders-gqmgm-1", "namespace": "team-a"}, "spec": whole,
        "status": {"instanceID": "i-0123456789abcdef0", "coreNodeName": "ip-10-0-0-1"},
    }))
}

fn volume(adopt: Option<Value>) -> Volume {
    from_json(json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "Volume",
        "metadata": {"name": "orders-gqmgm", "namespace": "team-a", "uid": "volume-uid"},
        "spec": {"nodeClassName": "default", "size": "100Gi", "type": "gp3", "fileSystem": "xfs",
            "zone": "us-east-1b", "deletionPolicy": "Retain", "adopt": adopt},
        "status": {"volumeID": "vol-0123456789abcdef0"},
    }))
}

fn set(name: &str, strategy: &str, image: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "team-a", "labels": {"app": "orders"}},
        "spec": {
            "replicas": 1, "serviceName": name, "selector": {"matchLabels": {"app": "orders"}},
            "updateStrategy": {"type": strategy},
            "template": {"metadata": {"labels": {"app": "orders"}},
                "spec": {"containers": [{"name": "questdb", "image": image}]}},
        },
    })
}

/// One that Freehold made.
fn made() -> Found {
    let database = database(json!({}), json!({}));
    Found {
        names: Names::of(&database),
        nodes: vec![node(json!({}))],
        volume: Some(volume(None)),
        persistent_volume: None,
        stateful_set: Some(from_json(set("orders", "OnDelete", "questdb/questdb:8.2.0"))),
        pod: Some(from_json(json!({"metadata": {"name": "orders-0", "uid": "pod-uid"}}))),
        database,
        may_release: true,
    }
}

/// One that was adopted and has another machine since.
fn moved() -> Found {
    let adopt = json!({
        "statefulSetName": "pg-17", "claimName": "data-pg-17-0", "volumeID": "vol-0123456789abcdef0",
        "instanceID": "i-0aaaaaaaaaaaaaaaa", "serviceName": "pg",
    });
    let adoption = json!({
        "at": "2026-01-01T00:00:00Z", "podUID": "found-uid", "inputsHash": "0",
        "engine": {"type": "questdb", "version": "8.1.0"},
        "statefulSet": set("pg-17", "RollingUpdate", "questdb/questdb:8.1.0"),
    });
    let database = database(json!({"adopt": adopt}), json!({"adoption": adoption}));
    let in_place = json!({"volumeID": "vol-0123456789abcdef0", "persistentVolumeName": "pvc-1",
        "claimName": "data-pg-17-0"});
    Found {
        names: Names::of(&database),
        volume: Some(volume(Some(in_place))),
        persistent_volume: Some(from_json(json!({
            "metadata": {"name": "pvc-1", "annotations": {"freehold.dev/former-reclaim-policy": "Delete"}},
            "spec": {"persistentVolumeReclaimPolicy": "Retain"},
        }))),
        stateful_set: Some(from_json(set("pg-17", "OnDelete", "questdb/questdb:8.2.0"))),
        pod: Some(from_json(json!({"metadata": {"name": "pg-17-0", "uid": "pod-uid"}}))),
        database,
        ..made()
    }
}

fn is_as_shown(name: &str, found: &Found) {
    let report = Report::new(found, check(found));
    compare(&format!("src/release/golden/{name}.txt"), &report.text(false));
}

#[test]
fn a_database_that_freehold_made_is_reported_as_a_person_reads_it() {
    is_as_shown("made", &made());
}

#[test]
fn a_database_that_was_adopted_and_moved_is_reported_with_what_differs_from_what_was_found() {
    is_as_shown("moved", &moved());
}

#[test]
fn a_database_whose_pod_is_the_one_that_was_found_becomes_what_it_was() {
    let mut found = moved();
    found.nodes = vec![node(json!({"instanceID": "i-0aaaaaaaaaaaaaaaa"}))];
    found.pod.as_mut().unwrap().metadata.uid = Some("found-uid".to_owned());
    is_as_shown("as-found", &found);
}

#[test]
fn what_stands_before_a_release_is_a_blocker_and_what_is_awaited_a_warning() {
    let levels = |spec: Value, status: Value| {
        let found = Found { database: database(spec, status), ..made() };
        let of = |level: Level| check(&found).iter().filter(|it| it.level == level).count();
        (of(Level::Blocker), of(Level::Warning))
    };
    assert_eq!(levels(json!({}), json!({})), (0, 0));
    assert_eq!(levels(json!({"running": false}), json!({})), (1, 0));
    assert_eq!(levels(json!({"deletionProtection": true}), json!({})), (1, 0));
    assert_eq!(levels(json!({}), json!({"conditions": ready("False")})), (0, 1));
    let replacement = json!({"from": "a", "to": "b", "cause": "c", "startedAt": "2026-01-01T00:00:00Z"});
    assert_eq!(levels(json!({}), json!({"replacement": replacement})), (0, 1));
    let without_right = Found { may_release: false, ..made() };
    let finding = &check(&without_right)[0];
    assert_eq!(finding.level, Level::Blocker);
    assert!(finding.message.contains("the verb release on databases.freehold.dev"), "{finding:?}");
    let mut deleted = made();
    deleted.database.metadata.deletion_timestamp = Some(from_json(json!("2026-01-01T00:00:00Z")));
    assert_eq!(check(&deleted)[0].level, Level::Blocker, "its machine is being terminated");
    deleted.database.spec.release = true;
    // It was requested by who had the right.
    deleted.may_release = false;
    assert!(check(&deleted).iter().all(|finding| finding.level == Level::Note));
    // Its StatefulSet is released: nothing that is set now stands before that.
    let release = json!({"startedAt": "2026-01-01T00:00:00Z", "asFound": false});
    let late = database(json!({"deletionProtection": true, "running": false}), json!({"release": release}));
    deleted.database = late;
    deleted.database.metadata.deletion_timestamp = Some(from_json(json!("2026-01-01T00:00:00Z")));
    assert!(check(&deleted).iter().all(|finding| finding.level == Level::Note), "{:?}", check(&deleted));
    let owner = json!([{"apiVersion": "freehold.dev/v1alpha1", "kind": "Database", "name": "orders",
        "uid": "6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11", "controller": true}]);
    deleted.stateful_set.as_mut().unwrap().metadata.owner_references = Some(from_json(owner));
    assert_eq!(check(&deleted)[0].level, Level::Blocker, "it has not begun");
}

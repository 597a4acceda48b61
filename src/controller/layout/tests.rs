//! Where the data of databases as they are found is on their volumes.

use pretty_assertions::assert_eq;
use serde_json::{Value as Json, json};

use super::*;

/// An adopted database whose StatefulSet had this container and these volumes.
fn adopted(engine: &Json, container: &Json, pod: &Json) -> Database {
    let mut template = json!({"containers": [container]});
    if let Some(fields) = pod.as_object() {
        template.as_object_mut().unwrap().extend(fields.clone());
    }
    serde_json::from_value(json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "Database",
        "metadata": {"name": "orders", "namespace": "team-a"},
        "spec": {
            "engine": engine, "storage": {"size": "100Gi"},
            "adopt": {"statefulSetName": "pg", "claimName": "data-pg-0", "volumeID": "vol-0123456789abcdef0",
                "instanceID": "i-0123456789abcdef0", "serviceName": "pg"},
        },
        "status": {"adoption": {
            "at": "2026-11-25T19:34:16Z", "podUID": "pod", "engine": engine, "inputsHash": "hash",
            "statefulSet": {
                "metadata": {"name": "pg"},
                "spec": {
                    "serviceName": "pg", "selector": {},
                    "template": {"spec": template},
                    "volumeClaimTemplates": [{"metadata": {"name": "data"}}, {"metadata": {"name": "log"}}],
                },
            },
        }},
    }))
    .unwrap()
}

fn container(mount: &Json, changes: &Json) -> Json {
    let mut container = json!({"name": "pg", "image": "a:1", "volumeMounts": [
        mount, {"name": "log", "mountPath": "/log"},
    ]});
    if let Some(fields) = changes.as_object() {
        container.as_object_mut().unwrap().extend(fields.clone());
    }
    container
}

fn variable(name: &str, value: &str) -> Json {
    json!({"env": [{"name": name, "value": value}]})
}

#[test]
fn the_directory_of_an_adopted_postgresql_is_that_of_its_mount_and_of_its_data() {
    let (until_17, since_18) =
        (json!({"type": "postgresql", "version": "17.6"}), json!({"type": "postgresql", "version": "18.1"}));
    let mount = |path: &str| json!({"name": "data", "mountPath": path});
    let part = |key: &str| json!({"name": "data", "mountPath": "/var/lib/postgresql/data", key: "a/b/"});
    let own = "/var/lib/postgresql/data";
    let from_secret = json!({"env": [{"name": "PGDATA", "valueFrom": {"fieldRef": {"fieldPath": "a"}}}]});
    for (case, engine, mount, changes, expected) in [
        ("as its image has it", &until_17, mount(own), json!({}), "."),
        ("with a slash at the end", &until_17, mount("/var/lib/postgresql/data/"), json!({}), "."),
        ("as its image has it", &since_18, mount("/var/lib/postgresql"), json!({}), "18/docker"),
        ("below", &until_17, mount(own), variable("PGDATA", "/var/lib/postgresql/data/pgdata"), "pgdata"),
        ("by the option", &until_17, mount("/x"), json!({"args": ["postgres", "-D", "/x/y"]}), "y"),
        ("a part of the volume", &until_17, part("subPath"), json!({}), "a/b"),
        ("a part that each start decides", &until_17, part("subPathExpr"), json!({}), "unknown"),
        ("of another engine's mount", &until_17, mount("/var/lib/postgresql/database"), json!({}), "unknown"),
        ("decided elsewhere", &until_17, mount(own), from_secret, "unknown"),
        ("as Freehold has it", &until_17, mount("/v"), variable("PGDATA", "/v/17/data"), "17/data"),
    ] {
        let database = adopted(engine, &container(&mount, &changes), &json!({}));
        assert_eq!(found(&database).as_deref(), Some(expected), "{case}");
    }
}

#[test]
fn the_directory_of_an_adopted_questdb_is_that_of_its_root_with_its_tables() {
    let engine = json!({"type": "questdb", "version": "9.3.4"});
    let root = json!({"name": "data", "mountPath": "/var/lib/questdb"});
    let tables = json!({"name": "data", "mountPath": "/var/lib/questdb/db"});
    let part = json!({"name": "data", "mountPath": "/var/lib/questdb", "subPath": "questdb"});
    for (case, mount, changes, expected) in [
        ("the root", &root, json!({}), "."),
        ("another root", &root, json!({"args": ["-d", "/var/lib/questdb/here"]}), "here"),
        ("its tables where they are anyway", &root, variable("QDB_CAIRO_ROOT", "/var/lib/questdb/db"), "."),
        ("its tables apart", &root, variable("QDB_CAIRO_ROOT", "/elsewhere"), "unknown"),
        ("the tables alone", &tables, json!({}), "unknown"),
        ("a part", &part, json!({}), "questdb"),
    ] {
        let database = adopted(&engine, &container(mount, &changes), &json!({}));
        assert_eq!(found(&database).as_deref(), Some(expected), "{case}");
    }
}

#[test]
fn the_directory_of_an_image_of_ones_own_is_its_mount_and_two_mounts_are_none() {
    let engine = json!({"type": "custom", "custom": {"image": "a:1", "port": 5432, "dataPath": "/data"}});
    let whole = json!({"name": "data", "mountPath": "/data"});
    let part = json!({"name": "data", "mountPath": "/data", "subPath": "x"});
    let of = |container: &Json, pod: &Json| found(&adopted(&engine, container, pod));
    assert_eq!(of(&container(&whole, &json!({})), &json!({})).as_deref(), Some("."));
    assert_eq!(of(&container(&part, &json!({})), &json!({})).as_deref(), Some("x"));
    let twice = json!({"name": "pg", "volumeMounts": [whole, part]});
    assert_eq!(of(&twice, &json!({})).as_deref(), Some("unknown"));
    let by_claim = json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data-pg-0"}}]});
    let mounted = json!({"name": "pg", "volumeMounts": [{"name": "v", "mountPath": "/data"}]});
    assert_eq!(of(&mounted, &by_claim).as_deref(), Some("."));
    assert_eq!(of(&json!({"name": "pg"}), &json!({})).as_deref(), Some("unknown"), "it mounts none");
}

#[test]
fn of_a_database_that_was_not_adopted_nothing_is_said() {
    let engine = json!({"type": "questdb", "version": "9.3.4"});
    let mut database = adopted(&engine, &json!({"name": "pg"}), &json!({}));
    database.status = None;
    assert_eq!(found(&database).as_deref(), Some("unknown"), "it is not recorded how it was found");
    database.spec.adopt = None;
    assert_eq!(found(&database), None);
}

#[test]
fn a_new_database_looks_for_its_data_where_its_engine_has_it() {
    for (engine, expected) in [
        (json!({"type": "questdb", "version": "9.3.4"}), Some(".")),
        (json!({"type": "postgresql", "version": "17.6"}), Some("17/data")),
        (json!({"type": "custom", "custom": {"image": "a:1", "port": 5432, "dataPath": "/d"}}), Some(".")),
        (json!({"type": "postgresql", "version": "9.6"}), None),
    ] {
        let parsed: Engine = serde_json::from_value(engine.clone()).unwrap();
        assert_eq!(wanted(&parsed).as_deref(), expected, "{engine}");
    }
}

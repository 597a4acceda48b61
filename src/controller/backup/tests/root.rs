//! Whether the volume of an adopted database is its engine's root.

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use crate::controller::backup::root::is_on_volume;

/// A pod that uses the claim `data` by this mount, with this of the engine's container.
fn pod(mount: &Value, engine: &Value) -> Pod {
    let mut container = json!({"name": "engine", "volumeMounts": [
        {"name": "config", "mountPath": "/var/lib/questdb/conf"}, mount]});
    container.as_object_mut().unwrap().extend(engine.as_object().unwrap().clone());
    serde_json::from_value(json!({
        "metadata": {"name": "orders-0"},
        "spec": {"containers": [container, {"name": "sidecar"}], "volumes": [
            {"name": "config", "configMap": {"name": "orders"}},
            {"name": "disk", "persistentVolumeClaim": {"claimName": "data"}}]},
    }))
    .unwrap()
}

#[test]
fn only_a_volume_that_is_mounted_whole_as_the_root_has_the_checkpoint_in_it() {
    let at = |path: &str| json!({"name": "disk", "mountPath": path});
    let part = |path: &str| json!({"name": "disk", "mountPath": "/var/lib/questdb", "subPath": path});
    let none = || json!({});
    let by_option = || json!({"args": ["-d", "/data"]});
    let tables = |path: &str| json!({"env": [{"name": "QDB_CAIRO_ROOT", "value": path}]});
    for (situation, mount, engine, expected) in [
        ("at the root", at("/var/lib/questdb"), none(), true),
        ("with a slash", at("/var/lib/questdb/"), none(), true),
        ("an empty part", part(""), none(), true),
        ("only the tables", at("/var/lib/questdb/db"), none(), false),
        ("above the root", at("/var/lib"), none(), false),
        ("a part of the volume", part("questdb"), none(), false),
        ("elsewhere", at("/data"), none(), false),
        ("another root", at("/data"), by_option(), true),
        ("another root, and not there", at("/var/lib/questdb"), by_option(), false),
        ("the tables where they are anyway", at("/var/lib/questdb"), tables("/var/lib/questdb/db"), true),
        ("the tables in their directory", at("/var/lib/questdb"), tables("db"), true),
        ("the tables elsewhere", at("/var/lib/questdb"), tables("/fast"), false),
    ] {
        assert_eq!(is_on_volume(&pod(&mount, &engine), None, "data"), expected, "{situation}");
    }
    assert!(!is_on_volume(&pod(&at("/var/lib/questdb"), &none()), None, "other"), "another claim");
    assert!(!is_on_volume(&pod(&at("/var/lib/questdb"), &none()), Some("sidecar"), "data"));
}

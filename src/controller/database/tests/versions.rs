//! Which version, and which image, may be started on the data that is there.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::api::backup::Consistency;
use crate::api::database::Restored;
use crate::api::{Reason, SnapshotId};

#[test]
fn an_older_version_of_questdb_is_never_started_on_newer_data() {
    let world = |version: &str, started: Option<&str>| {
        let mut world = settled_as(json!({}));
        world.database =
            database(json!({"engine": {"type": "questdb", "version": version}}), settled_status());
        world.profile = engine::profile(&world.database.spec.engine, &world.database.spec.config);
        as_applied(&mut world);
        world.database.status.as_mut().unwrap().engine_version = started.map(str::to_owned);
        world
    };
    let of = |version: &str, started: Option<&str>| line(&plan(&world(version, started), now()));
    assert_eq!(of("9.3.3", Some("9.3.4")), "[] stalled InvalidSpec");
    assert_eq!(of("9.3.3", None), "[] stalled InvalidSpec", "the pod has started a newer one since");
    assert!(of("9.3.5", Some("9.3.4")).ends_with("RestartPending"));
    assert_eq!(of("9.3.4", Some("9.3.4")), "[] as wanted");
    let mut unstarted = world("9.3.3", None);
    let waiting = json!({"waiting": {"reason": "ContainerCreating"}});
    let status = json!({"phase": "Pending", "containerStatuses": [container_status(waiting)]});
    unstarted.pod = unstarted.pod.map(|pod| pod_with(pod, status));
    let line = line(&plan(&unstarted, now()));
    assert!(line.ends_with("RestartPending"), "one that never started changed nothing: {line}");
}

#[test]
fn what_wrote_the_data_of_a_backup_is_compared_until_an_engine_has_served_it() {
    let of = |version: &str, consistency: Consistency, has_served: bool| {
        let mut world = settled_as(json!({}));
        world.database =
            database(json!({"engine": {"type": "questdb", "version": version}}), settled_status());
        world.profile = engine::profile(&world.database.spec.engine, &world.database.spec.config);
        as_applied(&mut world);
        let status = world.database.status.as_mut().unwrap();
        status.engine_version = None;
        status.first_ready_at = has_served.then(|| Time(now()));
        status.restored = Some(Restored {
            snapshot_id: SnapshotId("snap-1".to_owned()),
            size: None,
            taken_at: None,
            consistency,
            engine_version: Some("9.3.4".to_owned()),
            recovery: None,
        });
        line(&plan(&world, now()))
    };
    let (checkpoint, crash) = (Consistency::EngineCheckpoint, Consistency::CrashConsistent);
    assert_eq!(of("9.3.3", checkpoint, false), "[] stalled InvalidSpec", "older, edited after the decision");
    assert_eq!(of("9.3.3", crash, false), "[] stalled InvalidSpec");
    assert_eq!(of("10.0.0", checkpoint, false), "[] stalled InvalidSpec", "it reads no checkpoint of 9");
    assert!(!of("10.0.0", crash, false).contains("InvalidSpec"));
    assert!(!of("9.3.5", checkpoint, false).contains("InvalidSpec"));
    assert!(!of("10.0.0", checkpoint, true).contains("InvalidSpec"), "the engine has recovered");
}

#[test]
fn the_user_of_an_image_cannot_change_once_the_database_was_ready() {
    let custom = |user: i64| {
        json!({"engine": {"type": "custom",
            "custom": {"image": "engine:1", "port": 8812, "dataPath": "/data", "userId": user}}})
    };
    let refusal = |user: i64, first_ready_at: Option<Time>| {
        let mut world = settled_as(custom(10001));
        world.database = database(custom(user), settled_status());
        world.profile = engine::profile(&world.database.spec.engine, &world.database.spec.config);
        as_applied(&mut world);
        world.database.status.as_mut().unwrap().first_ready_at = first_ready_at;
        let waiting = plan(&world, now()).waiting;
        waiting.filter(|waiting| waiting.reason() == Reason::InvalidSpec).map(|waiting| waiting.message())
    };
    let message = refusal(999, Some(Time(at(0)))).unwrap();
    assert!(message.contains("from 10001 to 999") && message.contains("Set userId back"), "{message}");
    assert_eq!(refusal(999, None), None, "the user may have been the wrong one");
    assert_eq!(refusal(10001, Some(Time(at(0)))), None);
}

#[test]
fn the_data_path_of_an_image_cannot_change_once_the_database_was_ready() {
    let custom = |image: &str, path: &str| {
        json!({"engine": {"type": "custom",
            "custom": {"image": image, "port": 8812, "dataPath": path}}})
    };
    let reason = |image: &str, path: &str, first_ready_at: Option<Time>| {
        let mut world = settled_as(custom("engine:1", "/var/lib/engine"));
        world.database = database(custom(image, path), settled_status());
        world.profile = engine::profile(&world.database.spec.engine, &world.database.spec.config);
        as_applied(&mut world);
        world.database.status.as_mut().unwrap().first_ready_at = first_ready_at;
        plan(&world, now()).waiting.map(|waiting| (waiting.reason(), waiting.message()))
    };
    let refused = |image: &str, path: &str, first_ready_at: Option<Time>| {
        reason(image, path, first_ready_at).is_some_and(|(reason, _)| reason == Reason::InvalidSpec)
    };
    let ready = || Some(Time(at(0)));
    assert!(refused("engine:1", "/data", ready()));
    let (_, message) = reason("engine:1", "/data", ready()).unwrap();
    assert!(message.contains("Set dataPath back"), "{message}");
    assert!(!refused("engine:2", "/data", ready()), "another image may have another path");
    assert!(!refused("engine:1", "/var/lib/engine/", None), "the path may have been wrong");
    assert!(!refused("engine:1", "/var/lib/engine", ready()));
}

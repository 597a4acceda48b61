//! How pod and machine are replaced, and how a database is paused and resumed.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::api::Size;

#[test]
fn a_changed_input_replaces_template_settings_and_then_the_pod() {
    let upgrade = || edited(json!({"engine": {"type": "questdb", "version": "9.3.5"}}));
    let first = upgrade();
    assert_eq!(line(&plan(&first, now())), "[apply config config-uid, apply set set-uid x1] RestartPending");
    let applied = |is_seen: bool| {
        let mut world = upgrade();
        let profile = world.profile.clone().unwrap();
        let files = build::config_map(&world.database, &world.names, &profile).unwrap();
        world.config_map = ours(with_uid(files, "config-uid"));
        let mut set =
            seen(with_uid(build::stateful_set(&world.database, &world.names, &profile, 1), "set-uid"));
        if !is_seen {
            set.metadata.generation = Some(6);
        }
        world.stateful_set = ours(set);
        as_applied(&mut world);
        world
    };
    assert_eq!(
        line(&plan(&applied(false), now())),
        "[] RestartPending",
        "a pod deleted now would come back from the old template"
    );
    let replaced = "[replace orders-0 pod-uid: the image changes from questdb/questdb:9.3.4 to \
        questdb/questdb:9.3.5] RestartPending";
    assert_eq!(line(&plan(&applied(true), now())), replaced);
    let mut stopping = applied(true);
    deleting(stopping.pod.as_mut().unwrap(), now().as_second() + 100);
    assert_eq!(line(&plan(&stopping, now())), "[] RestartPending");
    let mut gone = applied(true);
    gone.pod = None;
    assert_eq!(line(&plan(&gone, now())), "[] AwaitingPod");
}

#[test]
fn the_cause_of_a_restart_is_said() {
    let cause = |spec: Value| {
        let mut world = edited(spec);
        let profile = world.profile.clone().unwrap();
        let set = build::stateful_set(&world.database, &world.names, &profile, 1);
        world.config_map = ours(build::config_map(&world.database, &world.names, &profile).unwrap());
        world.stateful_set = ours(seen(with_uid(set, "set-uid")));
        as_applied(&mut world);
        line(&plan(&world, now()))
    };
    let resources = cause(json!({"resources": {"requests": {"memory": "8Gi"}}}));
    assert_eq!(resources, "[replace orders-0 pod-uid: spec.resources changed] RestartPending");
    let settings = cause(json!({"config": {"query.timeout": "60s"}}));
    assert_eq!(settings, "[replace orders-0 pod-uid: the engine's settings changed] RestartPending");
}

#[test]
fn a_template_that_only_a_newer_operator_renders_differently_is_left_as_it_is() {
    let row = planned(|world| {
        change(&mut world.stateful_set, |set| {
            let pod = set.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
            pod.termination_grace_period_seconds = Some(30);
            pod.containers[0].liveness_probe = None;
        });
        change(&mut world.config_map, |files| {
            files.data.as_mut().unwrap().insert("log.conf".to_owned(), "writers=stdout\n".to_owned());
        });
        as_applied(world);
    });
    assert_eq!(row, "[] as wanted");
}

#[test]
fn a_priority_class_is_in_every_new_template_and_restarts_nothing() {
    let with_class = |mut world: Observed| {
        world.priority_class = Some("first".to_owned());
        plan(&world, now())
    };
    assert_eq!(line(&with_class(settled())), "[] as wanted");
    let upgraded = with_class(edited(json!({"engine": {"type": "questdb", "version": "9.3.5"}})));
    let class = upgraded.actions.iter().find_map(|action| {
        let Action::ApplyStatefulSet(set) = action else { return None };
        set.spec.as_ref()?.template.spec.as_ref()?.priority_class_name.clone()
    });
    assert_eq!(class.as_deref(), Some("first"));
}

#[test]
fn a_failing_pod_of_an_outdated_template_is_replaced_without_a_hand() {
    let mut world = edited(json!({"engine": {"type": "questdb", "version": "9.3.5"}}));
    let profile = world.profile.clone().unwrap();
    world.config_map = ours(build::config_map(&world.database, &world.names, &profile).unwrap());
    world.stateful_set =
        ours(seen(with_uid(build::stateful_set(&world.database, &world.names, &profile, 1), "set-uid")));
    let state = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    world.pod = world.pod.map(|pod| {
        pod_with(
            pod,
            json!({"phase": "Running",
    "containerStatuses": [container_status(state)]}),
        )
    });
    assert!(line(&plan(&world, now())).starts_with("[replace orders-0 pod-uid"));
}

#[test]
fn an_engine_that_keeps_ending_gets_a_new_pod_and_then_less_and_less_often() {
    let recorded = |state: Value, minutes: i64, times: i32, last: &str| {
        let mut world = settled();
        let status = json!({"phase": "Running", "containerStatuses": [container_status(state)]});
        let mut pod = pod_with(world.pod.take().unwrap(), status);
        pod.metadata.creation_timestamp = Some(Time(at(now().as_second() - 60 * minutes)));
        world.pod = Some(pod);
        if times > 0 {
            let record = json!({"at": "2023-11-14T20:00:00Z", "pods": times, "podUID": last});
            world.database.status.as_mut().unwrap().not_starting = serde_json::from_value(record).unwrap();
        }
        line(&plan(&world, now()))
    };
    let failing = |state: Value, minutes: i64, times: i32| recorded(state, minutes, times, "former-uid");
    let loops = || json!({"waiting": {"reason": "CrashLoopBackOff"}});
    let replaced = |pods: i32| {
        format!(
            "[record {pods} pods, the last pod-uid, replace orders-0 pod-uid: the engine keeps ending; a new \
                pod mounts its volume again] EngineFailing"
        )
    };
    assert_eq!(failing(loops(), 9, 0), "[] EngineFailing");
    assert_eq!(failing(loops(), 10, 0), replaced(1));
    assert_eq!(failing(loops(), 19, 1), "[] EngineFailing");
    assert_eq!(failing(loops(), 20, 1), replaced(2));
    assert_eq!(failing(loops(), 79, 3), "[] EngineFailing");
    assert_eq!(failing(loops(), 80, 3), replaced(4));
    assert_eq!(failing(loops(), 639, 9), "[] EngineFailing", "however short the history is");
    assert_eq!(failing(loops(), 640, 9), replaced(10), "and never less often than that");
    assert_eq!(recorded(loops(), 10, 1, "pod-uid"), replaced(1), "a pod is counted once");
    let without_image = json!({"waiting": {"reason": "ImagePullBackOff"}});
    assert_eq!(failing(without_image, 1000, 0), "[] EngineFailing", "another pod has it no sooner");
    assert_eq!(failing(json!({"running": {}}), 1000, 0), "[] EngineStarting");
}

#[test]
fn an_engine_that_ended_before_its_volume_had_grown_gets_a_new_pod_at_once_and_once() {
    let after = |ended: &str, modified: &str, state: Value| {
        let mut world = settled();
        let mut container = container_status(state);
        container["lastState"] = json!({"terminated": {"exitCode": 1, "finishedAt": ended}});
        let status = json!({"phase": "Running", "containerStatuses": [container]});
        let mut pod = pod_with(world.pod.take().unwrap(), status);
        pod.metadata.creation_timestamp = Some(Time(at(now().as_second() - 120)));
        world.pod = Some(pod);
        change(&mut world.volume, |volume| {
            let grown = json!({"type": "Modified", "status": modified, "reason": "AsExpected", "message": "",
                "lastTransitionTime": "2023-11-14T22:12:00Z"});
            let conditions = &mut volume.status.get_or_insert_default().conditions;
            conditions.retain(|condition| condition.type_ != "Modified");
            conditions.push(serde_json::from_value(grown).unwrap());
        });
        line(&plan(&world, now()))
    };
    let loops = || json!({"waiting": {"reason": "CrashLoopBackOff"}});
    let replaced = "[replace orders-0 pod-uid: the engine ended before its volume was modified; a new pod \
        starts it at once] EngineFailing";
    assert_eq!(after("2023-11-14T22:11:59Z", "True", loops()), replaced);
    assert_eq!(after("2023-11-14T22:12:00Z", "True", loops()), "[] EngineFailing", "it was started since");
    assert_eq!(after("2023-11-14T22:11:59Z", "False", loops()), "[] EngineFailing", "not modified yet");
    assert_eq!(after("2023-11-14T22:11:59Z", "True", json!({"running": {}})), "[] EngineStarting");
}

#[test]
fn a_database_that_serves_is_not_ended_for_a_pod_that_has_no_room() {
    let wanted = json!({"resources": {"requests": {"memory": "64Gi"}}});
    let replaced = |memory: &str, is_serving: bool| {
        let mut world = edited(wanted.clone());
        let profile = world.profile.clone().unwrap();
        let set = build::stateful_set(&world.database, &world.names, &profile, 1);
        world.stateful_set = ours(seen(with_uid(set, "set-uid")));
        as_applied(&mut world);
        world.labelled[0].status =
            Some(serde_json::from_value(json!({"allocatable": {"cpu": "2", "memory": memory}})).unwrap());
        if !is_serving {
            let pending = json!({"phase": "Pending", "containerStatuses": [container_status(json!({}))]});
            world.pod = world.pod.take().map(|pod| pod_with(pod, pending));
        }
        plan(&world, now())
    };
    let kept = replaced("15742516Ki", true);
    assert!(line(&kept).ends_with("] stalled RestartPending"), "{}", line(&kept));
    assert!(!line(&kept).contains("replace orders-0"), "{}", line(&kept));
    assert_eq!(kept.requeue, Some(settled().timing.instance_sync_interval), "no Kubernetes node wakes it");
    let message = kept.waiting.unwrap().message();
    assert!(message.contains("15742516Ki of memory"), "{message}");
    assert!(line(&replaced("66Gi", true)).contains("replace orders-0"));
    assert!(line(&replaced("15742516Ki", false)).contains("replace orders-0"), "nothing serves");
}

#[test]
fn another_major_version_of_postgresql_changes_nothing_and_another_minor_restarts() {
    let spec = |version: &str| json!({"engine": {"type": "postgresql", "version": version}});
    let edited = |version: &str| {
        let mut world = settled_as(spec("17.5"));
        world.database = database(spec(version), settled_status());
        world.profile = engine::profile(&world.database.spec.engine, &world.database.spec.config);
        as_applied(&mut world);
        plan(&world, now())
    };
    assert_eq!(line(&edited("17.5")), "[] as wanted");
    assert_eq!(line(&edited("17.6")), "[apply config config-uid, apply set set-uid x1] RestartPending");
    let refused = edited("18.0");
    assert_eq!(line(&refused), "[] stalled InvalidSpec");
    let message = refused.waiting.unwrap().message();
    assert!(
        message.contains("/var/lib/freehold/18/data") && message.contains("/var/lib/freehold/17/data"),
        "{message}"
    );
}

#[test]
fn a_machine_that_never_joined_is_the_node_controllers_affair() {
    let row = planned(|world| {
        let conditions = json!([
            condition("Ready", "False", "InstanceLost", "stopped"),
            condition("Initialized", "False", "Pending", "m")
        ]);
        world.nodes = vec![node_with(
            world.nodes[0].clone(),
            json!({"observedGeneration": 1,
        "conditions": conditions}),
        )];
    });
    assert_eq!(row, "[] InstanceLost");
}

#[test]
fn a_node_whose_creation_was_not_seen_is_created_under_the_same_name_again() {
    let mut status = settled_status();
    status["nodeOrdinal"] = json!(2);
    let mut world = settled();
    world.database = database(json!({}), status);
    as_applied(&mut world);
    world.nodes = Vec::new();
    assert_eq!(line(&plan(&world, now())), "[create node 2 orders-gqmgm-2 in us-east-1b] AwaitingNode");
}

#[test]
fn a_paused_database_stops_in_order_and_keeps_its_disk() {
    let paused = |change: fn(&mut Observed)| {
        let mut world = edited(json!({"running": false}));
        change(&mut world);
        line(&plan(&world, now()))
    };
    let stopped = |world: &mut Observed| {
        change(&mut world.stateful_set, |set| {
            set.spec.as_mut().unwrap().replicas = Some(0);
            set.status.as_mut().unwrap().replicas = 0;
        });
    };
    assert_eq!(paused(|_| {}), "[scale set-uid to 0] AwaitingStop");
    let mut stopping = edited(json!({"running": false}));
    stopped(&mut stopping);
    deleting(stopping.pod.as_mut().unwrap(), now().as_second() + 60);
    assert_eq!(line(&plan(&stopping, now())), "[] AwaitingStop");
    stopping.pod = None;
    let released = "[unlabel ip-10-0-0-1 ip-10-0-0-1-uid, delete orders-gqmgm-1 orders-gqmgm-1-uid] \
        AwaitingNode";
    assert_eq!(line(&plan(&stopping, now())), released);
    deleting(&mut stopping.nodes[0], 1);
    stopping.labelled = Vec::new();
    assert_eq!(line(&plan(&stopping, now())), "[] AwaitingNode");
    stopping.nodes = Vec::new();
    assert_eq!(line(&plan(&stopping, now())), "[] Paused");
}

#[test]
fn a_stop_that_its_controller_has_not_seen_is_no_stop() {
    let mut world = edited(json!({"running": false}));
    world.pod = None;
    change(&mut world.stateful_set, |set| {
        set.spec.as_mut().unwrap().replicas = Some(0);
        set.metadata.generation = Some(6);
    });
    as_applied(&mut world);
    assert_eq!(line(&plan(&world, now())), "[] AwaitingStop", "its controller may still make a pod");
}

#[test]
fn a_pod_that_does_not_stop_in_time_does_not_keep_the_machine() {
    let mut world = edited(json!({"running": false}));
    change(&mut world.stateful_set, |set| set.spec.as_mut().unwrap().replicas = Some(0));
    deleting(world.pod.as_mut().unwrap(), now().as_second() - 1);
    let released = "[unlabel ip-10-0-0-1 ip-10-0-0-1-uid, delete orders-gqmgm-1 orders-gqmgm-1-uid] \
        AwaitingNode";
    assert_eq!(line(&plan(&world, now())), released);
}

#[test]
fn a_disk_grows_while_the_database_is_paused() {
    let mut world = edited(json!({"running": false, "storage": {"size": "200Gi"}}));
    (world.nodes, world.pod, world.core_nodes, world.labelled) = (Vec::new(), None, Vec::new(), Vec::new());
    change(&mut world.stateful_set, |set| set.spec.as_mut().unwrap().replicas = Some(0));
    assert_eq!(line(&plan(&world, now())), "[update volume-uid {\"size\":\"200Gi\"}] Paused");
}

#[test]
fn a_resumed_database_gets_a_new_machine_in_its_zone_and_the_newest_template() {
    let mut world = settled();
    (world.nodes, world.pod, world.core_nodes, world.labelled) = (Vec::new(), None, Vec::new(), Vec::new());
    change(&mut world.stateful_set, |set| set.spec.as_mut().unwrap().replicas = Some(0));
    assert_eq!(line(&plan(&world, now())), "[create node 2 orders-gqmgm-2 in us-east-1b] AwaitingNode");
    world.nodes = vec![ready_node(&world, 2)];
    world.core_nodes = vec![core_node("ip-10-0-0-1", false)];
    let row = line(&plan(&world, now()));
    assert_eq!(row, "[label ip-10-0-0-1 ip-10-0-0-1-uid, apply set set-uid x1] AwaitingPod");
}

#[test]
fn a_database_is_paused_whatever_else_is_wrong_with_it() {
    type Wrong = (&'static str, fn(&mut Observed), &'static str);
    let wrongs: [Wrong; 5] = [
        (
            "an invalid spec",
            |world| world.database.spec.storage.size = Size("50Gi".to_owned()),
            "stalled InvalidSpec",
        ),
        (
            "an unreadable Secret",
            |world| world.credentials = Credentials::Unreadable("no".to_owned()),
            "stalled CredentialsUnreadable",
        ),
        ("a foreign Service", |world| world.service = Child::Foreign, "stalled NameConflict"),
        ("a lost volume", |world| world.volume = Child::Absent, "stalled VolumeLost"),
        (
            "a crash loop",
            |world| {
                let state = json!({"waiting": {"reason": "CrashLoopBackOff"}});
                let status = json!({"phase": "Running", "containerStatuses": [container_status(state)]});
                world.pod = world.pod.take().map(|pod| pod_with(pod, status));
            },
            "Paused",
        ),
    ];
    for (name, wrong, expected) in wrongs {
        let mut world = edited(json!({"running": false}));
        wrong(&mut world);
        assert_eq!(line(&plan(&world, now())), "[scale set-uid to 0] AwaitingStop", "{name}");
        change(&mut world.stateful_set, |set| set.spec.as_mut().unwrap().replicas = Some(0));
        world.pod = None;
        let released = "[unlabel ip-10-0-0-1 ip-10-0-0-1-uid, delete orders-gqmgm-1 orders-gqmgm-1-uid] \
            AwaitingNode";
        assert_eq!(line(&plan(&world, now())), released, "{name}");
        (world.nodes, world.core_nodes, world.labelled) = (Vec::new(), Vec::new(), Vec::new());
        assert_eq!(line(&plan(&world, now())), format!("[] {expected}"), "{name}");
    }
}

//! What is done, and what is waited for, in each situation of a Database that is wanted.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::api::Reason;

#[test]
fn a_settled_world_is_left_alone() {
    let plan = plan(&settled(), now());
    assert_eq!(plan, Plan { actions: Vec::new(), waiting: None, requeue: None });
}

#[test]
fn what_the_server_and_webhooks_add_is_no_reason_to_write() {
    let row = planned(|world| {
        change(&mut world.service, |service| {
            let spec = service.spec.as_mut().unwrap();
            spec.cluster_ip = Some("10.96.0.7".to_owned());
            spec.session_affinity = Some("None".to_owned());
            service.metadata.labels.as_mut().unwrap().insert("added-by".to_owned(), "another".to_owned());
        });
        change(&mut world.stateful_set, |set| {
            set.spec.as_mut().unwrap().revision_history_limit = Some(10);
            set.spec.as_mut().unwrap().template.spec.as_mut().unwrap().dns_policy =
                Some("ClusterFirst".to_owned());
        });
    });
    assert_eq!(row, "[] as wanted");
}

#[test]
fn the_finalizer_comes_before_everything() {
    let mut world = empty(json!({}), json!({}));
    world.database.metadata.finalizers = None;
    assert_eq!(line(&plan(&world, now())), "[add finalizer] Progressing");
}

#[test]
fn a_new_database_gets_its_ways_and_then_asks_for_a_machine() {
    let row = line(&plan(&empty(json!({}), json!({})), now()));
    let expected = "[create credentials, apply config new, create account new, apply service new, \
                    apply policy new, apply budget new, create node 1 orders-gqmgm-1 in any zone] AwaitingNode";
    assert_eq!(row, expected);
}

#[test]
fn the_disk_follows_the_machine_and_only_once_an_instance_runs() {
    let launching = |conditions: Value| {
        let mut world = settled();
        world.database = database(json!({}), json!({"nodeOrdinal": 1, "nodeName": "orders-gqmgm-1"}));
        world.volume = Child::Absent;
        (world.stateful_set, world.pod, world.labelled) = (Child::Absent, None, Vec::new());
        as_applied(&mut world);
        let node = build::node(&world.database, &world.names, 1, None);
        world.nodes = vec![node_with(
            node,
            json!({"observedGeneration": 1, "zone": ZONE,
        "conditions": conditions}),
        )];
        line(&plan(&world, now()))
    };
    let pending = json!([
        condition("Ready", "False", "Launching", "starting"),
        condition("Launched", "False", "Launching", "starting")
    ]);
    assert_eq!(launching(pending), "[] Launching");
    let running = json!([
        condition("Ready", "False", "AwaitingRegistration", "m"),
        condition("Launched", "True", "AsExpected", "runs")
    ]);
    let expected = "[record us-east-1b, create volume 100Gi in us-east-1b, \
                    update orders-gqmgm-1 orders-gqmgm-1-uid {\"zone\":\"us-east-1b\"}] AwaitingRegistration";
    assert_eq!(launching(running), expected);
}

#[test]
fn a_zone_whose_record_was_lost_is_the_volumes() {
    let row = planned(|world| world.database.status.as_mut().unwrap().zone = None);
    assert_eq!(row, "[record us-east-1b] as wanted");
}

#[test]
fn a_record_of_another_zone_yields_to_the_disk() {
    let lies =
        |world: &mut Observed| world.database.status.as_mut().unwrap().zone = Some("us-east-1c".to_owned());
    assert_eq!(planned(lies), "[record us-east-1b] as wanted");
    let resumed = planned(|world| {
        lies(world);
        world.nodes = Vec::new();
    });
    assert_eq!(resumed, "[create node 2 orders-gqmgm-2 in us-east-1b] AwaitingNode");
}

#[test]
fn a_machine_in_another_zone_than_the_disk_is_released() {
    let row = planned(|world| {
        let status = json!({"observedGeneration": 1, "conditions": good(&["Ready", "Launched",
        "Initialized"]),
            "coreNodeName": "ip-10-0-0-1", "instanceID": "i-0123456789abcdef0", "zone": "us-east-1c"});
        world.nodes = vec![node_with(world.nodes[0].clone(), status)];
    });
    assert_eq!(row, "[delete orders-gqmgm-1 orders-gqmgm-1-uid] AwaitingNode");
}

#[test]
fn a_machine_that_has_no_capacity_says_so_in_its_own_words() {
    let mut world = empty(json!({}), json!({"nodeOrdinal": 1}));
    let node = build::node(&world.database, &world.names, 1, None);
    let conditions = json!([condition("Ready", "False", "InsufficientCapacity", "EC2 has none")]);
    world.nodes = vec![node_with(node, json!({"conditions": conditions}))];
    let plan = plan(&world, now());
    let waiting = plan.waiting.unwrap();
    assert_eq!((waiting.reason(), waiting.is_stalled()), (Reason::InsufficientCapacity, false));
    assert_eq!(waiting.message(), "Node orders-gqmgm-1: EC2 has none");
}

#[test]
fn a_stalled_child_stalls_the_database() {
    let row = planned(|world| {
        let conditions = json!([
            condition("Ready", "False", "NodeClassNotFound", "m"),
            condition("Stalled", "True", "NodeClassNotFound", "m")
        ]);
        world.nodes = vec![node_with(
            world.nodes[0].clone(),
            json!({"observedGeneration": 1,
        "conditions": conditions}),
        )];
    });
    assert_eq!(row, "[] stalled NodeClassNotFound");
    let row = planned(|world| {
        let conditions = json!([
            condition("Ready", "False", "VolumeLost", "m"),
            condition("Bound", "True", "AsExpected", "m"),
            condition("Stalled", "True", "VolumeLost", "m"),
        ]);
        let Child::Ours(volume) = world.volume.clone() else { panic!() };
        world.volume = ours(volume_with(*volume, json!({"observedGeneration": 1, "conditions": conditions})));
    });
    assert_eq!(row, "[] stalled VolumeLost");
}

#[test]
fn the_engine_waits_for_machine_label_and_disk() {
    let start = |change: fn(&mut Observed)| {
        planned(|world| {
            (world.stateful_set, world.pod) = (Child::Absent, None);
            change(world);
        })
    };
    assert_eq!(start(|_| {}), "[apply set new x1] AwaitingPod");
    let unlabelled = start(|world| world.labelled = Vec::new());
    assert_eq!(unlabelled, "[label ip-10-0-0-1 ip-10-0-0-1-uid, apply set new x1] AwaitingPod");
    let uninitialized = start(|world| {
        let conditions = json!([
            condition("Ready", "False", "AwaitingInitialization", "m"),
            condition("Launched", "True", "AsExpected", "m")
        ]);
        world.nodes = vec![node_with(
            world.nodes[0].clone(),
            json!({"observedGeneration": 1,
        "conditions": conditions}),
        )];
        world.labelled = Vec::new();
    });
    assert_eq!(uninitialized, "[] AwaitingInitialization");
    let unbound = start(|world| {
        let conditions = json!([
            condition("Ready", "False", "Creating", "m"),
            condition("Bound", "False", "Pending", "m")
        ]);
        let Child::Ours(volume) = world.volume.clone() else { panic!() };
        world.volume = ours(volume_with(*volume, json!({"observedGeneration": 1, "conditions": conditions})));
    });
    assert_eq!(unbound, "[] Creating");
    let gone = start(|world| world.core_nodes = Vec::new());
    assert_eq!(gone, "[] NodeNotReady");
}

#[test]
fn the_label_is_on_one_machine_at_a_time() {
    let stale = planned(|world| world.labelled.push(core_node("ip-10-0-0-9", true)));
    assert_eq!(stale, "[unlabel ip-10-0-0-9 ip-10-0-0-9-uid] as wanted");
    let occupied = planned(|world| {
        world.labelled = vec![core_node("ip-10-0-0-9", true)];
        world.pod.as_mut().unwrap().spec.as_mut().unwrap().node_name = Some("ip-10-0-0-9".to_owned());
    });
    let moves = "[unlabel ip-10-0-0-9 ip-10-0-0-9-uid, label ip-10-0-0-1 ip-10-0-0-1-uid, replace orders-0 \
                 pod-uid: pod orders-0 moves from Kubernetes node ip-10-0-0-9 to ip-10-0-0-1: the database \
                 has another machine] Moving";
    assert_eq!(occupied, moves);
    let renewed = planned(|world| {
        // The same name, another machine: the label went with the old object.
        world.core_nodes = vec![with_uid(core_node("ip-10-0-0-1", false), "second-uid")];
        world.labelled = Vec::new();
    });
    assert_eq!(renewed, "[label ip-10-0-0-1 second-uid] as wanted");
}

#[test]
fn an_edit_of_the_spec_flows_to_the_children() {
    let rows = [
        (
            json!({"storage": {"size": "200Gi", "iops": 6000, "throughput": 250}}),
            "[update volume-uid {\"iops\":6000,\"size\":\"200Gi\",\"throughput\":250}] Progressing",
        ),
        (
            json!({"deletionPolicy": "Snapshot"}),
            "[update volume-uid {\"deletionPolicy\":\"Snapshot\"}] Progressing",
        ),
        (
            json!({"instanceTypes": ["m7i.large", "r7i.large"]}),
            "[update orders-gqmgm-1 orders-gqmgm-1-uid {\"instanceTypes\":[\"m7i.large\",\"r7i.large\"]}] \
                Progressing",
        ),
        (
            json!({"nodeClassName": "big"}),
            "[update volume-uid {\"nodeClassName\":\"big\"}, \
             update orders-gqmgm-1 orders-gqmgm-1-uid {\"nodeClassName\":\"big\"}] Progressing",
        ),
    ];
    for (spec, expected) in rows {
        assert_eq!(line(&plan(&edited(spec.clone()), now())), expected, "{spec}");
    }
}

#[test]
fn a_setting_of_the_disk_that_was_taken_out_is_taken_out_of_the_volume() {
    let mut world = settled_as(json!({"storage": {"size": "100Gi", "iops": 6000}}));
    world.database = database(json!({}), settled_status());
    as_applied(&mut world);
    assert_eq!(line(&plan(&world, now())), "[update volume-uid {\"iops\":null}] Progressing");
}

#[test]
fn ready_of_an_older_generation_does_not_count() {
    let row = planned(|world| change(&mut world.volume, |volume| volume.metadata.generation = Some(2)));
    assert_eq!(row, "[] AwaitingVolume");
    let row = planned(|world| world.nodes[0].metadata.generation = Some(2));
    assert_eq!(row, "[] AwaitingNode");
}

#[test]
fn the_engines_own_troubles_are_waited_for() {
    let rows = [
        (json!({"waiting": {"reason": "ImagePullBackOff", "message": "m"}}), "[] EngineFailing"),
        (json!({"waiting": {"reason": "ContainerCreating"}}), "[] AwaitingPod"),
        (json!({"running": {}}), "[] EngineStarting"),
    ];
    for (state, expected) in rows {
        let row = planned(|world| {
            let status = json!({"phase": "Pending", "containerStatuses": [container_status(state.clone())]});
            world.pod = world.pod.take().map(|pod| pod_with(pod, status));
        });
        assert_eq!(row, expected, "{state}");
    }
    assert_eq!(planned(|world| world.pod = None), "[] AwaitingPod");
}

#[test]
fn more_than_one_replica_is_made_one_again() {
    let row =
        planned(|world| change(&mut world.stateful_set, |set| set.spec.as_mut().unwrap().replicas = Some(3)));
    assert_eq!(row, "[scale set-uid to 1] as wanted");
}

#[test]
fn a_spec_that_cannot_be_changes_nothing() {
    let rows = [
        (json!({"engine": {"type": "questdb"}}), "spec.engine.version"),
        (json!({"engine": {"type": "questdb", "version": "7.0.0"}}), "use 8.1.0 or later"),
        (json!({"engine": {"type": "custom"}}), "spec.engine.custom"),
        (json!({"config": {"pg.password": "x"}}), "pg.password"),
        (json!({"storage": {"size": "50Gi"}}), "EBS volumes only grow"),
        (json!({"storage": {"size": "1e9"}}), "whole number of GiB"),
        (
            json!({"storage": {"size": "100Gi", "fileSystem": "ext4"}}),
            "spec.storage.fileSystem cannot change",
        ),
        (json!({"storage": {"size": "100Gi", "type": "io2"}}), "spec.storage.iops is required"),
        (json!({"storage": {"size": "100Gi", "type": "gp4"}}), "use one of gp2, gp3, io1"),
        (json!({"storage": {"size": "100Gi", "type": "gp2", "iops": 100}}), "spec.storage.iops is not for"),
        (
            json!({"storage": {"size": "100Gi", "type": "io2", "iops": 100, "throughput": 200}}),
            "spec.storage.throughput",
        ),
        (json!({"zones": ["us-east-1a"]}), "spec.zones does not hold us-east-1b"),
        (json!({"instanceTypes": []}), "spec.instanceTypes"),
    ];
    for (spec, expected) in rows {
        let plan = plan(&edited(spec.clone()), now());
        let waiting = plan.waiting.unwrap();
        assert_eq!(
            (plan.actions.len(), waiting.reason(), waiting.is_stalled()),
            (0, Reason::InvalidSpec, true),
            "{spec}"
        );
        assert!(waiting.message().contains(expected), "{spec}: {}", waiting.message());
    }
    let mut world = settled();
    world.names.database = "Orders".to_owned();
    assert_eq!(line(&plan(&world, now())), "[] stalled InvalidSpec");
}

#[test]
fn a_name_that_belongs_to_another_owner_stops_everything_and_is_named() {
    type Row = (&'static str, fn(&mut Observed));
    let rows: Vec<Row> = vec![
        ("Secret orders-admin", |world| world.credentials = Credentials::Read(Child::Foreign)),
        ("ConfigMap orders-config", |world| world.config_map = Child::Foreign),
        ("Service orders", |world| world.service = Child::Foreign),
        ("ServiceAccount orders-gqmgm", |world| world.service_account = Child::Foreign),
        ("NetworkPolicy orders", |world| world.network_policy = Child::Foreign),
        ("StatefulSet orders", |world| world.stateful_set = Child::Foreign),
        ("Pod orders-0", |world| world.is_pod_foreign = true),
        ("Volume orders-gqmgm", |world| world.volume = Child::Foreign),
        ("Node orders-gqmgm-1", |world| world.node_name_taken = Some("orders-gqmgm-1".to_owned())),
    ];
    for (expected, change) in rows {
        let mut world = empty(json!({}), json!({}));
        change(&mut world);
        let plan = plan(&world, now());
        let waiting = plan.waiting.unwrap();
        assert_eq!(
            (plan.actions.len(), waiting.reason(), waiting.is_stalled()),
            (0, Reason::NameConflict, true),
            "{expected}"
        );
        assert!(
            waiting.message().starts_with(&format!("{expected} in namespace team-a")),
            "{}",
            waiting.message()
        );
        assert!(plan.requeue.is_some(), "nothing wakes us when it goes");
    }
}

#[test]
fn credentials_are_made_once_and_never_again() {
    let rows: Vec<(&str, Credentials)> = vec![
        ("deleted", Credentials::Read(Child::Absent)),
        ("unreadable", Credentials::Unreadable("secrets is forbidden".to_owned())),
        ("empty", Credentials::Read(ours(HeldSecret(secret_with(b""))))),
        ("the engine's default", Credentials::Read(ours(HeldSecret(secret_with(b"quest"))))),
        ("a line break", Credentials::Read(ours(HeldSecret(secret_with(b"abcdefghijklmnopqrstuvwxyz\n"))))),
    ];
    for (name, credentials) in rows {
        let row = planned(|world| world.credentials = credentials);
        assert_eq!(row, "[] stalled CredentialsUnreadable", "{name}");
    }
}

#[test]
fn a_volume_that_is_gone_is_never_replaced_by_an_empty_one() {
    let gone = planned(|world| {
        world.volume = Child::Absent;
        world.nodes = Vec::new();
    });
    assert_eq!(gone, "[] stalled VolumeLost", "and no machine is launched for it");
    let going = planned(|world| change(&mut world.volume, |volume| deleting(volume, 1)));
    assert_eq!(going, "[] stalled VolumeLost");
}

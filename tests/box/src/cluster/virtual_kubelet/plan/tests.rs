//! What the virtual kubelet writes, and above all what it does not.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::base::names::{BOOT_ANNOTATION, EBS_DRIVER};

fn object<K: DeserializeOwned>(value: Value) -> Arc<K> {
    Arc::new(serde_json::from_value(value).unwrap())
}

fn node(lives: bool, boot: &str) -> Arc<Node> {
    let labels = if lives { json!({HEARTBEAT_LABEL: HEARTBEAT_VALUE}) } else { json!({}) };
    object(json!({"metadata": {"name": "machine", "labels": labels, "annotations": {BOOT_ANNOTATION: boot}}}))
}

fn pod_with(image: &str, mut metadata: Value, status: &Value) -> Arc<Pod> {
    for (key, value) in [("name", "db-0"), ("namespace", "team"), ("uid", "u1")] {
        metadata[key] = json!(value);
    }
    object(json!({
        "metadata": metadata, "status": status,
        "spec": {
            "nodeName": "machine",
            "containers": [{"name": "engine", "image": image}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        },
    }))
}

fn pod() -> Arc<Pod> {
    pod_with("questdb", json!({}), &json!({"phase": "Pending"}))
}

/// A pod with one volume on one machine; the volume is attached or not.
fn world(pod: Arc<Pod>, node: Arc<Node>, attached: bool) -> World {
    World {
        pods: vec![pod],
        nodes: vec![node],
        claims: vec![object(json!({
            "metadata": {"name": "data", "namespace": "team"}, "spec": {"volumeName": "pv"},
            "status": {"phase": "Bound", "capacity": {"storage": "10Gi"}},
        }))],
        volumes: vec![object(json!({
            "metadata": {"name": "pv"},
            "spec": {"capacity": {"storage": "10Gi"}, "csi": {"driver": EBS_DRIVER, "volumeHandle": "vol-1"}},
        }))],
        secrets: Vec::new(),
        config_maps: Vec::new(),
        attachments: vec![object(json!({
            "metadata": {"name": "a"},
            "spec": {"attacher": EBS_DRIVER, "nodeName": "machine", "source": {"persistentVolumeName": "pv"}},
            "status": {"attached": attached},
        }))],
    }
}

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn actions(world: &World) -> Vec<Action> {
    plan(world, now(), &mut Addresses::default())
}

fn pod_status(world: &World) -> Option<Value> {
    actions(world).into_iter().find_map(|action| match action {
        Action::SetPodStatus { status, .. } => Some(status),
        Action::EndPod { .. } | Action::SetVolumesInUse { .. } | Action::GrowFileSystem { .. } => None,
    })
}

/// The pod as it is after the kubelet's write.
fn after(world: &World) -> Arc<Pod> {
    let mut pod = world.pods[0].as_ref().clone();
    pod.status = Some(serde_json::from_value(pod_status(world).unwrap()).unwrap());
    Arc::new(pod)
}

#[test]
fn a_pod_waits_until_its_volume_is_attached() {
    let status = pod_status(&world(pod(), node(true, "1"), false)).unwrap();
    assert_eq!(status["phase"], "Pending");
    assert_eq!(status["containerStatuses"][0]["state"]["waiting"]["reason"], "ContainerCreating");
    assert_eq!(status["podIP"], Value::Null);
}

#[test]
fn a_pod_runs_once_its_volume_is_attached() {
    let status = pod_status(&world(pod(), node(true, "1"), true)).unwrap();
    assert_eq!(status["phase"], "Running");
    assert_eq!(status["containerStatuses"][0]["ready"], true);
    assert_eq!(status["podIP"], "10.128.0.1");
    let ready = status["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|condition| condition["type"] == "Ready")
        .unwrap();
    assert_eq!(ready["status"], "True");
}

#[test]
fn what_was_written_is_not_written_again() {
    for attached in [false, true] {
        let first = world(pod(), node(true, "1"), attached);
        let second = world(after(&first), node(true, "1"), attached);
        assert_eq!(pod_status(&second), None, "attached: {attached}");
    }
}

#[test]
fn a_dead_machine_plays_nothing() {
    let gone = pod_with(
        "questdb",
        json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        &json!({"phase": "Running"}),
    );
    for pod in [pod(), gone] {
        assert_eq!(actions(&world(pod, node(false, "1"), true)), []);
    }
}

#[test]
fn a_deleted_pod_ends_on_a_living_machine() {
    let gone = pod_with(
        "questdb",
        json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}),
        &json!({"phase": "Running"}),
    );
    let ends = Action::EndPod { namespace: "team".to_owned(), name: "db-0".to_owned(), uid: "u1".to_owned() };
    assert!(actions(&world(gone, node(true, "1"), true)).contains(&ends));
}

#[test]
fn a_machine_that_boots_again_has_restarted_its_containers() {
    let running = after(&world(pod(), node(true, "1"), true));
    let status = pod_status(&world(running, node(true, "2"), true)).unwrap();
    assert_eq!(status["containerStatuses"][0]["restartCount"], 1);
    assert_eq!(status["podIP"], "10.128.0.1");
}

#[test]
fn a_pod_that_the_node_controller_called_unready_is_ready_again_without_a_restart() {
    let mut running = after(&world(pod(), node(true, "1"), true)).as_ref().clone();
    for condition in running.status.as_mut().unwrap().conditions.as_mut().unwrap() {
        condition.status = "False".to_owned();
    }
    let status = pod_status(&world(Arc::new(running), node(true, "1"), true)).unwrap();
    assert_eq!(status["containerStatuses"][0]["restartCount"], 0);
}

#[test]
fn an_image_that_does_not_exist_is_not_pulled() {
    let bad = pod_with("questdb:does-not-exist", json!({}), &json!({"phase": "Pending"}));
    let status = pod_status(&world(bad, node(true, "1"), true)).unwrap();
    assert_eq!(status["containerStatuses"][0]["state"]["waiting"]["reason"], "ErrImagePull");
}

#[test]
fn the_conditions_of_others_are_kept() {
    let scheduled = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]});
    let status =
        pod_status(&world(pod_with("questdb", json!({}), &scheduled), node(true, "1"), true)).unwrap();
    assert!(
        status["conditions"].as_array().unwrap().iter().any(|condition| condition["type"] == "PodScheduled")
    );
}

#[test]
fn a_mounted_volume_is_in_use_until_its_pod_is_gone() {
    let mut world = world(pod(), node(true, "1"), true);
    let in_use = |volumes: &[&str]| Action::SetVolumesInUse {
        node: "machine".to_owned(),
        version: None,
        volumes: volumes.iter().map(|&name| name.to_owned()).collect(),
    };
    let mounted = "kubernetes.io/csi/ebs.csi.aws.com^vol-1";
    assert!(actions(&world).contains(&in_use(&[mounted])));

    let mut node = world.nodes[0].as_ref().clone();
    node.status.get_or_insert_default().volumes_in_use = Some(vec![mounted.to_owned()]);
    world.nodes = vec![Arc::new(node)];
    assert!(!actions(&world).contains(&in_use(&[mounted])));

    world.pods.clear();
    assert_eq!(actions(&world), [in_use(&[])]);
}

#[test]
fn a_file_system_grows_only_under_a_running_pod() {
    let mut world = world(pod(), node(true, "1"), true);
    let mut volume = world.volumes[0].as_ref().clone();
    volume.spec.as_mut().unwrap().capacity =
        Some([("storage".to_owned(), Quantity("20Gi".to_owned()))].into());
    world.volumes = vec![Arc::new(volume)];
    let grows =
        |world: &World| actions(world).iter().any(|action| matches!(action, Action::GrowFileSystem { .. }));
    assert!(!grows(&world));
    world.pods = vec![after(&world)];
    assert!(grows(&world));
}

#[test]
fn addresses_are_never_given_twice() {
    let mut addresses = Addresses::default();
    addresses.learn(&[pod_with("questdb", json!({}), &json!({"podIP": "10.128.1.7"}))]);
    assert_eq!([addresses.next(), addresses.next()], ["10.128.1.8", "10.128.1.9"]);
}

#[test]
fn a_pod_does_not_start_without_the_secret_that_it_names() {
    let mut asking = pod().as_ref().clone();
    asking.spec.as_mut().unwrap().containers[0].env = serde_json::from_value(json!([
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "admin", "key": "password"}}},
        {"name": "EXTRA", "valueFrom": {"configMapKeyRef": {"name": "extra", "key": "a", "optional": true}}},
    ]))
    .unwrap();
    let mut world = world(Arc::new(asking), node(true, "1"), true);
    let waiting =
        |world: &World| pod_status(world).unwrap()["containerStatuses"][0]["state"]["waiting"].clone();
    assert_eq!(
        waiting(&world),
        json!({"reason": "CreateContainerConfigError",
    "message": "secret \"admin\" not found"})
    );
    let secret = |key: &str| {
        object(json!({"metadata": {"name": "admin", "namespace": "team"},
    "data": {key: "eA=="}}))
    };
    world.secrets = vec![secret("user")];
    assert_eq!(waiting(&world)["message"], "couldn't find key password in secret admin");
    world.secrets = vec![secret("password")];
    assert_eq!(pod_status(&world).unwrap()["phase"], "Running");
}

#[test]
fn a_pod_does_not_start_without_the_config_that_it_mounts() {
    let mut mounting = pod().as_ref().clone();
    let config = serde_json::from_value(json!({"name": "config",
    "configMap": {"name": "settings"}}))
    .unwrap();
    mounting.spec.as_mut().unwrap().volumes.as_mut().unwrap().push(config);
    let mut world = world(Arc::new(mounting), node(true, "1"), true);
    let status = pod_status(&world).unwrap();
    assert_eq!(
        status["containerStatuses"][0]["state"]["waiting"]["message"],
        "configmap \"settings\" not found"
    );
    world.config_maps = vec![object(json!({"metadata": {"name": "settings", "namespace": "team"}}))];
    assert_eq!(pod_status(&world).unwrap()["phase"], "Running");
}

#[test]
fn a_running_pod_goes_on_whatever_is_taken_from_under_it() {
    let mut world = world(pod(), node(true, "1"), true);
    world.pods = vec![after(&world)];
    world.attachments.clear();
    assert_eq!(pod_status(&world), None);
}

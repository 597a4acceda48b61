//! The status of a pod on a virtual machine: what its containers do, and since when.

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Node, Pod, PodCondition};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::action::Action;
use super::addresses::Addresses;
use super::world::World;
use super::{references, volumes};
use crate::base::names::BOOT_ANNOTATION;

/// A container image with this in its name cannot be pulled: how a test asks for a bad image.
const UNPULLABLE: &str = "does-not-exist";

/// The pod conditions that a kubelet owns; the others are left as they are.
const OWN_CONDITIONS: [&str; 4] = ["PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"];

/// The phase of a pod.
pub fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}

/// What a pod's containers do.
enum State {
    Waiting { reason: &'static str, message: String },
    Running,
}

/// What keeps a pod from starting, in the order in which a kubelet meets it.
fn starting(world: &World, node: &Node, pod: &Pod) -> State {
    let unpullable =
        pod.spec.iter().flat_map(|spec| &spec.containers).map(image).find(|image| image.contains(UNPULLABLE));
    if let Some(volume) = volumes::unattached(world, node, pod) {
        State::Waiting {
            reason: "ContainerCreating",
            message: format!("waiting for volume {volume} to be attached"),
        }
    } else if let Some(message) = references::missing(world, pod) {
        State::Waiting { reason: "CreateContainerConfigError", message }
    } else if let Some(image) = unpullable {
        State::Waiting { reason: "ErrImagePull", message: format!("image {image} not found") }
    } else {
        State::Running
    }
}

/// Whether all containers were started in this boot. They go on then, whatever is deleted or detached under
/// them.
fn has_started(pod: &Pod, uid: &str, boot: &str) -> bool {
    let statuses =
        pod.status.as_ref().and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    !statuses.is_empty()
        && statuses.iter().all(|status| status.container_id == Some(container_id(uid, boot, &status.name)))
}

/// A container's id names the boot, so a container of an earlier boot counts as restarted.
fn container_id(uid: &str, boot: &str, name: &str) -> String {
    format!("box://{boot}/{uid}/{name}")
}

/// Brings one pod's status to what its machine does.
pub fn of_pod(
    world: &World,
    node: &Node,
    pod: &Pod,
    now: Timestamp,
    addresses: &mut Addresses,
) -> Option<Action> {
    let (namespace, name, uid) = (pod.namespace().unwrap_or_default(), pod.name_any(), pod.uid()?);
    if pod.metadata.deletion_timestamp.is_some() {
        // At grace 0 the kubelet's last word was said already, and only a finalizer keeps the object.
        let said = pod.metadata.deletion_grace_period_seconds == Some(0);
        return (!said).then_some(Action::EndPod { namespace, name, uid });
    }
    let containers = &pod.spec.as_ref()?.containers;
    let boot = node.annotations().get(BOOT_ANNOTATION).map_or("0", String::as_str);
    let state = if has_started(pod, &uid, boot) { State::Running } else { starting(world, node, pod) };
    let statuses: Vec<Value> = containers
        .iter()
        .map(|container| container_status(container, pod, &uid, boot, &state, now))
        .collect();
    let is_running = matches!(state, State::Running);
    let before = pod.status.clone().unwrap_or_default();
    let is_as_it_should_be = before.phase.as_deref() == Some(if is_running { "Running" } else { "Pending" })
        && before
            .container_statuses
            .iter()
            .flatten()
            .zip(&statuses)
            .filter(|(old, new)| is_same(old, new))
            .count()
            == containers.len()
        && is_pod_ready(pod) == is_running;
    if is_as_it_should_be {
        return None;
    }
    let address = before.pod_ip.clone().or_else(|| is_running.then(|| addresses.next()));
    let host = host_address(node);
    let status = json!({
        "phase": if is_running { "Running" } else { "Pending" },
        "conditions": conditions(before.conditions.as_deref().unwrap_or_default(), pod, &state, now),
        "containerStatuses": statuses,
        "initContainerStatuses": init_statuses(pod, is_running, now),
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": address,
        "podIPs": address.as_ref().map(|ip| json!([{"ip": ip}])),
        "startTime": before.start_time.map_or(now, |time| time.0),
    });
    Some(Action::SetPodStatus { namespace, name, version: pod.resource_version(), status })
}

fn image(container: &Container) -> &str {
    container.image.as_deref().unwrap_or_default()
}

/// A container's status.
fn container_status(
    container: &Container,
    pod: &Pod,
    uid: &str,
    boot: &str,
    state: &State,
    now: Timestamp,
) -> Value {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    let before = statuses.and_then(|all| all.iter().find(|status| status.name == container.name));
    let id = container_id(uid, boot, &container.name);
    let id_before = before.and_then(|status| status.container_id.as_deref()).unwrap_or_default();
    let has_restarted = !id_before.is_empty() && id_before != id;
    let restarts = before.map_or(0, |status| status.restart_count) + i32::from(has_restarted);
    let started = before
        .filter(|_| !has_restarted)
        .and_then(|status| status.state.as_ref()?.running.as_ref()?.started_at.as_ref())
        .map_or(now, |time| time.0);
    match state {
        State::Running => json!({
            "name": container.name, "image": image(container), "imageID": image(container), "containerID": id,
            "ready": true, "started": true, "restartCount": restarts,
            "state": {"running": {"startedAt": started}},
        }),
        State::Waiting { reason, message } => json!({
            "name": container.name, "image": image(container), "imageID": "", "ready": false,
            "started": false,
            "restartCount": restarts, "state": {"waiting": {"reason": reason, "message": message}},
        }),
    }
}

fn is_same(old: &ContainerStatus, new: &Value) -> bool {
    let waits = |status: &ContainerStatus| {
        status
            .state
            .as_ref()
            .and_then(|state| state.waiting.as_ref())
            .map(|waiting| (waiting.reason.clone(), waiting.message.clone()))
    };
    serde_json::from_value::<ContainerStatus>(new.clone()).is_ok_and(|new| {
        (&old.name, &old.container_id, waits(old)) == (&new.name, &new.container_id, waits(&new))
    })
}

fn init_statuses(pod: &Pod, is_running: bool, now: Timestamp) -> Value {
    let containers = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let statuses = containers.map(|container| {
        let state = if is_running {
            json!({"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}})
        } else {
            json!({"waiting": {"reason": "PodInitializing"}})
        };
        json!({
            "name": container.name, "image": image(container), "imageID": "", "ready": is_running,
            "restartCount": 0, "state": state,
        })
    });
    let statuses: Vec<Value> = statuses.collect();
    if statuses.is_empty() { Value::Null } else { Value::Array(statuses) }
}

/// The kubelet's own conditions beside those of others; a transition time changes only with its status.
/// A kubelet makes the sandbox when the volumes are there, and pulls an image for each container then.
fn conditions(before: &[PodCondition], pod: &Pod, state: &State, now: Timestamp) -> Vec<Value> {
    let is_running = matches!(state, State::Running);
    let has_sandbox = !matches!(state, State::Waiting { reason: "ContainerCreating", .. });
    let is_prepared = pod.spec.as_ref().is_some_and(|spec| spec.init_containers.is_none()) && has_sandbox;
    let own = OWN_CONDITIONS.map(|kind| {
        let is_so = match kind {
            "PodReadyToStartContainers" => has_sandbox,
            "Initialized" => is_prepared || is_running,
            _ => is_running,
        };
        let status = if is_so { "True" } else { "False" };
        let same = before.iter().find(|condition| condition.type_ == kind && condition.status == status);
        let since =
            same.and_then(|condition| condition.last_transition_time.as_ref()).map_or(now, |time| time.0);
        let mut condition = json!({"type": kind, "status": status, "lastTransitionTime": since});
        if !is_so {
            condition["reason"] = json!("ContainersNotReady");
        }
        condition
    });
    let others = before
        .iter()
        .filter(|condition| !OWN_CONDITIONS.contains(&condition.type_.as_str()))
        .map(|condition| json!(condition));
    others.chain(own).collect()
}

fn is_pod_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| {
        all.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    })
}

fn host_address(node: &Node) -> String {
    let addresses = node.status.iter().flat_map(|status| status.addresses.iter().flatten());
    let internal = addresses
        .filter(|address| address.type_ == "InternalIP")
        .map(|address| address.address.clone())
        .next();
    internal.unwrap_or_else(|| "127.0.0.1".to_owned())
}

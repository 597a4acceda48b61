//! What the virtual kubelet should write now: a function of the objects that it sees.

mod references;
mod world;

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::{Value, json};

pub use world::World;

use crate::base::names::{BOOT_ANNOTATION, EBS_DRIVER, HEARTBEAT_LABEL, HEARTBEAT_VALUE};
use crate::base::quantity;

/// A container image with this in its name cannot be pulled: how a test asks for a bad image.
const UNPULLABLE: &str = "does-not-exist";

/// The pod conditions that a kubelet owns; the others are left as they are.
const OWN_CONDITIONS: [&str; 4] = ["PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"];

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A pod's status.
    SetPodStatus {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// The version that was seen.
        version: Option<String>,
        /// The fields to set.
        status: Value,
    },
    /// A deleted pod has ended: the object goes.
    EndPod {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its UID.
        uid: String,
    },
    /// A Node's list of volumes that the attach/detach controller must not take away yet.
    SetVolumesInUse {
        /// The Node.
        node: String,
        /// The version that was seen.
        version: Option<String>,
        /// Their unique names.
        volumes: Vec<String>,
    },
    /// The file system was grown to the volume's size.
    GrowFileSystem {
        /// Its namespace.
        namespace: String,
        /// The PVC.
        claim: String,
        /// The version that was seen.
        version: Option<String>,
        /// The new size.
        capacity: Quantity,
    },
}

/// Gives each pod an address of its own, in 10.128.0.0/9.
#[derive(Debug, Default)]
pub struct Addresses {
    last: u32,
}

impl Addresses {
    /// Never gives an address again that a pod of `pods` (of an earlier run of this box) has.
    fn learn(&mut self, pods: &[Arc<Pod>]) {
        let taken = pods.iter().filter_map(|pod| pod.status.as_ref()?.pod_ip.as_deref()?.parse::<std::net::Ipv4Addr>().ok());
        let highest = taken.map(|address| u32::from(address) & 0x007f_ffff).max().unwrap_or_default();
        self.last = self.last.max(highest);
    }

    fn next(&mut self) -> String {
        self.last += 1;
        std::net::Ipv4Addr::from(0x0a80_0000 | (self.last & 0x007f_ffff)).to_string()
    }
}

/// Everything that should be written now.
pub fn plan(world: &World, now: Timestamp, addresses: &mut Addresses) -> Vec<Action> {
    addresses.learn(&world.pods);
    let mut actions = Vec::new();
    for node in world.nodes.iter().filter(|node| lives(node)) {
        let name = node.name_any();
        let pods = || world.pods.iter().filter(|pod| is_bound_to(pod, &name) && !has_finished(pod));
        for pod in pods() {
            actions.extend(run_pod(world, node, pod, now, addresses));
            actions.extend(grow(world, pod));
        }
        actions.extend(volumes_in_use(world, node, pods()));
    }
    actions
}

/// Whether a Node's Ready condition is True.
pub fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True"))
}

fn lives(node: &Node) -> bool {
    node.labels().get(HEARTBEAT_LABEL).is_some_and(|value| value == HEARTBEAT_VALUE)
}

fn is_bound_to(pod: &Pod, node: &str) -> bool {
    pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_deref() == Some(node))
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}

fn has_finished(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// What a pod's containers do.
enum State {
    Waiting { reason: &'static str, message: String },
    Running,
}

/// What keeps a pod from starting, in the order in which a kubelet meets it.
fn starting(world: &World, node: &Node, pod: &Pod) -> State {
    let unpullable = pod.spec.iter().flat_map(|spec| &spec.containers).map(image).find(|image| image.contains(UNPULLABLE));
    if let Some(volume) = unattached(world, node, pod) {
        State::Waiting { reason: "ContainerCreating", message: format!("waiting for volume {volume} to be attached") }
    } else if let Some(message) = references::missing(world, pod) {
        State::Waiting { reason: "CreateContainerConfigError", message }
    } else if let Some(image) = unpullable {
        State::Waiting { reason: "ErrImagePull", message: format!("image {image} not found") }
    } else {
        State::Running
    }
}

/// Whether all containers were started in this boot. They go on then, whatever is deleted or detached under them.
fn has_started(pod: &Pod, uid: &str, boot: &str) -> bool {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    !statuses.is_empty() && statuses.iter().all(|status| status.container_id == Some(container_id(uid, boot, &status.name)))
}

/// A container's id names the boot, so a container of an earlier boot counts as restarted.
fn container_id(uid: &str, boot: &str, name: &str) -> String {
    format!("box://{boot}/{uid}/{name}")
}

/// Brings one pod's status to what its machine does.
fn run_pod(world: &World, node: &Node, pod: &Pod, now: Timestamp, addresses: &mut Addresses) -> Option<Action> {
    let (namespace, name, uid) = (pod.namespace().unwrap_or_default(), pod.name_any(), pod.uid()?);
    if pod.metadata.deletion_timestamp.is_some() {
        // At grace 0 the kubelet's last word was said already, and only a finalizer keeps the object.
        let said = pod.metadata.deletion_grace_period_seconds == Some(0);
        return (!said).then_some(Action::EndPod { namespace, name, uid });
    }
    let containers = &pod.spec.as_ref()?.containers;
    let boot = node.annotations().get(BOOT_ANNOTATION).map_or("0", String::as_str);
    let state = if has_started(pod, &uid, boot) { State::Running } else { starting(world, node, pod) };
    let statuses: Vec<Value> = containers.iter().map(|container| container_status(container, pod, &uid, boot, &state, now)).collect();
    let is_running = matches!(state, State::Running);
    let before = pod.status.clone().unwrap_or_default();
    let is_as_it_should_be = before.phase.as_deref() == Some(if is_running { "Running" } else { "Pending" })
        && before.container_statuses.iter().flatten().zip(&statuses).filter(|(old, new)| is_same(old, new)).count() == containers.len()
        && is_pod_ready(pod) == is_running;
    if is_as_it_should_be {
        return None;
    }
    let address = before.pod_ip.clone().or_else(|| is_running.then(|| addresses.next()));
    let host = host_address(node);
    let status = json!({
        "phase": if is_running { "Running" } else { "Pending" },
        "conditions": conditions(before.conditions.as_deref().unwrap_or_default(), is_running, now),
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
fn container_status(container: &Container, pod: &Pod, uid: &str, boot: &str, state: &State, now: Timestamp) -> Value {
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
            "ready": true, "started": true, "restartCount": restarts, "state": {"running": {"startedAt": started}},
        }),
        State::Waiting { reason, message } => json!({
            "name": container.name, "image": image(container), "imageID": "", "ready": false, "started": false,
            "restartCount": restarts, "state": {"waiting": {"reason": reason, "message": message}},
        }),
    }
}

fn is_same(old: &ContainerStatus, new: &Value) -> bool {
    let waits = |status: &ContainerStatus| {
        status.state.as_ref().and_then(|state| state.waiting.as_ref()).map(|waiting| (waiting.reason.clone(), waiting.message.clone()))
    };
    serde_json::from_value::<ContainerStatus>(new.clone())
        .is_ok_and(|new| (&old.name, &old.container_id, waits(old)) == (&new.name, &new.container_id, waits(&new)))
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
            "name": container.name, "image": image(container), "imageID": "", "ready": is_running, "restartCount": 0, "state": state,
        })
    });
    let statuses: Vec<Value> = statuses.collect();
    if statuses.is_empty() { Value::Null } else { Value::Array(statuses) }
}

/// The kubelet's own conditions beside those of others; a transition time changes only with its status.
fn conditions(before: &[PodCondition], is_running: bool, now: Timestamp) -> Vec<Value> {
    let status = if is_running { "True" } else { "False" };
    let own = OWN_CONDITIONS.map(|kind| {
        let same = before.iter().find(|condition| condition.type_ == kind && condition.status == status);
        let since = same.and_then(|condition| condition.last_transition_time.as_ref()).map_or(now, |time| time.0);
        let mut condition = json!({"type": kind, "status": status, "lastTransitionTime": since});
        if !is_running {
            condition["reason"] = json!("ContainersNotReady");
        }
        condition
    });
    let others = before.iter().filter(|condition| !OWN_CONDITIONS.contains(&condition.type_.as_str())).map(|condition| json!(condition));
    others.chain(own).collect()
}

fn is_pod_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True"))
}

fn host_address(node: &Node) -> String {
    let addresses = node.status.iter().flat_map(|status| status.addresses.iter().flatten());
    let internal = addresses.filter(|address| address.type_ == "InternalIP").map(|address| address.address.clone()).next();
    internal.unwrap_or_else(|| "127.0.0.1".to_owned())
}

/// The PVCs of a pod, by name.
fn claim_names(pod: &Pod) -> impl Iterator<Item = &str> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.filter_map(|volume| Some(volume.persistent_volume_claim.as_ref()?.claim_name.as_str()))
}

fn claim<'a>(world: &'a World, pod: &Pod, name: &str) -> Option<&'a PersistentVolumeClaim> {
    let claims = world.claims.iter().map(AsRef::as_ref);
    claims.into_iter().find(|claim: &&PersistentVolumeClaim| claim.name_any() == name && claim.namespace() == pod.namespace())
}

fn volume<'a>(world: &'a World, claim: &PersistentVolumeClaim) -> Option<&'a PersistentVolume> {
    let name = claim.spec.as_ref()?.volume_name.as_deref()?;
    world.volumes.iter().map(AsRef::as_ref).find(|volume: &&PersistentVolume| volume.name_any() == name)
}

/// The first volume of the pod that its Node does not have yet, by the name that helps most.
fn unattached(world: &World, node: &Node, pod: &Pod) -> Option<String> {
    let is_attached = |volume: &PersistentVolume| {
        world.attachments.iter().any(|attachment| {
            attachment.spec.node_name == node.name_any()
                && attachment.spec.source.persistent_volume_name.as_deref() == Some(volume.name_any().as_str())
                && attachment.status.as_ref().is_some_and(|status| status.attached)
        })
    };
    claim_names(pod)
        .find(|name| claim(world, pod, name).and_then(|claim| volume(world, claim)).is_none_or(|volume| !is_attached(volume)))
        .map(str::to_owned)
}

/// The volumes that the machine has mounted or is about to: the attach/detach controller leaves them alone while its pods end.
fn volumes_in_use<'a>(world: &World, node: &Node, pods: impl Iterator<Item = &'a Arc<Pod>>) -> Option<Action> {
    let mut wanted = BTreeSet::new();
    for pod in pods {
        let volumes = claim_names(pod).filter_map(|name| volume(world, claim(world, pod, name)?));
        wanted.extend(volumes.filter_map(|volume| {
            let csi = volume.spec.as_ref()?.csi.as_ref().filter(|csi| csi.driver == EBS_DRIVER)?;
            Some(format!("kubernetes.io/csi/{}^{}", csi.driver, csi.volume_handle))
        }));
    }
    let before: BTreeSet<String> = node.status.iter().flat_map(|status| status.volumes_in_use.iter().flatten().cloned()).collect();
    (before != wanted).then(|| Action::SetVolumesInUse {
        node: node.name_any(),
        version: node.resource_version(),
        volumes: wanted.into_iter().collect(),
    })
}

/// The kubelet's part of a growth: while the pod runs, the file system follows the volume.
fn grow(world: &World, pod: &Pod) -> Option<Action> {
    if phase(pod) != "Running" || pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let grown = claim_names(pod).find_map(|name| {
        let claim = claim(world, pod, name)?;
        let size = volume(world, claim)?.spec.as_ref()?.capacity.as_ref()?.get("storage")?;
        let before = claim.status.as_ref()?.capacity.as_ref()?.get("storage")?;
        (quantity::bytes(size)? > quantity::bytes(before)?).then_some((claim, size))
    })?;
    let (claim, size) = grown;
    Some(Action::GrowFileSystem {
        namespace: claim.namespace().unwrap_or_default(),
        claim: claim.name_any(),
        version: claim.resource_version(),
        capacity: size.clone(),
    })
}

#[cfg(test)]
mod tests;

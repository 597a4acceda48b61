//! What the virtual kubelet should write now: a function of the objects that it sees.

mod action;
mod addresses;
mod references;
mod status;
mod volumes;
mod world;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;

pub use action::Action;
pub use addresses::Addresses;
pub use world::World;

use crate::base::names::{HEARTBEAT_LABEL, HEARTBEAT_VALUE};

/// Everything that should be written now.
pub fn plan(world: &World, now: Timestamp, addresses: &mut Addresses) -> Vec<Action> {
    addresses.learn(&world.pods);
    let mut actions = Vec::new();
    for node in world.nodes.iter().filter(|node| lives(node)) {
        let name = node.name_any();
        let pods = || world.pods.iter().filter(|pod| is_bound_to(pod, &name) && !has_finished(pod));
        for pod in pods() {
            actions.extend(status::of_pod(world, node, pod, now, addresses));
            actions.extend(volumes::grown(world, pod));
        }
        actions.extend(volumes::in_use(world, node, pods()));
    }
    actions
}

/// Whether a Node's Ready condition is True.
pub fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| {
        all.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    })
}

fn lives(node: &Node) -> bool {
    node.labels().get(HEARTBEAT_LABEL).is_some_and(|value| value == HEARTBEAT_VALUE)
}

fn is_bound_to(pod: &Pod, node: &str) -> bool {
    pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_deref() == Some(node))
}

fn has_finished(pod: &Pod) -> bool {
    matches!(status::phase(pod), "Succeeded" | "Failed")
}

#[cfg(test)]
mod tests;

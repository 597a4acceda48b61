//! The notes of a Node's events, and why an instance is terminated. Pure.

use std::fmt::Display;
use std::time::Duration;

use crate::api::InstanceId;
use crate::api::keys::{DEDICATED_LABEL, DEDICATED_TAINT};
use crate::api::node::NodeCreation;

/// Why an instance is terminated: its Node is deleted.
pub const NODE_DELETED: &str = "its Node is deleted";
/// Why an instance is terminated: it did not join.
pub const STOPPED_BEFORE_JOIN: &str = "it was stopped before it joined the cluster";

/// Why an instance is terminated: its kubelet has not registered in this time.
pub fn not_registered_within(limit: Duration) -> String {
    format!("its kubelet did not register within {limit:?}")
}

/// Why an instance is terminated: it stays pending.
pub fn not_started_within(limit: Duration) -> String {
    format!("EC2 did not start it within {limit:?}")
}

/// Why an instance is terminated: it is not the one that the status names.
pub fn second_instance(kept: &InstanceId) -> String {
    format!("a second instance of this Node beside {kept}, which its status names")
}

/// The event of a Kubernetes node that has become ready for the database.
pub fn node_ready(core_node: &str) -> String {
    format!("Kubernetes node {core_node} is ready for the database")
}

/// The event of an instance that a look-up has found.
pub fn recorded(id: &InstanceId) -> String {
    format!("instance {id} was found by its client token and tags, and belongs to this Node")
}

/// The event of an instance that is adopted.
pub fn adopted(id: &InstanceId) -> String {
    format!("instance {id}, which ran before, is adopted as it is, and belongs to this Node")
}

/// The event of the taint that frees what a fenced machine held.
pub fn out_of_service(core_node: &str) -> String {
    format!("Kubernetes node {core_node} is out of service: nothing on its machine can write any more")
}

/// The event of a Kubernetes node that is cordoned.
pub fn cordoned(core_node: &str) -> String {
    format!("Kubernetes node {core_node} takes no more pods: its Node is deleted")
}

/// The event of a Kubernetes node that has joined without the label and the taint of a database's machine.
pub fn dedicated(core_node: &str, class: &str) -> String {
    format!(
        "Kubernetes node {core_node} did not have both the label {DEDICATED_LABEL}=true and the taint \
        {DEDICATED_TAINT}:NoExecute, and Freehold has added them; until then any pod could run there. The \
        user data of NodeClass {class} must register the kubelet with both"
    )
}

/// The event of the Kubernetes node of an adopted instance, which becomes a database's machine.
pub fn dedicated_as_adopted(core_node: &str) -> String {
    format!(
        "Kubernetes node {core_node} has the label {DEDICATED_LABEL}=true and the taint \
        {DEDICATED_TAINT}:NoSchedule: what runs there stays, and no other pod is scheduled there"
    )
}

/// The event of a pod that is deleted from the machine, since it is not the database's.
pub fn foreign_pod_evicted(pod: &str, grace_seconds: u32) -> String {
    format!(
        "pod {pod} is deleted with a grace of {grace_seconds} s: it is not of this machine's database, and \
        a machine is its database's alone; keep others off by a node affinity ({DEDICATED_LABEL} \
        DoesNotExist)"
    )
}

/// The event of a machine that is declared lost.
pub fn declared_lost(loss: &str) -> String {
    format!("{loss}: machine declared lost; starting a replacement")
}

/// The event of an instance that is terminated.
pub fn terminating(id: &InstanceId, why: &str) -> String {
    format!("instance {id} is terminated: {why}")
}

/// The event of an instance that is stopped.
pub fn stopping(id: &InstanceId, force: bool) -> String {
    let stopping = if force { "force-stopping" } else { "stopping" };
    format!("{stopping} instance {id} to fence it")
}

/// The event of an instance that is launched.
pub fn instance_launched(id: &InstanceId, launch: &NodeCreation) -> String {
    format!("instance {id} ({} in {}) is launched", launch.instance_type, launch.zone)
}

/// The event of a launch that EC2 refused.
pub fn launch_refused(launch: &NodeCreation, error: &impl Display) -> String {
    format!("EC2 refused {} in {}: {error}", launch.instance_type, launch.zone)
}

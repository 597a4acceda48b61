//! Facts about a Node and its instance that several steps ask for: whether and until when its machine
//! registers, and as what. Pure.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node as CoreNode, Taint};
use kube::ResourceExt;

use super::wait::launch::Unwanted;
use crate::api::keys::{DATABASE_NODE_LABEL, DEDICATED_LABEL, DEDICATED_TAINT};
use crate::api::{ConditionType, InstanceId, Node, NodeSpec, NodeStatus};
use crate::cloud::{Instance, InstanceState};
use crate::cluster::finalizer;
use crate::controller::conditions;
use crate::settings::Timing;
use crate::time::later;

/// Of so many parts of the time to register the first is left to the label: 150 s of 15 min. The slowest
/// images for EKS register within two minutes.
const REGISTRATION_PARTS: f64 = 6.0;

/// The effects of a taint (Kubernetes docs, "Taints and Tolerations"): pods that do not tolerate it are
/// deleted, or only not scheduled.
pub(super) const NO_EXECUTE: &str = "NoExecute";
const NO_SCHEDULE: &str = "NoSchedule";

/// What the kubelet of an instance registers as its providerID.
pub fn provider_id(instance: &Instance) -> String {
    format!("aws:///{}/{}", instance.zone, instance.id)
}

/// The instance that a core Node's providerID names (`aws:///<zone>/<instance id>`).
pub(super) fn instance_of(core_node: &CoreNode) -> Option<InstanceId> {
    let provider_id = core_node.spec.as_ref()?.provider_id.as_deref()?;
    let id = provider_id.strip_prefix("aws:///")?.rsplit('/').next()?;
    Some(InstanceId(id.to_owned()))
}

/// Whether the Kubernetes node carries the label and the taint of a database's machine. Its user data should
/// have set both; nothing else keeps other pods off it.
pub(super) fn is_dedicated(node: &Node, core_node: &CoreNode) -> bool {
    let effect = dedicated_effect(node);
    let is_enough = |found: &str| found == NO_EXECUTE || Some(found) == effect;
    core_node.labels().get(DEDICATED_LABEL).is_some_and(|value| value == "true")
        && (effect.is_none()
            || taints(core_node).any(|taint| taint.key == DEDICATED_TAINT && is_enough(&taint.effect)))
}

/// The effect of the taint of this Node's machine. On an adopted one the database's pod runs already, does
/// not tolerate the taint, and stays. `None` while the machine would be released: the template of that pod
/// tolerates the taint only once its StatefulSet is adopted, and a pod that is created before must find its
/// machine.
pub(super) fn dedicated_effect(node: &Node) -> Option<&'static str> {
    match (&node.spec.instance_id, node.spec.release) {
        (None, _) => Some(NO_EXECUTE),
        (Some(_), false) => Some(NO_SCHEDULE),
        (Some(_), true) => None,
    }
}

/// Whether the Kubernetes node carries anything that is removed from it when its machine is released.
pub(super) fn is_marked(node: &Node, core_node: &CoreNode) -> bool {
    let is_dedicated = || core_node.labels().contains_key(DEDICATED_LABEL) || is_tainted(core_node);
    finalizer::has(core_node) || (!stays_dedicated(node, core_node) && is_dedicated())
}

/// Whether the label and the taint of a database's machine stay when the machine is released: its own kubelet
/// has set them, or a pod is placed there by the label of its database. Of a database that becomes what it
/// was, the Database's controller has removed that label before.
pub(super) fn stays_dedicated(node: &Node, core_node: &CoreNode) -> bool {
    node.spec.instance_id.is_none() || core_node.labels().contains_key(DATABASE_NODE_LABEL)
}

/// Whether Freehold puts this taint on the Kubernetes node of an adopted instance.
pub(super) fn is_mark(taint: &Taint) -> bool {
    taint.key == DEDICATED_TAINT && taint.effect == NO_SCHEDULE
}

/// Whether Freehold has put its taint on the Kubernetes node of an adopted instance.
pub(super) fn is_tainted(core_node: &CoreNode) -> bool {
    taints(core_node).any(is_mark)
}

fn taints(core_node: &CoreNode) -> impl Iterator<Item = &Taint> {
    core_node.spec.iter().flat_map(|spec| spec.taints.iter().flatten())
}

/// From when on the machine is searched among Kubernetes nodes without the label: a kubelet whose user data
/// sets it is seen by its label long before.
pub(super) fn searched_from(status: &NodeStatus, timing: &Timing, now: Timestamp) -> Timestamp {
    later(
        conditions::since(&status.conditions, ConditionType::Launched, true).unwrap_or(now),
        timing.registration_timeout.div_f64(REGISTRATION_PARTS),
    )
}

/// Whether the machine ever registered.
pub(super) fn has_joined(status: &NodeStatus) -> bool {
    status.core_node_name.is_some()
}

/// Neither terminated nor about to be.
pub(super) fn is_live(instance: &Instance) -> bool {
    match instance.state {
        InstanceState::Pending
        | InstanceState::Running
        | InstanceState::Stopping
        | InstanceState::Stopped
        | InstanceState::Unknown => true,
        InstanceState::ShuttingDown | InstanceState::Terminated => false,
    }
}

/// Why a machine of this type and zone that has not joined is not wanted any more.
pub(super) fn unwanted(spec: &NodeSpec, instance_type: &str, in_zone: &str) -> Option<Unwanted> {
    if !spec.instance_types.iter().any(|wanted| wanted == instance_type) {
        return Some(Unwanted::Type(instance_type.to_owned()));
    }
    match &spec.zone {
        Some(zone) if zone != in_zone => {
            Some(Unwanted::Zone { instance: in_zone.to_owned(), volume: zone.clone() })
        }
        Some(_) | None => None,
    }
}

/// When the kubelet must have registered.
pub(super) fn registers_until(status: &NodeStatus, timing: &Timing, now: Timestamp) -> Timestamp {
    later(
        conditions::since(&status.conditions, ConditionType::Launched, true).unwrap_or(now),
        timing.registration_timeout,
    )
}

/// Nothing is declared lost should this instance have no core Node now: its kubelet is only awaited.
pub(super) fn is_awaited(node: &Node, instance: &Instance, timing: &Timing, now: Timestamp) -> bool {
    let deadline = node.status.as_ref().map_or(now, |status| registers_until(status, timing, now));
    let is_wanted = unwanted(&node.spec, &instance.instance_type, &instance.zone).is_none();
    let has_joined = node.status.as_ref().is_some_and(has_joined);
    node.metadata.deletion_timestamp.is_none() && is_wanted && !has_joined && now < deadline
}

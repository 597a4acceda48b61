//! Status, Node: what is told of it. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use super::choose;
use super::observe::{Observed, provider_id};
use super::plan::Plan;
use crate::api::ConditionType as Type;
use crate::api::{Node, NodeStatus, Reason};
use crate::cloud::{Instance, InstanceState};
use crate::controller::acting::Acted;
use crate::controller::conditions::{self, Entry};
use crate::controller::safety::{self, Kubelet};
use crate::controller::waiting::why;

/// The status to write: the fields of the create protocol as the last write left them, everything else from what was seen.
pub fn status(observed: &Observed, plan: &Plan, acted: &Acted<Node>, now: Timestamp) -> NodeStatus {
    let old = acted.object.status.clone().unwrap_or_default();
    // Right after a start nothing is known of EC2 yet: what was said before stands.
    if observed.instances.swept_at.is_none() && !old.conditions.is_empty() {
        return old;
    }
    let instance = old.instance_id.as_ref().and_then(|id| observed.instances.instances.iter().find(|instance| instance.id == *id));
    let core_node_name = observed.core_node.as_ref().map(ResourceExt::name_any).or_else(|| old.core_node_name.clone());
    let entries = entries(observed, plan, acted, instance, core_node_name.is_some());
    NodeStatus {
        observed_generation: acted.object.metadata.generation,
        conditions: conditions::merge(&old.conditions, &entries, acted.object.metadata.generation, now),
        provider_id: instance.map(provider_id).or(old.provider_id),
        instance_type: instance.map(|instance| instance.instance_type.clone()).or(old.instance_type),
        zone: instance.map(|instance| instance.zone.clone()).or(old.zone),
        core_node_name,
        launch: old.launch,
        instance_id: old.instance_id,
    }
}

fn entries(observed: &Observed, plan: &Plan, acted: &Acted<Node>, instance: Option<&Instance>, has_joined: bool) -> Vec<Entry> {
    let (reason, message) = why(acted.error.as_ref(), acted.held_up.as_ref(), plan.waiting.as_ref());
    let mut said = false;
    let mut not_yet = |kind: Type| {
        if said {
            return Entry::no(kind, Reason::Pending, "an earlier step is awaited");
        }
        said = true;
        Entry::no(kind, reason, message.clone())
    };
    let launched = match instance {
        Some(instance) if instance.state == InstanceState::Running => {
            Entry::yes(Type::Launched, Reason::AsExpected, format!("instance {} runs", instance.id))
        }
        Some(_) | None => not_yet(Type::Launched),
    };
    let registered = match &observed.core_node {
        Some(core_node) => {
            Entry::yes(Type::Registered, Reason::AsExpected, format!("Kubernetes node {} has registered", core_node.name_any()))
        }
        None => not_yet(Type::Registered),
    };
    let was_initialized =
        has_joined && conditions::is_true(acted.object.status.as_ref().map_or(&[][..], |status| &status.conditions), Type::Initialized);
    let kubelet = safety::kubelet(observed.core_node.as_ref());
    let is_ready_now = launched.is_true() && registered.is_true() && kubelet == Kubelet::Ready && observed.driver_registered;
    let held = observed.core_node.as_ref().is_some_and(crate::cluster::finalizer::has);
    let initialized = if was_initialized || (is_ready_now && held) {
        Entry::yes(Type::Initialized, Reason::AsExpected, "the Kubernetes node was made ready for the database")
    } else {
        not_yet(Type::Initialized)
    };
    let deleting = observed.node.metadata.deletion_timestamp.is_some();
    let ready = if deleting {
        Entry::no(Type::Ready, Reason::Deleting, message.clone())
    } else if initialized.is_true() && is_ready_now && plan.waiting.is_none() {
        Entry::yes(Type::Ready, Reason::AsExpected, "the machine is ready for the database")
    } else {
        Entry::no(Type::Ready, reason, message.clone())
    };
    let stalled = match &plan.waiting {
        Some(waiting) if waiting.stalled => Entry::yes(Type::Stalled, waiting.reason, waiting.message.clone()),
        Some(_) | None => Entry::no(Type::Stalled, Reason::Progressing, "nothing needs a person"),
    };
    let mut entries = vec![ready, launched, registered, initialized, drifted(observed, acted), stalled];
    if deleting {
        entries.extend(leaving(observed, instance, &message));
    }
    entries
}

fn drifted(observed: &Observed, acted: &Acted<Node>) -> Entry {
    let launch = acted.object.status.as_ref().and_then(|status| status.launch.as_ref());
    let (Some(launch), Some(class)) = (launch, &observed.class) else {
        return Entry::no(Type::Drifted, Reason::Pending, "no machine was launched yet, or its NodeClass is gone");
    };
    match choose::drift(launch, &class.spec) {
        Some(fields) => Entry::yes(
            Type::Drifted,
            Reason::NodeClassChanged,
            format!("NodeClass {} has changed since ({fields}); the next machine is made as it says now", class.name_any()),
        ),
        None => Entry::no(Type::Drifted, Reason::UpToDate, "the machine is as its NodeClass says"),
    }
}

/// The stages of a planned termination, each with what blocks it.
fn leaving(observed: &Observed, instance: Option<&Instance>, message: &str) -> [Entry; 3] {
    let is_terminated = instance.is_none_or(|instance| instance.state == InstanceState::Terminated);
    let drained = if is_terminated || observed.pods.is_empty() {
        Entry::yes(Type::Drained, Reason::AsExpected, "no pod is left on the machine")
    } else {
        Entry::no(Type::Drained, Reason::AwaitingDrain, message)
    };
    let attached = !observed.attachments.is_empty() || instance.is_some_and(|instance| !safety::data_volumes(instance).is_empty());
    let detached = if is_terminated || !attached {
        Entry::yes(Type::VolumeDetached, Reason::AsExpected, "no volume is attached to the machine")
    } else {
        Entry::no(Type::VolumeDetached, Reason::AwaitingDetach, message)
    };
    let terminated = if is_terminated {
        Entry::yes(Type::InstanceTerminated, Reason::AsExpected, "the instance is gone")
    } else {
        Entry::no(Type::InstanceTerminated, Reason::AwaitingTermination, message)
    };
    [drained, detached, terminated]
}

/// Whether Ready changed, and to what: for the event.
pub fn became_ready(old: &[Condition], new: &[Condition]) -> bool {
    !conditions::is_true(old, Type::Ready) && conditions::is_true(new, Type::Ready)
}

//! The plan of a Node whose instance runs: its kubelet registers, and its Kubernetes node is made ready for
//! the database. Pure.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node as CoreNode;
use kube::ResourceExt;

use super::action::{Action, Plan};
use super::departing::at_limit;
use super::facts::terminate;
use crate::api::node::ReplacementCause;
use crate::api::{ConditionType, NodeStatus};
use crate::cloud::Instance;
use crate::cluster::finalizer;
use crate::controller::conditions;
use crate::controller::node::messages;
use crate::controller::node::observe::Observed;
use crate::controller::node::registration::{
    has_joined, is_dedicated, provider_id, registers_until, searched_from, unwanted,
};
use crate::controller::node::wait::adoption::AdoptionWait;
use crate::controller::node::wait::join::{JoinWait, Missing};
use crate::controller::node::wait::launch::LaunchWait;
use crate::controller::safety::{self, Kubelet};
use crate::time::later;

/// The instance is pending. One that stays so is ended as one that never joins: EC2 has no time for it.
/// Its time begins with EC2's: an attempt may be sent again long after the first time.
pub(super) fn starting(
    observed: &Observed,
    status: &NodeStatus,
    instance: &Instance,
    now: Timestamp,
) -> Plan {
    let id = &instance.id;
    let waits = Plan::wait(LaunchWait::Starting(id.clone())).pending();
    let launch = status.creation.as_ref().filter(|_| !has_joined(status) && observed.core_node.is_none());
    let Some(launch) = launch else { return waits };
    let limit = observed.timing.registration_timeout;
    let started_at = launch.attempt.started_at.0;
    let deadline = later(instance.launched_at.map_or(started_at, |at| at.max(started_at)), limit);
    if now < deadline {
        return waits.until(deadline, now);
    }
    let why = messages::events::not_started_within(limit);
    terminate(observed, id, why, JoinWait::NotRegistered(id.clone()), now)
}

/// The instance runs: it joins, and is made ready for the database.
pub(super) fn running(observed: &Observed, status: &NodeStatus, instance: &Instance, now: Timestamp) -> Plan {
    let id = &instance.id;
    let Some(core_node) = &observed.core_node else {
        if has_joined(status) {
            return Plan::wait(JoinWait::KubernetesNodeGone(id.clone()));
        }
        if observed.node.spec.instance_id.is_some() {
            return unregistered(observed, instance, now);
        }
        if let Some(why) = unwanted(&observed.node.spec, &instance.instance_type, &instance.zone) {
            return terminate(observed, id, why.message(), LaunchWait::Unwanted(id.clone(), why), now);
        }
        return joining(observed, status, instance, now);
    };
    if !finalizer::has(core_node) {
        if core_node.metadata.deletion_timestamp.is_some() {
            return Plan::wait(JoinWait::KubernetesNodeEnding(core_node.name_any()));
        }
        return Plan::act(
            vec![Action::HoldCoreNode(Box::new(core_node.clone()))],
            JoinWait::Registered(core_node.name_any()),
        );
    }
    let name = core_node.name_any();
    if let Some(since) = &core_node.metadata.deletion_timestamp {
        // EC2 is being read, to see whether the machine has ended: then it is lost, and that is why its Node
        // goes.
        let asked_until = later(since.0, observed.timing.lease_poll_interval.saturating_mul(2));
        if now < asked_until {
            return Plan::wait(JoinWait::KubernetesNodeEndingChecked(name)).until(asked_until, now);
        }
        let cause = ReplacementCause::KubernetesNodeDeleted;
        if let Some(blocker) = at_limit(observed, status, cause, core_node) {
            return Plan { requeue: Some(observed.timing.instance_sync_interval), ..Plan::wait(blocker) };
        }
        return Plan::wait(JoinWait::KubernetesNodeDeleted(name));
    }
    if is_dedicated(&observed.node, core_node) {
        return initialized(observed, status, core_node, now);
    }
    let dedicate = Action::Dedicate(Box::new(core_node.clone()));
    if !conditions::is_true(&status.conditions, ConditionType::Initialized) {
        return Plan::act(vec![dedicate], JoinWait::Initialization(Missing::Dedication(name)));
    }
    // Taken off while the database runs there: it is put back, and nothing waits for that.
    let mut plan = initialized(observed, status, core_node, now);
    plan.actions.push(dedicate);
    plan
}

/// The kubelet has registered, and its Kubernetes node stays: whether it is ready for the database.
fn initialized(observed: &Observed, status: &NodeStatus, core_node: &CoreNode, now: Timestamp) -> Plan {
    let name = core_node.name_any();
    match safety::kubelet(Some(core_node)) {
        Kubelet::Ready if observed.driver_registered => Plan::done(),
        // Each update of the driver takes it away for seconds; its CSINode wakes the Node.
        Kubelet::Ready if conditions::is_true(&status.conditions, ConditionType::Initialized) => {
            let plan = Plan::wait(JoinWait::DriverGone(name));
            Plan { requeue: Some(observed.timing.requeue_interval), ..plan }
        }
        Kubelet::Ready => {
            let plan = initializing(observed, status, Missing::Driver(name), now);
            // Its CSINode wakes it, unless it came before this Node's status had the name.
            Plan { requeue: Some(observed.timing.requeue_interval.div_f64(5.0)), ..plan }
        }
        Kubelet::NotReady(_) | Kubelet::Absent => {
            if conditions::is_true(&status.conditions, ConditionType::Initialized) {
                return Plan::wait(JoinWait::NotReady(name));
            }
            initializing(observed, status, Missing::Ready(name), now)
        }
    }
}

/// The kubelet has registered, and this is missing until the machine is ready for the database. One that is
/// not in the time that another has to register needs a person: an image or a network that is wrong would do
/// the same to every machine that followed.
fn initializing(observed: &Observed, status: &NodeStatus, missing: Missing, now: Timestamp) -> Plan {
    let registered = conditions::since(&status.conditions, ConditionType::Registered, true);
    let deadline = registered.map(|since| later(since, observed.timing.registration_timeout));
    match deadline {
        Some(deadline) if now < deadline => {
            Plan::wait(JoinWait::Initialization(missing)).until(deadline, now)
        }
        Some(_) => {
            let (node, limit) = (observed.node.name_any(), observed.timing.registration_timeout);
            Plan::wait(JoinWait::InitializationOverdue { missing, limit, node })
        }
        None => Plan::wait(JoinWait::Initialization(missing)),
    }
}

/// An adopted instance runs without a Kubernetes node: it may be of another cluster. That ends nothing.
fn unregistered(observed: &Observed, instance: &Instance, now: Timestamp) -> Plan {
    let (id, provider_id) = (instance.id.clone(), provider_id(instance));
    let next = later(now, observed.timing.instance_sync_interval);
    Plan::wait(AdoptionWait::NoKubernetesNode { id, provider_id }).until(next, now)
}

/// The instance runs and its kubelet has not registered yet.
fn joining(observed: &Observed, status: &NodeStatus, instance: &Instance, now: Timestamp) -> Plan {
    let id = &instance.id;
    let deadline = registers_until(status, &observed.timing, now);
    if now < deadline {
        // One without the label is not watched: it is searched for from then on.
        let search = searched_from(status, &observed.timing, now);
        let next = if now < search { search } else { later(now, observed.timing.instance_sync_interval) };
        return Plan::wait(JoinWait::Registration(id.clone())).until(deadline.min(next), now);
    }
    let why = messages::events::not_registered_within(observed.timing.registration_timeout);
    let mut plan = terminate(observed, id, why, JoinWait::NotRegistered(id.clone()), now);
    if !plan.actions.is_empty() {
        plan.actions.insert(0, Action::LogConsole(id.clone()));
    }
    plan
}

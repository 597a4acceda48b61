//! The plan of a Node whose instance runs: its kubelet registers, and its Kubernetes node is made ready for the database. Pure.

use jiff::Timestamp;
use kube::ResourceExt;

use super::action::{Action, Plan};
use super::facts::terminate;

use crate::api::{ConditionType, NodeStatus, Reason};
use crate::cloud::Instance;
use crate::cluster::finalizer;
use crate::controller::conditions;
use crate::controller::node::observe::Observed;
use crate::controller::node::registration::{has_joined, registers_until, unwanted};
use crate::controller::safety::{self, Kubelet};
use crate::time::later;

/// The instance runs: it joins, and is made ready for the database.
pub(super) fn running(observed: &Observed, status: &NodeStatus, instance: &Instance, now: Timestamp) -> Plan {
    let id = &instance.id;
    let Some(core_node) = &observed.core_node else {
        if has_joined(status) {
            return Plan::wait(
                Reason::NodeNotReady,
                format!("instance {id} runs, but its Kubernetes node is gone: its kubelet must register again"),
            );
        }
        if let Some(why) = unwanted(&observed.node.spec, &instance.instance_type, &instance.zone) {
            let message = format!("instance {id} is terminated before it joined, since {why}");
            return terminate(observed, id, why, (Reason::Launching, message), now);
        }
        return joining(observed, status, instance, now);
    };
    if !finalizer::has(core_node) {
        if core_node.metadata.deletion_timestamp.is_some() {
            let message = format!("Kubernetes node {} is being deleted: its kubelet must register again", core_node.name_any());
            return Plan::wait(Reason::NodeNotReady, message);
        }
        return Plan::act(
            vec![Action::HoldCoreNode(Box::new(core_node.clone()))],
            Reason::AwaitingInitialization,
            format!("Kubernetes node {} has registered", core_node.name_any()),
        );
    }
    let name = core_node.name_any();
    if let Some(since) = &core_node.metadata.deletion_timestamp {
        // EC2 is being asked whether the machine has ended: then it is lost, and that is why its Node goes.
        let asked_until = later(since.0, observed.timing.lease_look.saturating_mul(2));
        if now < asked_until {
            let message = format!("Kubernetes node {name} is being deleted; EC2 is asked whether its machine has ended");
            return Plan::wait(Reason::NodeNotReady, message).until(asked_until, now);
        }
        let message = format!("somebody deletes Kubernetes node {name}, which cannot be undone: the machine must be replaced");
        return Plan::wait(Reason::KubernetesNodeDeleted, message);
    }
    match safety::kubelet(Some(core_node)) {
        Kubelet::Ready if observed.driver_registered => Plan { actions: Vec::new(), waiting: None, again: None, pending: false },
        Kubelet::Ready => {
            let plan = initializing(observed, status, &format!("the EBS CSI driver has not registered on Kubernetes node {name}"), now);
            // Its CSINode wakes it, unless it came before this Node's status had the name.
            Plan { again: Some(observed.timing.recheck.div_f64(5.0)), ..plan }
        }
        Kubelet::NotReady(_) | Kubelet::Absent => {
            let message = format!("Kubernetes node {name} is not Ready");
            if conditions::is_true(&status.conditions, ConditionType::Initialized) {
                return Plan::wait(Reason::NodeNotReady, message);
            }
            initializing(observed, status, &message, now)
        }
    }
}

/// The kubelet has registered, and this is missing until the machine is ready for the database. One that is not in the time that another
/// has to register needs a person: an image or a network that is wrong would do the same to every machine that followed.
fn initializing(observed: &Observed, status: &NodeStatus, missing: &str, now: Timestamp) -> Plan {
    let registered = conditions::since(&status.conditions, ConditionType::Registered, true);
    let deadline = registered.map(|since| later(since, observed.timing.registration));
    match deadline {
        Some(deadline) if now < deadline => Plan::wait(Reason::AwaitingInitialization, format!("{missing} yet")).until(deadline, now),
        Some(_) => {
            let (node, limit) = (observed.node.name_any(), observed.timing.registration);
            let message = format!(
                "{missing}, {limit:?} after its kubelet registered: look at the machine; to have another in its place, delete Node {node}"
            );
            Plan::stalled(Reason::AwaitingInitialization, message)
        }
        None => Plan::wait(Reason::AwaitingInitialization, format!("{missing} yet")),
    }
}

/// The instance runs and its kubelet has not registered yet.
fn joining(observed: &Observed, status: &NodeStatus, instance: &Instance, now: Timestamp) -> Plan {
    let id = &instance.id;
    let deadline = registers_until(status, &observed.timing, now);
    if now < deadline {
        return Plan::wait(Reason::AwaitingRegistration, format!("instance {id} runs; its kubelet is awaited")).until(deadline, now);
    }
    let why = format!("its kubelet did not register within {:?}", observed.timing.registration);
    let message = format!("instance {id} never joined the cluster and is terminated; its console is in the operator's log");
    let mut plan = terminate(observed, id, why, (Reason::NeverJoined, message), now);
    if !plan.actions.is_empty() {
        plan.actions.insert(0, Action::LogConsole(id.clone()));
    }
    plan
}

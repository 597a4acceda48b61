//! The part of the plan that stops the engine and releases the machine: for a pause, and on the way out.
//! Pure.

use jiff::Timestamp;
use kube::ResourceExt;

use super::action::{Action, Plan};
use super::facts::{adoption, condition_message, replicas};
use super::machines::{self, is_lost};
use super::placement::{volume_lost, volume_update};
use super::prerequisites;
use crate::api::ConditionType;
use crate::api::keys::DATABASE_NODE_LABEL;
use crate::controller::database::cause::NodeDeletion;
use crate::controller::database::observe::Observed;
use crate::controller::database::wait::DatabaseWait;
use crate::controller::safety;

/// Paused: the engine is stopped, then the machine is released, whatever else is wrong with the database. The
/// disk stays, and follows the spec.
pub(super) fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let mut actions = Vec::new();
    let (mut trouble, mut requeue) = (volume_lost(observed), None);
    if let Err(plan) = prerequisites::check(observed, &mut actions) {
        actions.extend(plan.actions);
        (trouble, requeue) = (plan.waiting, plan.requeue);
    }
    if trouble.is_none()
        && let Some(update) = observed.volume.ours().and_then(|volume| volume_update(observed, volume))
    {
        actions.push(update);
    }
    if let Some(waiting) = stop(observed, &mut actions, now) {
        return Plan::act(actions, waiting).requeue(observed.timing.requeue_interval);
    }
    if let Some(waiting) = give_back(observed, &NodeDeletion::DatabasePaused, &mut actions) {
        return Plan::act(actions, waiting);
    }
    if let Some(trouble) = trouble {
        return Plan { requeue, ..Plan::act(actions, trouble) };
    }
    Plan::act(actions, DatabaseWait::Paused)
}

/// Stops the engine; what is awaited until its machine may be released.
pub(super) fn stop(observed: &Observed, actions: &mut Vec<Action>, now: Timestamp) -> Option<DatabaseWait> {
    let stateful_set = observed.stateful_set.ours();
    if let Some(stateful_set) = stateful_set
        && replicas(stateful_set) != 0
    {
        actions.push(Action::Scale(stateful_set.uid().unwrap_or_default(), 0));
    }
    let is_lost = machines::of(observed).is_none_or(|machines| is_lost(machines.host));
    let blocker = safety::may_give_back_machine(stateful_set, observed.pod.as_ref(), is_lost, now).err()?;
    Some(DatabaseWait::StoppingEngine(blocker))
}

/// Deletes every Node; what is awaited until they are gone. The label goes first: as long as a machine has
/// it, its Node is not emptied.
pub(super) fn give_back(
    observed: &Observed,
    why: &NodeDeletion,
    actions: &mut Vec<Action>,
) -> Option<DatabaseWait> {
    for core_node in &observed.labelled {
        let (name, uid) = (core_node.name_any(), core_node.uid().unwrap_or_default());
        actions.push(match former_label(observed) {
            Some(former) => Action::Relabel(name, uid, former),
            None => Action::Unlabel(name, uid),
        });
    }
    delete_nodes(observed, why, actions)
}

/// The label by which the StatefulSet that was found places its pod, where the machines are released: a
/// database that was released as it ran, and adopted again, finds its machine by the label of its former
/// Database.
fn former_label(observed: &Observed) -> Option<String> {
    let is_released = observed.nodes.iter().any(|node| node.spec.release);
    let recorded = || adoption(observed)?.found_set();
    let live = || observed.legacy.as_ref()?.stateful_set.clone();
    let found = if is_released { recorded().or_else(live)? } else { return None };
    let selector = found.spec?.template.spec?.node_selector?;
    selector.get(DATABASE_NODE_LABEL).filter(|label| **label != observed.names.uid).cloned()
}

/// Deletes every Node, and leaves the labels of the Kubernetes nodes.
pub(super) fn delete_nodes(
    observed: &Observed,
    why: &NodeDeletion,
    actions: &mut Vec<Action>,
) -> Option<DatabaseWait> {
    for node in observed.nodes.iter().filter(|node| node.metadata.deletion_timestamp.is_none()) {
        actions.push(Action::DeleteNode(node.name_any(), node.uid().unwrap_or_default(), why.clone()));
    }
    let node = observed.by_ordinal().last().copied().or_else(|| observed.nodes.first())?;
    let message = condition_message(node.conditions(), ConditionType::Ready);
    Some(DatabaseWait::DeletingNode { node: node.name_any(), message })
}

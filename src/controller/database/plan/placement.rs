//! The plan of where a Database runs: its zone, its Volume there, its Node as the spec says, and the label that its pod selects. Pure.

use kube::ResourceExt;

use super::action::Action;
use super::facts::{awaited, disk_zone, is_named, node_awaited, patch, recorded_zone};
use super::machines::is_lost;

use crate::api::{ConditionType, Node, Reason, Volume};
use crate::controller::conditions;
use crate::controller::database::build;
use crate::controller::database::observe::Observed;
use crate::controller::database::observe::child::Child;
use crate::controller::safety;
use crate::controller::waiting::Waiting;

/// The zone: a fact once the Volume exists or it is recorded; before that, where the first machine was seen to run.
pub(super) fn zone(observed: &Observed, node: &Node) -> Option<String> {
    let of_machine = || {
        let is_running = conditions::is_true(node.conditions(), ConditionType::Launched);
        node.status.as_ref().filter(|_| is_running).and_then(|status| status.zone.clone())
    };
    disk_zone(observed).or_else(|| recorded_zone(observed)).or_else(|| node.spec.zone.clone()).or_else(of_machine)
}

/// Records the zone, makes the disk in it, keeps the disk as the spec says; what is awaited of it.
pub(super) fn disk(observed: &Observed, zone: Option<&str>, actions: &mut Vec<Action>) -> Option<Waiting> {
    let name = &observed.names.volume;
    let Some(zone) = zone else {
        return Some(Waiting::on(
            Reason::AwaitingNode,
            "the volume follows the machine: its zone is chosen once an instance runs".to_owned(),
        ));
    };
    if recorded_zone(observed).as_deref() != Some(zone) {
        actions.push(Action::RecordZone(zone.to_owned()));
    }
    match &observed.volume {
        Child::Ours(volume) => {
            if let Some(update) = volume_update(observed, volume) {
                actions.push(update);
                return Some(Waiting::on(Reason::Progressing, format!("Volume {name} is being changed")));
            }
            let is_current = volume.status.as_ref().is_some_and(|status| status.observed_generation == volume.metadata.generation);
            awaited(&format!("Volume {name}"), volume.conditions(), is_current, Reason::AwaitingVolume)
        }
        Child::Absent | Child::Foreign => {
            actions.push(Action::CreateVolume(Box::new(build::volume(&observed.database, &observed.names, zone))));
            Some(Waiting::on(Reason::AwaitingVolume, format!("Volume {name} is asked for in {zone}")))
        }
    }
}

/// What of the Volume's spec must follow the Database's; what is decided once stays as it is.
pub(super) fn volume_update(observed: &Observed, volume: &Volume) -> Option<Action> {
    let mut wanted = build::volume_spec(&observed.database, &volume.spec.zone, observed.database.spec.deletion_policy);
    wanted.snapshot_id.clone_from(&volume.spec.snapshot_id);
    wanted.adopt_retained.clone_from(&volume.spec.adopt_retained);
    let patch = patch(&volume.spec, &wanted)?;
    Some(Action::UpdateVolume(volume.uid().unwrap_or_default(), patch))
}

/// A Volume that was there once, and is gone or going: it is never replaced by an empty one.
pub(super) fn volume_lost(observed: &Observed) -> Option<Waiting> {
    let name = &observed.names.volume;
    let was_made = observed.database.status.as_ref().is_some_and(|status| status.volume_name.is_some());
    let message = match &observed.volume {
        Child::Ours(volume) if volume.metadata.deletion_timestamp.is_some() => {
            format!("Volume {name} was deleted by hand; what becomes of its EBS volume is in its deletionPolicy, and no empty one follows")
        }
        Child::Absent if was_made => format!("Volume {name} is gone, and no empty one follows: create a new Database from what was kept"),
        Child::Absent | Child::Ours(_) | Child::Foreign => return None,
    };
    Some(Waiting::stalled(Reason::VolumeLost, message))
}

/// Keeps the machine as the spec says; what is awaited of it.
pub(super) fn machine(observed: &Observed, node: &Node, zone: Option<&str>, actions: &mut Vec<Action>) -> Option<Waiting> {
    let name = node.name_any();
    let mut changed = None;
    if let Some(patch) = patch(&node.spec, &build::node_spec(&observed.database, zone)) {
        actions.push(Action::UpdateNode(name.clone(), node.uid().unwrap_or_default(), patch));
        changed = Some(Waiting::on(Reason::Progressing, format!("Node {name} is being changed")));
    }
    node_awaited(node).or(changed)
}

/// The label that the pod selects, on the one core Node of this Node; a pod that runs elsewhere is ended there, so that it comes back here.
pub(super) fn label(observed: &Observed, node: &Node, actions: &mut Vec<Action>) -> Option<Waiting> {
    let Some(core_node) = observed.core_node_of(node) else {
        return Some(Waiting::on(Reason::NodeNotReady, format!("the Kubernetes node of Node {} is gone", node.name_any())));
    };
    for other in observed.labelled.iter().filter(|other| other.metadata.uid != core_node.metadata.uid) {
        actions.push(Action::Unlabel(other.name_any(), other.uid().unwrap_or_default()));
    }
    let moved = cause_of_move(observed, node);
    if !observed.carries_label(node) {
        let told = moved.as_ref().map(|(from, cause)| format!("from Node {from} to Node {}: {cause}", node.name_any()));
        actions.push(Action::Label(core_node.name_any(), core_node.uid().unwrap_or_default(), told));
    }
    let pod = observed.pod.as_ref()?;
    let elsewhere = observed.runs_on().filter(|name| *name != core_node.name_any())?;
    let cause = moved.map_or_else(|| "the database has another machine".to_owned(), |(_, cause)| cause);
    let message = format!("pod {} moves from Kubernetes node {elsewhere} to {}: {cause}", pod.name_any(), core_node.name_any());
    // A pod on a machine that is lost is taken away by the Node controller, which knows when that is safe.
    let is_on_lost = observed.nodes.iter().any(|node| is_lost(node) && is_named(node, elsewhere));
    let blocker = observed.stateful_set.ours().and_then(|live| safety::may_replace_pod(live).err());
    if pod.metadata.deletion_timestamp.is_none() && !is_on_lost && blocker.is_none() {
        actions.push(Action::ReplacePod(pod.name_any(), pod.uid().unwrap_or_default(), message.clone()));
    }
    Some(Waiting::on(Reason::Moving, message))
}

/// From which Node the database moves to this one, and why, if it does.
pub(super) fn cause_of_move(observed: &Observed, node: &Node) -> Option<(String, String)> {
    let replacement = observed.database.status.as_ref()?.replacement.as_ref()?;
    (replacement.to == node.name_any()).then(|| (replacement.from.clone(), replacement.cause.clone()))
}

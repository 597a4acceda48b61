//! The plan of where a Database runs: its zone, its Volume there, its Node as the spec says, and the label
//! that its pod selects. Pure.

use k8s_openapi::api::core::v1::Node as CoreNode;
use kube::ResourceExt;

use super::action::Action;
use super::facts::{disk_zone, is_named, node_awaited, patch, recorded_zone, volume_awaited};
use super::machines::{is_lost, why_replaced};
use super::permission;
use crate::api::database::Replacement;
use crate::api::{ConditionType, Node, Volume};
use crate::controller::blocker::Blocker;
use crate::controller::conditions;
use crate::controller::database::build;
use crate::controller::database::cause::{Move, RestartCause};
use crate::controller::database::object_name::{ObjectKind, ObjectName};
use crate::controller::database::observe::Observed;
use crate::controller::database::observe::child::Child;
use crate::controller::database::wait::DatabaseWait;
use crate::controller::safety;

/// The zone: a fact once the Volume exists or it is recorded; before that, where the first machine was seen
/// to run.
pub(super) fn zone(observed: &Observed, node: &Node) -> Option<String> {
    let of_machine = || {
        let is_running = conditions::is_true(node.conditions(), ConditionType::Launched);
        node.status.as_ref().filter(|_| is_running).and_then(|status| status.zone.clone())
    };
    disk_zone(observed)
        .or_else(|| recorded_zone(observed))
        .or_else(|| node.spec.zone.clone())
        .or_else(of_machine)
}

/// Records the zone, makes the disk in it, keeps the disk as the spec says; what is awaited of it.
pub(super) fn disk(
    observed: &Observed,
    zone: Option<&str>,
    actions: &mut Vec<Action>,
) -> Option<DatabaseWait> {
    let name = &observed.names.volume;
    let Some(zone) = zone else { return Some(DatabaseWait::ZoneNotChosen) };
    if recorded_zone(observed).as_deref() != Some(zone) {
        actions.push(Action::RecordZone(zone.to_owned()));
    }
    match &observed.volume {
        Child::Ours(volume) => {
            if let Some(update) = volume_update(observed, volume) {
                actions.push(update);
                return Some(DatabaseWait::UpdatingChild(ObjectName::new(ObjectKind::Volume, name)));
            }
            volume_awaited(volume)
        }
        Child::Absent | Child::Foreign => {
            if let Some(refusal) = permission::storage(observed) {
                return Some(DatabaseWait::NotPermitted(refusal));
            }
            actions.push(Action::CreateVolume(Box::new(build::volume(
                &observed.database,
                &observed.names,
                zone,
            ))));
            Some(DatabaseWait::CreatingVolume { volume: name.clone(), zone: zone.to_owned() })
        }
    }
}

/// What of the Volume's spec must follow the Database's; what is decided once stays as it is. That a Volume
/// may end is withdrawn if it was not deleted: its Database goes on.
pub(super) fn volume_update(observed: &Observed, volume: &Volume) -> Option<Action> {
    let mut wanted =
        build::volume_spec(&observed.database, &volume.spec.zone, build::deletion_policy(&observed.database));
    wanted.snapshot_id.clone_from(&volume.spec.snapshot_id);
    wanted.initialization_rate = volume.spec.initialization_rate;
    wanted.adopt_retained.clone_from(&volume.spec.adopt_retained);
    wanted.adopt.clone_from(&volume.spec.adopt);
    let is_deleted = volume.metadata.deletion_timestamp.is_some();
    wanted.deletion_decided = volume.spec.deletion_decided && is_deleted;
    wanted.replaced = volume.spec.replaced && is_deleted;
    wanted.restore_generation = volume.spec.restore_generation;
    wanted.release = volume.spec.release;
    let patch = patch(&volume.spec, &wanted)?;
    Some(Action::UpdateVolume(volume.uid().unwrap_or_default(), patch))
}

/// A Volume that was there once, and is gone or going: it is never replaced by an empty one.
pub(super) fn volume_lost(observed: &Observed) -> Option<DatabaseWait> {
    let was_made = observed.database.status.as_ref().is_some_and(|status| status.volume_name.is_some());
    let is_being_deleted = match &observed.volume {
        Child::Ours(volume) if volume.metadata.deletion_timestamp.is_some() => true,
        Child::Absent if was_made => false,
        Child::Absent | Child::Ours(_) | Child::Foreign => return None,
    };
    Some(DatabaseWait::VolumeLost { volume: observed.names.volume.clone(), is_being_deleted })
}

/// Keeps the machine as the spec says; what is awaited of it.
pub(super) fn machine(
    observed: &Observed,
    node: &Node,
    zone: Option<&str>,
    actions: &mut Vec<Action>,
) -> Option<DatabaseWait> {
    let name = node.name_any();
    let mut changed = None;
    let mut wanted = build::node_spec(&observed.database, zone);
    wanted.instance_id.clone_from(&node.spec.instance_id);
    wanted.release = node.spec.release;
    wanted.replaced_before = node.spec.replaced_before;
    if let Some(patch) = patch(&node.spec, &wanted) {
        actions.push(Action::UpdateNode(name.clone(), node.uid().unwrap_or_default(), patch));
        changed = Some(DatabaseWait::UpdatingChild(ObjectName::new(ObjectKind::Node, name)));
    }
    node_awaited(node).or(changed)
}

/// The label that the pod selects, on the one core Node of this Node; a pod that runs elsewhere is ended
/// there, so that it comes back here.
pub(super) fn label(observed: &Observed, node: &Node, actions: &mut Vec<Action>) -> Option<DatabaseWait> {
    let Some(core_node) = observed.core_node_of(node) else {
        return Some(DatabaseWait::KubernetesNodeGone { node: node.name_any() });
    };
    let moved = cause_of_move(observed, node);
    let leaving = leaving(observed, core_node, moved.as_ref());
    // The label goes with the pod: one that stays until its new template is seen is served until then.
    if let Some(Leaving { cause, replaced: Err(()) }) = leaving {
        return Some(DatabaseWait::MovingPod(cause));
    }
    for other in observed.labelled.iter().filter(|other| other.metadata.uid != core_node.metadata.uid) {
        actions.push(Action::Unlabel(other.name_any(), other.uid().unwrap_or_default()));
    }
    if !observed.carries_label(node) {
        if let Err(blocker) = may_be_labelled(observed, node) {
            return Some(DatabaseWait::StoppingEngine(blocker));
        }
        actions.push(Action::Label(core_node.name_any(), core_node.uid().unwrap_or_default(), moved));
    }
    let Leaving { cause, replaced } = leaving?;
    actions.extend(replaced.ok().flatten());
    Some(DatabaseWait::MovingPod(cause))
}

/// The pod is on another machine.
struct Leaving {
    cause: RestartCause,
    /// What ends it there; nothing where it ends anyway, and an error while it may not end yet.
    replaced: Result<Option<Action>, ()>,
}

fn leaving(observed: &Observed, core_node: &CoreNode, moved: Option<&Move>) -> Option<Leaving> {
    let pod = observed.pod.as_ref()?;
    let elsewhere = observed.runs_on().filter(|name| *name != core_node.name_any())?;
    let (from, to) = (elsewhere.to_owned(), core_node.name_any());
    let cause = moved.map(|moved| moved.cause.clone());
    let cause = RestartCause::Moved { pod: pod.name_any(), from, to, cause };
    // A pod on a machine that is lost is deleted by the Node controller, which knows when that is safe.
    let is_on_lost = observed.nodes.iter().any(|node| is_lost(node) && is_named(node, elsewhere));
    let is_blocked = observed.stateful_set.ours().is_some_and(|live| safety::may_replace_pod(live).is_err());
    let replaced = if pod.metadata.deletion_timestamp.is_some() || is_on_lost {
        Ok(None)
    } else if is_blocked {
        Err(())
    } else {
        Ok(Some(Action::ReplacePod(pod.name_any(), pod.uid().unwrap_or_default(), None, cause.clone())))
    };
    Some(Leaving { cause, replaced })
}

/// Whether no engine may be left behind on another machine. Where one of them carries the label, that one is
/// known to be the last, and was judged before its successor was chosen.
fn may_be_labelled(observed: &Observed, node: &Node) -> Result<(), Blocker> {
    if observed.nodes.iter().any(|other| observed.carries_label(other)) {
        return Ok(());
    }
    let mut others = observed.nodes.iter().filter(|other| other.metadata.uid != node.metadata.uid);
    others.try_for_each(|other| safety::may_start_beside(other, observed.core_node_of(other).is_some()))
}

/// From which Node the database moves to this one, and why, if it does.
fn cause_of_move(observed: &Observed, node: &Node) -> Option<Move> {
    let replacement = observed.database.status.as_ref()?.replacement.as_ref()?;
    let Replacement { from, to, cause, .. } = replacement;
    if *to == node.name_any() {
        return Some(Move { from: from.clone(), to: to.clone(), cause: cause.clone() });
    }
    // Back to the machine that it came from.
    let left =
        observed.nodes.iter().find(|node| node.name_any() == *to).filter(|_| *from == node.name_any())?;
    let was_used =
        observed.carries_label(left) || observed.runs_on().is_some_and(|name| is_named(left, name));
    let why = why_replaced(observed, left).filter(|_| was_used)?;
    Some(Move { from: to.clone(), to: from.clone(), cause: why.message() })
}

//! The plan of a Database that is deleted and releases its database: the StatefulSet becomes what it was, or
//! is left as it runs, then the other objects, then Node and Volume release what they have. Nothing is
//! stopped. Pure.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use super::action::{Action, Plan};
use super::facts::{adoption, node_awaited, volume_awaited};
use super::leaving::{is_as_found, is_begun, is_leaving, is_requested, keeps, recorded, unreleasable};
use super::pause::{delete_nodes, give_back};
use crate::api::database::{Adoption, Release};
use crate::controller::database::build;
use crate::controller::database::cause::NodeDeletion;
use crate::controller::database::child_kind::ChildKind;
use crate::controller::database::observe::Observed;
use crate::controller::database::observe::child::Child;
use crate::controller::database::wait::DatabaseWait;
use crate::time::whole_second;

/// The next step; `None` when nothing is to be released.
pub(super) fn plan(observed: &Observed, now: Timestamp) -> Option<Plan> {
    // What cannot go on by itself in a teardown is deleted as any other.
    let is_possible = is_requested(observed) && unreleasable(observed).is_none();
    if !is_begun(observed) && !is_possible {
        return None;
    }
    let as_found = is_as_found(observed);
    let mut actions = Vec::new();
    actions.extend(record(observed, as_found, now));
    // What would be released is neither repaired nor changed from here on. A Node or Volume that is deleted
    // already is not either, and would release what it has at once: that comes after the StatefulSet.
    let flagged = flags(observed, false);
    let has_flagged = !flagged.is_empty();
    actions.extend(flagged);
    if let Some(wait) = awaited(observed, has_flagged, as_found) {
        return Some(Plan::act(actions, wait).requeue(observed.timing.requeue_interval));
    }
    let before = actions.len();
    if let Child::Ours(live) = &observed.stateful_set {
        actions
            .push(Action::ReleaseStatefulSet(live.clone(), Box::new(released_set(observed, live, as_found))));
    }
    actions.extend(children(observed));
    if actions.len() > before {
        let wait = DatabaseWait::Releasing { set: observed.names.stateful_set.clone(), as_found };
        return Some(Plan::act(actions, wait).requeue(observed.timing.requeue_interval));
    }
    // Before the label: without it a machine is emptied that is not released.
    actions.extend(flags(observed, true));
    let why = NodeDeletion::DatabaseReleased;
    // The pod of a database that goes on as it runs finds its machine by the label.
    let deleting = if as_found {
        give_back(observed, &why, &mut actions)
    } else {
        delete_nodes(observed, &why, &mut actions)
    };
    if let Some(waiting) = deleting {
        return Some(Plan::act(actions, waiting));
    }
    if let Child::Ours(volume) = &observed.volume {
        if volume.metadata.deletion_timestamp.is_none() {
            actions.push(Action::DeleteVolume(volume.uid().unwrap_or_default()));
        }
        return Some(Plan::act(actions, DatabaseWait::ReleasingVolume(volume.name_any())));
    }
    actions.push(Action::RemoveFinalizer);
    Some(Plan::act(actions, DatabaseWait::ResourcesDeleted))
}

/// Has Nodes and Volume release what they have: those that are deleted, or those that are not.
fn flags(observed: &Observed, of_deleted: bool) -> Vec<Action> {
    let is_of = |metadata: &ObjectMeta| metadata.deletion_timestamp.is_some() == of_deleted;
    flag(observed, &json!(true), |metadata, is_released| !is_released && is_of(metadata))
}

/// Writes `spec.release` of the Nodes and of the Volume that are meant, by what it says now.
fn flag(observed: &Observed, to: &Value, is_meant: impl Fn(&ObjectMeta, bool) -> bool) -> Vec<Action> {
    let release = || json!({"release": to});
    let nodes = observed.nodes.iter().filter(|node| is_meant(&node.metadata, node.spec.release));
    let volume = observed.volume.ours().filter(|volume| is_meant(&volume.metadata, volume.spec.release));
    nodes
        .map(|node| Action::UpdateNode(node.name_any(), node.uid().unwrap_or_default(), release()))
        .chain(volume.map(|it| Action::UpdateVolume(it.uid().unwrap_or_default(), release())))
        .collect()
}

/// What is awaited before the first object is released: that Node and Volume have seen that they are, and
/// that EC2 lets the Node read what it is to release. A deleted one gets its flag later; in a teardown, and
/// where one of them releases already, there is no time for it.
fn awaited(observed: &Observed, has_flagged: bool, as_found: bool) -> Option<DatabaseWait> {
    observed.stateful_set.ours().filter(|_| !observed.torn_down.any() && !is_begun(observed))?;
    if has_flagged {
        return Some(DatabaseWait::Releasing { set: observed.names.stateful_set.clone(), as_found });
    }
    let mut nodes = observed.nodes.iter().filter(|node| node.metadata.deletion_timestamp.is_none());
    let volume = observed.volume.ours().filter(|volume| volume.metadata.deletion_timestamp.is_none());
    let of_volume = || volume.and_then(volume_awaited).filter(|wait| !wait.is_stalled());
    nodes.find_map(node_awaited).or_else(of_volume)
}

/// The plan, and first of all that Node and Volume are kept, whatever else the plan waits for: what would be
/// released is neither repaired nor changed.
pub(super) fn kept(mut plan: Plan, observed: &Observed) -> Plan {
    if !is_leaving(observed) {
        plan.actions.splice(0..0, withdrawn(observed));
    }
    plan
}

/// Has Node and Volume keep what they would release, and forgets a release that was recorded and has not
/// begun. Forgotten last: the record shows that the database was Freehold's. One that is deleted releases
/// what it has already: without its tags, it could not be terminated any more.
pub(super) fn withdrawn(observed: &Observed) -> Vec<Action> {
    if !keeps(observed) {
        return Vec::new();
    }
    let is_staying = |metadata: &ObjectMeta| metadata.deletion_timestamp.is_none();
    let mut first = flag(observed, &Value::Null, |metadata, is_released| is_released && is_staying(metadata));
    first.extend(recorded(observed).map(|_| Action::ForgetRelease));
    first
}

/// Writes the release down, as long as the StatefulSet is there to be released: the pod may have been
/// replaced since the last time. One that was begun and is not known any more is written down again: when
/// neither Node nor Volume is left, nothing else shows it.
fn record(observed: &Observed, as_found: bool, now: Timestamp) -> Option<Action> {
    let known = recorded(observed);
    let is_settled = known.is_some() || !is_begun(observed);
    if observed.stateful_set.ours().is_none() && is_settled {
        return None;
    }
    let started_at = known.map_or_else(|| Time(whole_second(now)), |known| known.started_at.clone());
    let release = Release { started_at, as_found };
    (known != Some(&release)).then_some(Action::RecordRelease(release))
}

/// What the StatefulSet becomes: with a spec if that changes, too.
fn released_set(observed: &Observed, live: &StatefulSet, as_found: bool) -> Value {
    let (adoption, names) = (adoption(observed), &observed.names);
    if as_found {
        let found = adoption.map(|adoption| adoption.stateful_set.clone()).unwrap_or_default();
        return build::released_as_found(found, &live.metadata, names);
    }
    let found = adoption.and_then(Adoption::found_set).map(|found| found.metadata);
    build::released(&live.metadata, names, found.as_ref())
}

/// The other objects that the database needs. An adopted database has none of Freehold's.
fn children(observed: &Observed) -> impl Iterator<Item = Action> {
    let release = |kind: ChildKind, child: Option<&ObjectMeta>| {
        let live = child?;
        let to = build::released(live, &observed.names, None);
        Some(Action::ReleaseChild(kind, Box::new(live.clone()), Box::new(to)))
    };
    let children = [
        release(ChildKind::Service, observed.service.ours().map(Resource::meta)),
        release(ChildKind::ConfigMap, observed.config_map.ours().map(Resource::meta)),
        release(ChildKind::ServiceAccount, observed.service_account.ours().map(Resource::meta)),
        release(ChildKind::NetworkPolicy, observed.network_policy.ours().map(Resource::meta)),
        release(ChildKind::DatabaseUser, observed.application_user.ours().map(Resource::meta)),
        // Without Freehold, which moves the database, nothing would ever end a drain.
        Action::delete(ChildKind::PodDisruptionBudget, observed.disruption_budget.ours().map(Resource::meta)),
    ];
    children.into_iter().flatten()
}

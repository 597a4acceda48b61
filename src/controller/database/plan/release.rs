//! The plan of a Database that is deleted and releases the database that it adopted: the StatefulSet becomes
//! what it was, then Node and Volume release what they have. Nothing is stopped. Pure.

use kube::ResourceExt;
use serde_json::json;

use super::action::{Action, Plan};
use super::facts::{adoption, slowly};
use super::pause::give_back;
use crate::controller::database::cause::NodeDeletion;
use crate::controller::database::observe::Observed;
use crate::controller::database::observe::child::Child;
use crate::controller::database::wait::DatabaseWait;

/// The next step; `None` when nothing is to be released.
pub(super) fn plan(observed: &Observed) -> Option<Plan> {
    if observed.database.spec.adopt.is_none() || !observed.database.spec.release {
        return None;
    }
    // Nothing is released before it is known that it can be. What was never adopted is as it was found.
    if !is_as_found(observed) {
        let wait = DatabaseWait::NotReleasable(observed.names.stateful_set.clone());
        return Some(Plan::wait(wait).requeue(slowly(observed)));
    }
    let mut actions = Vec::new();
    for node in observed.nodes.iter().filter(|node| node.spec.instance_id.is_some() && !node.spec.release) {
        let (name, uid) = (node.name_any(), node.uid().unwrap_or_default());
        actions.push(Action::UpdateNode(name, uid, json!({"release": true})));
    }
    if let Child::Ours(volume) = &observed.volume
        && !volume.spec.release
    {
        actions.push(Action::UpdateVolume(volume.uid().unwrap_or_default(), json!({"release": true})));
    }
    if let Child::Ours(live) = &observed.stateful_set {
        let found = adoption(observed).map(|adoption| adoption.stateful_set.clone()).unwrap_or_default();
        actions.push(Action::ReleaseStatefulSet(live.clone(), Box::new(found)));
        let wait = DatabaseWait::Releasing(live.name_any());
        return Some(Plan::act(actions, wait).requeue(observed.timing.requeue_interval));
    }
    if let Some(waiting) = give_back(observed, &NodeDeletion::DatabaseReleased, &mut actions) {
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

/// Whether the pod is the one that was found, on the instance that was found: the StatefulSet that it was
/// then restarts nothing, and finds its machine again.
fn is_as_found(observed: &Observed) -> bool {
    let pod = observed.pod.as_ref().and_then(ResourceExt::uid);
    let found = adoption(observed).map(|adoption| adoption.pod_uid.clone());
    let has_its_pod = observed.stateful_set.ours().is_none() || (pod.is_some() && pod == found);
    has_its_pod && observed.nodes.iter().all(|node| node.spec.instance_id.is_some())
}

//! What the parts of the plan of the Database controller share: questions about what was observed. Pure.

use std::borrow::Cow;
use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Node as CoreNode, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use serde_json::Value;

use super::gone_back;
use crate::api::database::Adoption;
use crate::api::keys::INPUTS_HASH_ANNOTATION;
use crate::api::{ConditionType, DatabaseUser, Node, Reason, Volume, VolumeId};
use crate::cluster::status::difference;
use crate::controller::conditions;
use crate::controller::database::build;
use crate::controller::database::object_name::{ObjectKind, ObjectName};
use crate::controller::database::observe::Observed;
use crate::controller::database::pod::{attaching, engine_wait, has_started, inputs_of};
use crate::controller::database::wait::{ChildState, DatabaseWait};
use crate::engine::Profile;

/// The zone of the next machine, if it is decided.
pub(in crate::controller::database) fn next_zone(observed: &Observed) -> Option<String> {
    disk_zone(observed).or_else(|| recorded_zone(observed))
}

/// Where the disk is. It cannot leave, so it decides against any record: one that was restored from a backup
/// of the cluster may lie.
pub(in crate::controller::database) fn disk_zone(observed: &Observed) -> Option<String> {
    observed.volume.ours().map(|volume| volume.spec.zone.clone())
}

pub(in crate::controller::database) fn recorded_zone(observed: &Observed) -> Option<String> {
    observed.database.status.as_ref().and_then(|status| status.zone.clone())
}

/// What is awaited of a machine, by its own conditions.
pub(in crate::controller::database) fn node_awaited(node: &Node) -> Option<DatabaseWait> {
    let is_current =
        node.status.as_ref().is_some_and(|status| status.observed_generation == node.metadata.generation);
    awaited(ObjectName::new(ObjectKind::Node, node.name_any()), node.conditions(), is_current)
}

/// What is awaited of the Volume, by its own conditions.
pub(in crate::controller::database) fn volume_awaited(volume: &Volume) -> Option<DatabaseWait> {
    let is_current =
        volume.status.as_ref().is_some_and(|status| status.observed_generation == volume.metadata.generation);
    awaited(ObjectName::new(ObjectKind::Volume, volume.name_any()), volume.conditions(), is_current)
}

/// What the DatabaseUser of the application says of itself; `None` when it is ready as its newest spec says.
pub(super) fn state_of_user(user: &DatabaseUser) -> Option<ChildState> {
    let is_current =
        user.status.as_ref().is_some_and(|status| status.observed_generation == user.metadata.generation);
    state(user.conditions(), is_current)
}

/// What is awaited of a child; `None` when it is ready as its newest spec says.
fn awaited(object: ObjectName, conditions: &[Condition], is_current: bool) -> Option<DatabaseWait> {
    state(conditions, is_current).map(|state| DatabaseWait::Child { object, state })
}

/// What a child says of itself. Reasons and messages are only repeated, for display.
fn state(conditions: &[Condition], is_current: bool) -> Option<ChildState> {
    let shown = |condition: &Condition| (Reason::named(&condition.reason), condition.message.clone());
    let stalled =
        conditions::find(conditions, ConditionType::Stalled).filter(|stalled| stalled.status == "True");
    match (stalled, conditions::find(conditions, ConditionType::Ready)) {
        (Some(stalled), _) => {
            let (reason, message) = shown(stalled);
            Some(ChildState::Stalled { reason, message })
        }
        (None, Some(ready)) if ready.status == "True" && is_current => None,
        (None, Some(ready)) if ready.status == "True" => Some(ChildState::Outdated),
        (None, Some(ready)) => {
            let (reason, message) = shown(ready);
            Some(ChildState::NotReady { reason, message })
        }
        (None, None) => Some(ChildState::New),
    }
}

/// The message of a condition, to repeat it.
pub(in crate::controller::database) fn condition_message(
    conditions: &[Condition],
    kind: ConditionType,
) -> Option<String> {
    conditions::find(conditions, kind).map(|condition| condition.message.clone())
}

/// What is awaited of the engine.
pub(in crate::controller::database) fn engine_waiting(observed: &Observed) -> Option<DatabaseWait> {
    let attaching = observed.attachment.as_ref().and_then(attaching).map(DatabaseWait::Attaching);
    let wait = || engine_wait(observed.pod.as_ref(), observed.engine());
    attaching.or_else(|| wait().map(DatabaseWait::Engine))
}

/// How the database was found, if it was adopted.
pub(in crate::controller::database) fn adoption(observed: &Observed) -> Option<&Adoption> {
    observed.database.status.as_ref()?.adoption.as_ref()
}

/// Whether the StatefulSet was adopted: how it was found is recorded before that, and after it what was
/// applied, and that the Volume keeps what it has. What was applied is forgotten again before each write.
pub(super) fn was_adopted(observed: &Observed) -> bool {
    let applied = observed.database.status.as_ref().and_then(|status| status.applied.as_ref());
    let is_applied = applied.is_some_and(|applied| applied.stateful_set.is_some());
    let is_kept = || observed.volume.ours().is_some_and(|it| it.spec.adopt.is_some() && !it.spec.release);
    adoption(observed).is_some() && (is_applied || is_kept())
}

/// The same as it decides the template.
fn in_force(observed: &Observed) -> Option<Cow<'_, Adoption>> {
    adoption(observed).map(|adoption| gone_back::in_force(observed, adoption))
}

/// The hash of the inputs that the pod was made from, or of those that its engine took while it ran. The pod
/// that was found with an adopted database has none: it counts as made from what the spec requested when the
/// database was adopted. Another pod without one was made from a template that Freehold has not written; one
/// that runs all the same is not restarted for it.
pub(in crate::controller::database) fn inputs_of_pod(observed: &Observed, pod: &Pod) -> Option<String> {
    let config = observed.database.status.as_ref().and_then(|status| status.config.as_ref());
    let reloaded = config.and_then(|config| config.reloaded.as_ref());
    if let Some(reloaded) = reloaded.filter(|it| pod.metadata.uid.as_ref() == Some(&it.pod_uid)) {
        return Some(reloaded.inputs_hash.clone());
    }
    let of_found = || {
        observed.database.spec.adopt.as_ref()?;
        let Some(adoption) = adoption(observed) else {
            return Some(build::inputs_hash(&observed.database.spec));
        };
        let is_found =
            pod.metadata.uid.as_ref() == Some(&adoption.pod_uid) || has_started(pod, observed.engine());
        is_found.then(|| adoption.inputs_hash.clone())
    };
    inputs_of(pod).map(str::to_owned).or_else(of_found)
}

/// The hash of the inputs that the pod is to be made from.
pub(in crate::controller::database) fn wanted_inputs(observed: &Observed) -> String {
    build::inputs_to_run(&observed.database.spec, in_force(observed).as_deref())
}

/// Whether the template is of other inputs than those that the pod is to be made from.
pub(super) fn is_outdated(observed: &Observed, live: &StatefulSet) -> bool {
    inputs_of_set(live) != Some(wanted_inputs(observed).as_str())
}

/// The hash of the inputs that the template was rendered from.
pub(super) fn inputs_of_set(stateful_set: &StatefulSet) -> Option<&str> {
    stateful_set.annotations().get(INPUTS_HASH_ANNOTATION).map(String::as_str)
}

/// The StatefulSet as it is made now, running. That of an adopted database is made from what was found, or,
/// where that is not known any more, from what is there. `core_node` is the machine that its pod is to run
/// on.
pub(in crate::controller::database) fn template(
    observed: &Observed,
    profile: &Profile,
    core_node: Option<&CoreNode>,
) -> StatefulSet {
    let adoption = in_force(observed);
    let adoption = adoption.as_deref();
    let recorded = adoption.and_then(Adoption::found_set);
    let live = || observed.stateful_set.ours().cloned();
    let found: Option<StatefulSet> =
        if observed.database.spec.adopt.is_some() { recorded.or_else(live) } else { None };
    if let Some(found) = found {
        let mut set = build::adopted_set(&found, &observed.database, &observed.names, profile, adoption);
        set.spec.get_or_insert_default().replicas = Some(1);
        return set;
    }
    let set = build::stateful_set(&observed.database, &observed.names, profile, 1);
    let mut set = build::with_wal_archive(set, &observed.database, ebs_volume(observed));
    if let Some(memory) = core_node.and_then(|it| build::memory_on(&observed.database.spec, it))
        && let Some(sized) = build::with_memory(&set, memory)
    {
        set.spec = sized.spec;
    }
    build::in_priority_class(set, observed.priority_class.as_deref())
}

/// The EBS volume, once it is there.
pub(super) fn ebs_volume(observed: &Observed) -> Option<&VolumeId> {
    observed.volume.ours()?.status.as_ref()?.volume_id.as_ref()
}

/// How many pods the StatefulSet asks for; Kubernetes' default is one.
pub(super) fn replicas(stateful_set: &StatefulSet) -> i32 {
    stateful_set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

/// The JSON merge patch of a spec; `None` when nothing differs.
pub(super) fn patch<S: serde::Serialize>(live: &S, wanted: &S) -> Option<Value> {
    difference(&serde_json::to_value(live).ok()?, &serde_json::to_value(wanted).ok()?)
}

/// How long until something is read again that is not watched.
pub(super) fn slowly(observed: &Observed) -> Duration {
    observed.timing.requeue_interval.saturating_mul(12)
}

pub(super) fn is_named(node: &Node, core_node: &str) -> bool {
    node.status.as_ref().and_then(|status| status.core_node_name.as_deref()) == Some(core_node)
}

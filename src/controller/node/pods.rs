//! What a pod on a machine is to the machine's database: the database's own, the machine's, or foreign. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::{Resource, ResourceExt};

use crate::api::keys::{DATABASE_NAME_LABEL, MIRROR_POD_ANNOTATION, STATEFUL_SET_ANNOTATION};
use crate::api::names::PULL_COMMAND;
use crate::api::{Database, Node, names};
use crate::cluster::controller_of;
use crate::settings::Timing;
use crate::time::later;

/// Pods of DaemonSets and static pods belong to the machine and go with it. Who may create neither cannot
/// pass a pod off as one for long: the DaemonSet's controller gives up a pod that its selector does not
/// match, and the kubelet deletes a mirror pod whose static pod it does not have.
pub fn is_of_the_machine(pod: &Pod) -> bool {
    let Some(owner) = controller_of(pod) else { return false };
    match owner.kind.as_str() {
        "DaemonSet" => owner.api_version.starts_with("apps/"),
        "Node" => pod.annotations().contains_key(MIRROR_POD_ANNOTATION),
        _ => false,
    }
}

/// Whether a pod is the one of this Node's database: by its name, which belongs to the StatefulSet, in its
/// namespace, which belongs to the tenant. A label would prove nothing: a user who may create pods can write
/// it. Without the Node's own label nothing is known, and no pod counts as foreign. On an adopted machine the
/// StatefulSet has the name that it was created with: every pod of the namespace may be the database's.
fn is_own(pod: &Pod, node: &Node) -> bool {
    if node.spec.instance_id.is_some() {
        return pod.namespace() == node.namespace();
    }
    let set = node.annotations().get(STATEFUL_SET_ANNOTATION);
    match set.or_else(|| node.labels().get(DATABASE_NAME_LABEL)).map(|set| names::pod(set)) {
        Some(name) => pod.namespace() == node.namespace() && pod.metadata.name == Some(name),
        None => true,
    }
}

/// Whether a pod only pulls the next image of this Node's database: it ends at once, has none of the data,
/// and is awaited by nothing. It is known by what it is, whoever made it: it runs nothing.
fn only_pulls(pod: &Pod, node: &Node) -> bool {
    let is_of_database = controller_of(pod).is_some_and(|owner| {
        owner.kind == Database::kind(&()) && owner.api_version == Database::api_version(&())
    });
    let set = node.labels().get(DATABASE_NAME_LABEL);
    let is_named = set.is_some_and(|set| pod.metadata.name == Some(names::pull_pod(set)));
    let runs_nothing = pod.spec.as_ref().is_some_and(|spec| {
        let are_idle = spec
            .containers
            .iter()
            .all(|it| it.command.as_deref().is_some_and(|words| words == [PULL_COMMAND]));
        are_idle
            && spec.volumes.as_ref().is_none_or(Vec::is_empty)
            && spec.init_containers.as_ref().is_none_or(Vec::is_empty)
    });
    is_of_database && is_named && runs_nothing && pod.namespace() == node.namespace()
}

/// Whether its containers have ended for good: it uses nothing of the machine any more.
fn has_finished(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// The database's own pods on the machine.
pub(super) fn own<'a>(pods: &'a [Pod], node: &'a Node) -> impl Iterator<Item = &'a Pod> {
    pods.iter().filter(|pod| is_own(pod, node) && !only_pulls(pod, node))
}

/// The pods that have no business on the machine and still use it.
pub(super) fn foreign<'a>(pods: &'a [Pod], node: &'a Node) -> impl Iterator<Item = &'a Pod> {
    pods.iter().filter(|pod| !is_own(pod, node) && !only_pulls(pod, node) && !has_finished(pod))
}

/// Whether a pod may still end by itself: Kubernetes sets the time at which its grace is over.
fn may_end(pod: &Pod, now: Timestamp) -> bool {
    pod.metadata.deletion_timestamp.as_ref().is_none_or(|ends| now < ends.0)
}

/// The database's own pods on the machine that have not ended so long after their grace.
pub(super) fn overdue<'a>(
    pods: &'a [Pod],
    node: &'a Node,
    timing: &'a Timing,
    now: Timestamp,
) -> impl Iterator<Item = &'a Pod> {
    own(pods, node).filter(move |pod| {
        let ends = pod.metadata.deletion_timestamp.as_ref();
        ends.is_some_and(|ends| now >= later(ends.0, timing.kubelet_silence_timeout))
    })
}

/// The pods that the end of the machine of a deleted Node waits for: the database's own until they are
/// overdue, and foreign ones only for their grace. A foreign pod may have a finalizer, or a controller that
/// creates it anew: nothing that it does keeps the machine for longer.
pub(super) fn awaited(pods: &[Pod], node: &Node, timing: &Timing, now: Timestamp) -> Vec<String> {
    let deleted_at = node.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    let is_in_grace = deleted_at.is_none_or(|deleted_at| now < later(deleted_at, timing.foreign_pod_grace));
    let is_overdue = |pod: &Pod| overdue(pods, node, timing, now).any(|late| late.uid() == pod.uid());
    own(pods, node)
        .filter(|pod| !is_overdue(pod))
        .chain(foreign(pods, node).filter(|pod| is_in_grace && may_end(pod, now)))
        .map(|pod| format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any()))
        .collect()
}

/// The grace in seconds that a foreign pod is deleted with: its own, and at most this; `None` when it was
/// deleted with that already. A pod that was deleted with a longer one is deleted again: Kubernetes then
/// shortens the grace.
pub(super) fn shortened_grace(pod: &Pod, most: Duration) -> Option<u32> {
    let most = i64::try_from(most.as_secs()).unwrap_or(i64::MAX);
    let left = match &pod.metadata.deletion_timestamp {
        None => return seconds(pod.spec.as_ref().and_then(|it| it.termination_grace_period_seconds), most),
        Some(_) => pod.metadata.deletion_grace_period_seconds.unwrap_or_default(),
    };
    (left > most).then(|| u32::try_from(most).unwrap_or(u32::MAX))
}

/// Kubernetes' default grace is 30 s.
fn seconds(own: Option<i64>, most: i64) -> Option<u32> {
    u32::try_from(own.unwrap_or(30).clamp(0, most)).ok()
}

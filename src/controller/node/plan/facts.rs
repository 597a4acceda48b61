//! What the parts of the plan of the Node controller share: questions about what was observed, and the
//! termination of an instance. Pure.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::action::{Action, Plan};
use crate::api::creation::Attempt;
use crate::api::keys::DATABASE_NAME_LABEL;
use crate::api::node::NodeCreation;
use crate::api::{InstanceId, Node, NodeStatus};
use crate::cloud::absence::{self, AbsenceProven, TokenLookup};
use crate::cloud::identity::{self, Kind, Owner};
use crate::cloud::{Instance, LAUNCH_SHAPE};
use crate::cluster::finalizer;
use crate::controller::creation::judge::{self, Facts};
use crate::controller::memory::issued_requests::{Again, again};
use crate::controller::memory::sends::Sent;
use crate::controller::node::observe::Observed;
use crate::controller::node::pods;
use crate::controller::node::wait::NodeWait;
use crate::controller::safety::{self, Kubelet};
use crate::time::whole_second;

/// Whether some attempt of this Node launched it: a tag can be put on anything, a token cannot. The token of
/// the recorded attempt needs no tag: tags may come later than their instance.
pub(super) fn is_own(observed: &Observed, instance: &Instance) -> bool {
    let uid = observed.node.uid().unwrap_or_default();
    let recorded = observed.node.status.as_ref().and_then(|status| status.creation.as_ref());
    let is_of =
        |attempt| Some(identity::token(&observed.cluster_id, Kind::Node, &uid, attempt)) == instance.token;
    identity::attempt(&instance.tags).is_some_and(is_of)
        || recorded.is_some_and(|launch| instance.token.as_ref() == Some(&launch.client_token))
}

/// Whom the instances of the Node belong to.
pub(super) fn owner_of(observed: &Observed) -> Owner {
    let node = &observed.node;
    let database = node.labels().get(DATABASE_NAME_LABEL).cloned().unwrap_or_default();
    Owner {
        cluster_id: observed.cluster_id.clone(),
        kind: Kind::Node,
        uid: node.uid().unwrap_or_default(),
        database: format!("{}/{database}", node.namespace().unwrap_or_default()),
        name: node.name_any(),
    }
}

/// The facts that the protocol judges an attempt by.
pub(super) fn attempt_facts(observed: &Observed, launch: &NodeCreation, deleting: bool) -> Facts<InstanceId> {
    let found = observed
        .instances
        .instances
        .iter()
        .find(|instance| instance.token.as_ref() == Some(&launch.client_token));
    Facts {
        deleting,
        started_at: launch.attempt.started_at.0,
        refused: launch.attempt.refused.clone(),
        has_token: true,
        sent: observed.sent,
        found: found.map(|instance| instance.id.clone()),
        looked_up: looked_up(observed),
        absent: proven_absent(observed, Some(launch)),
        same_request: observed
            .class
            .as_ref()
            .is_some_and(|class| identity::user_data_hash(&class.spec.user_data) == launch.user_data_hash)
            && launch.shape == LAUNCH_SHAPE,
    }
}

/// Whether it is known what EC2 has of this Node: EC2 has shown it, or the Node was made since this operator
/// leads, and no other can have launched anything for it.
pub(in crate::controller::node) fn is_known(observed: &Observed) -> bool {
    let made_at = observed.node.metadata.creation_timestamp.as_ref().map(|at| at.0);
    let is_new = made_at.is_some_and(|at| at >= observed.leading_since);
    let status = observed.node.status.as_ref();
    let is_decided = status.is_some_and(|status| status.creation.is_some());
    // Every launch of it that was sent is the one that its status has.
    let is_by_us = if is_decided { observed.sent.is_some() } else { !observed.has_sent };
    let is_named =
        observed.node.spec.instance_id.is_some() || status.is_some_and(|status| status.instance_id.is_some());
    observed.instances.swept_at.is_some() || is_new && is_by_us && !is_named
}

/// Whether EC2 was searched by tag and by token since this operator leads.
fn looked_up(observed: &Observed) -> bool {
    let since_start = |at: Option<Timestamp>| at.is_some_and(|at| at >= observed.leading_since);
    since_start(observed.instances.swept_at) && since_start(observed.instances.token_looked_up_at)
}

/// The proof that this attempt's instance does not exist. Without the attempt (the status was lost) there is
/// no token to look up. What was adopted or is released must be unknown to EC2 by its id, too: its tags were
/// put on later, or are taken off. A launch in doubt has no id: its token shows it, which nothing takes off.
/// A kubelet that reports to be ready contradicts an absence, however often EC2 says it: it may be another
/// account's or Region's EC2 that answers.
pub(in crate::controller::node) fn proven_absent(
    observed: &Observed,
    launch: Option<&NodeCreation>,
) -> Option<AbsenceProven> {
    if safety::kubelet(observed.core_node.as_ref()) == Kubelet::Ready {
        return None;
    }
    let is_unknown = observed.shown_by_id.as_ref().is_some_and(Vec::is_empty);
    let is_recorded = observed.node.status.as_ref().is_some_and(|status| status.instance_id.is_some());
    let has_lost_tags = observed.node.spec.release && (is_recorded || launch.is_none());
    let has_other_tags = observed.node.spec.instance_id.is_some() || has_lost_tags;
    if has_other_tags && !is_unknown {
        return None;
    }
    let empty = observed.instances.empty;
    let attempt = launch.map(|launch| &launch.attempt);
    let status = observed.node.status.as_ref();
    let last = last_possible_send(status, attempt, observed.sent.as_ref(), observed.leading_since);
    let by_token = launch.map_or(TokenLookup::NotPossible, |_| TokenLookup::Required(empty.by_token));
    absence::prove(last, empty.by_tag, by_token, observed.timing.absence_window)
}

/// Whether the status is empty although a pass wrote it before, so that a launch may have been forgotten. The
/// pass that puts the finalizer on a Node writes its status, too; if that write failed, the Node was made
/// since this operator leads, and no launch of it was sent.
pub(in crate::controller::node) fn has_lost_status(observed: &Observed) -> bool {
    let node = &observed.node;
    let made_at = node.metadata.creation_timestamp.as_ref().map(|at| at.0);
    let is_new = !observed.has_sent && made_at.is_some_and(|at| at >= observed.leading_since);
    let is_launched = node.spec.instance_id.is_none() && !node.spec.release;
    is_launched && is_emptied(node) && !is_new
}

/// The same of an adopted instance that is to be released: it may carry our tags.
pub(in crate::controller::node) fn has_lost_adoption(node: &Node) -> bool {
    node.spec.release && node.spec.instance_id.is_some() && is_emptied(node)
}

/// Whether the status names an instance, or was found lost, so that there may be one.
pub(in crate::controller::node) fn may_have_an_instance(status: &NodeStatus) -> bool {
    status.instance_id.is_some() || status.status_lost_at.is_some()
}

/// Whether the status is empty, as none is that a pass wrote.
fn is_emptied(node: &Node) -> bool {
    let is_empty = node.status.as_ref().is_none_or(|status| {
        let is_recorded = status.status_lost_at.is_some();
        let is_known = status.creation.is_some() || status.instance_id.is_some();
        status.conditions.is_empty() && !is_recorded && !is_known
    });
    finalizer::has(node) && is_empty
}

/// The last moment at which a launch of this Node may have left an operator. Without the attempt (the status
/// was lost) that is when the loss was found, or when an earlier operator still led.
pub(in crate::controller::node) fn last_possible_send(
    status: Option<&NodeStatus>,
    attempt: Option<&Attempt>,
    sent: Option<&Sent>,
    leading_since: Timestamp,
) -> Timestamp {
    let last = judge::last_possible_send(attempt, sent, leading_since);
    let lost_at = status.and_then(|status| status.status_lost_at.as_ref());
    lost_at.map_or(last, |lost_at| lost_at.0.max(last))
}

/// Whether a launch that the status forgot may still come to light.
pub(super) fn may_have_forgotten_a_launch(observed: &Observed) -> bool {
    let Node { spec, status, .. } = &observed.node;
    let is_lost = status.as_ref().is_some_and(|status| status.status_lost_at.is_some());
    let is_recorded = is_lost && spec.instance_id.is_none();
    has_lost_status(observed) || is_recorded && proven_absent(observed, None).is_none()
}

/// The machine's Kubernetes node, by the name that it has or had.
pub(super) fn core_node_name(observed: &Observed, status: &NodeStatus) -> String {
    let now = observed.core_node.as_ref().map(ResourceExt::name_any);
    now.or_else(|| status.core_node_name.clone()).unwrap_or_default()
}

/// How ready the machine's kubelet is; not Ready since it is so and the operator has seen it. A kubelet that
/// reports not to be ready writes the time of that by its own clock, which may be slow, and by its own
/// account: each start of it begins with that report.
pub(in crate::controller::node) fn kubelet(observed: &Observed, now: Timestamp) -> Kubelet {
    match safety::kubelet(observed.core_node.as_ref()) {
        Kubelet::NotReady(since) => {
            let status = observed.node.status.as_ref();
            let seen = status.and_then(|status| status.not_ready_since.as_ref());
            Kubelet::NotReady(since.max(seen.map_or_else(|| whole_second(now), |seen| seen.0)))
        }
        kubelet @ (Kubelet::Ready | Kubelet::Absent) => kubelet,
    }
}

/// Whether EC2's system or instance check of it fails.
pub(in crate::controller::node) fn is_impaired(observed: &Observed, id: &InstanceId) -> bool {
    observed.instances.unhealthy.iter().any(|health| health.id == *id && health.impaired)
}

/// Requests the termination of an instance once, and says what it waits for until EC2 shows that.
pub(super) fn terminate(
    observed: &Observed,
    id: &InstanceId,
    why: String,
    wait: impl Into<NodeWait>,
    now: Timestamp,
) -> Plan {
    match again_to_terminate(observed, id, now) {
        Again::Now => Plan::act(vec![Action::Terminate(id.clone(), why)], wait).pending(),
        Again::OnceShown => Plan::wait(wait).pending(),
        Again::Later(call_blocked, until) => {
            Plan::wait(NodeWait::CallBlocked(call_blocked.clone())).until(until, now).pending()
        }
    }
}

/// Whether the termination of this instance may be requested (again).
pub(super) fn again_to_terminate<'a>(observed: &'a Observed, id: &InstanceId, now: Timestamp) -> Again<'a> {
    again(
        observed.issued_terminations.get(id),
        observed.instances.swept_at,
        observed.timing.requeue_interval,
        now,
    )
}

/// The database's own pods that are not requested to end yet.
pub(super) fn evictions(observed: &Observed) -> impl Iterator<Item = Action> {
    pods::own(&observed.pods, &observed.node)
        .filter(|pod| pod.metadata.deletion_timestamp.is_none())
        .map(|pod| evict(pod, false))
}

/// Every pod, deleted at once: the machine is gone for certain.
pub(super) fn removals(observed: &Observed) -> impl Iterator<Item = Action> {
    observed.pods.iter().map(|pod| evict(pod, true))
}

fn evict(pod: &Pod, at_once: bool) -> Action {
    Action::EvictPod {
        namespace: pod.namespace().unwrap_or_default(),
        name: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        at_once,
    }
}

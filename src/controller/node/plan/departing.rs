//! What a machine that goes on running must be left for in good time: EC2 has announced what interrupts it,
//! or its Kubernetes node was cordoned outside Freehold. Pure.

use k8s_openapi::api::core::v1::Node as CoreNode;
use kube::ResourceExt;

use super::action::Plan;
use crate::api::keys::DATABASE_NODE_LABEL;
use crate::api::node::ReplacementCause;
use crate::api::{ConditionType, InstanceId, NodeStatus};
use crate::controller::blocker::Blocker;
use crate::controller::conditions;
use crate::controller::memory::repairs::RepairsAtLimit;
use crate::controller::node::observe::Observed;
use crate::controller::node::wait::NodeWait;
use crate::controller::node::wait::join::JoinWait;
use crate::controller::safety::is_cordoned;
use crate::time::sooner;

/// The plan of a machine that runs, with what it must be left for. As many are left at once as are repaired:
/// maintenance of a whole zone, or a script that cordons every machine, must not interrupt every database.
pub(super) fn considered(plan: Plan, observed: &Observed, status: &NodeStatus, id: &InstanceId) -> Plan {
    let staying = |core_node: &&CoreNode| core_node.metadata.deletion_timestamp.is_none();
    let Some(core_node) = observed.core_node.as_ref().filter(staying) else { return plan };
    let is_initialized = conditions::is_true(&status.conditions, ConditionType::Initialized);
    if observed.node.spec.release || !(is_initialized || plan.waiting.is_none()) {
        return plan;
    }
    let Some((cause, wait)) = why(observed, status, core_node, id) else { return plan };
    if !is_in_use(core_node) {
        let waiting = plan.waiting.clone().or_else(|| Some(wait.into()));
        return Plan { waiting, ..plan };
    }
    if let Some(blocker) = at_limit(observed, status, cause, core_node) {
        let requeue = Some(sooner(observed.timing.instance_sync_interval, plan.requeue));
        return Plan { waiting: plan.waiting.clone().or_else(|| Some(blocker.into())), requeue, ..plan };
    }
    // The first answer of EC2's may be that there is no event, which is no change to what was known before.
    let is_recorded = matches!(wait, JoinWait::EventRecorded(_));
    let again = is_recorded.then(|| sooner(observed.timing.instance_sync_interval, plan.requeue));
    Plan { waiting: Some(wait.into()), requeue: again.or(plan.requeue), ..plan }
}

/// As many machines that serve as may be are being replaced. What was requested of the Database stays so.
pub(super) fn at_limit(
    observed: &Observed,
    status: &NodeStatus,
    cause: ReplacementCause,
    core_node: &CoreNode,
) -> Option<Blocker> {
    if status.replacement_needed.is_some() {
        return None;
    }
    let RepairsAtLimit { underway, limit, .. } = observed.fleet.has_place_to_be_replaced().err()?;
    Some(Blocker::ReplacementsAtLimit { cause, core_node: core_node.name_any(), underway, limit })
}

/// What this wait requests of the Database.
pub(in crate::controller::node) fn cause(wait: &NodeWait) -> Option<ReplacementCause> {
    let NodeWait::Join(wait) = wait else { return None };
    let causes = [
        (matches!(wait, JoinWait::KubernetesNodeDeleted(_)), ReplacementCause::KubernetesNodeDeleted),
        (
            matches!(wait, JoinWait::EventScheduled { .. } | JoinWait::EventRecorded(_)),
            ReplacementCause::EventScheduled,
        ),
        (matches!(wait, JoinWait::Cordoned { in_use: true, .. }), ReplacementCause::Cordoned),
    ];
    causes.into_iter().find_map(|(is_it, cause)| is_it.then_some(cause))
}

/// Whether the database runs there, or is to: it selects the label.
fn is_in_use(core_node: &CoreNode) -> bool {
    core_node.labels().contains_key(DATABASE_NODE_LABEL)
}

fn why(
    observed: &Observed,
    status: &NodeStatus,
    core_node: &CoreNode,
    id: &InstanceId,
) -> Option<(ReplacementCause, JoinWait)> {
    let in_use = is_in_use(core_node);
    if let Some(wait) = announced(observed, status, id).filter(|_| in_use) {
        return Some((ReplacementCause::EventScheduled, wait));
    }
    // An adopted machine may have been cordoned to keep other pods off it: its database is not interrupted.
    let is_foreign = observed.node.spec.instance_id.is_none() && is_cordoned(core_node);
    let cordoned = || JoinWait::Cordoned { core_node: core_node.name_any(), in_use };
    is_foreign.then(|| (ReplacementCause::Cordoned, cordoned()))
}

/// The first thing that EC2 has announced. While EC2 does not answer, what it announced before stands: a
/// successor that boots is not ended for that.
fn announced(observed: &Observed, status: &NodeStatus, id: &InstanceId) -> Option<JoinWait> {
    let of_instance = || observed.instances.unhealthy.iter().filter(|health| health.id == *id);
    let first = of_instance().flat_map(|health| &health.events).min_by_key(|event| event.not_before);
    if let Some(event) = first {
        return Some(JoinWait::EventScheduled { instance: id.clone(), event: event.clone() });
    }
    let recorded = status.replacement_needed.as_ref().filter(|_| !observed.instances.is_health_known)?;
    let is_event = recorded.cause == ReplacementCause::EventScheduled;
    is_event.then(|| JoinWait::EventRecorded(recorded.message.clone()))
}

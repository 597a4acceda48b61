//! The plan step of the Node controller: compares what is with what should be, and decides the actions. Pure.

mod adoption;
mod check;
pub(super) mod departing;
pub(super) mod duplicates;
mod fence;
mod foreign;
mod initialization;
mod launch;
mod loss;
mod termination;
mod wakes;

pub mod action;
pub(super) mod facts;
pub mod judgement;
pub mod offering;
pub(super) mod release;

use jiff::Timestamp;
use kube::ResourceExt;

use self::action::{Action, Plan};
use self::duplicates::duplicates;
use self::facts::{is_known, proven_absent, terminate};
use self::judgement::{Judged, Judgement, Loss};
use super::messages;
use super::observe::Observed;
use super::wait::NodeWait;
use super::wait::launch::LaunchWait;
use super::wait::loss::LossWait;
use crate::api::{InstanceId, NodeStatus};
use crate::cloud::InstanceState;
use crate::cloud::turns::Priority;
use crate::cluster::finalizer;
use crate::cluster::ownership::Ownership;
use crate::controller::recurrence;
use crate::time::sooner;

/// Decides what to do about a Node. A debug build checks each plan by the rules of `check.rs`.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let status = observed.node.status.clone().unwrap_or_default();
    let judged = Judged { loss: loss::judge(observed, &status, now), proof: fence::proof(observed, &status) };
    let decided = decide(observed, &status, &judged, now);
    // A loss that is declared in this pass is a repair from its first call on.
    let priority = if decided.declares_lost() { Priority::Repair } else { observed.priority };
    let mut plan = foreign::evicted(observed, &status, Plan { judged, priority, ..decided });
    if observed.ownership == Ownership::Unowned {
        // The end of its Database wakes it no more.
        plan.requeue = Some(sooner(observed.timing.requeue_interval, plan.requeue));
    }
    debug_assert_eq!(
        check::violations(observed, &plan),
        Vec::<String>::new(),
        "the plan of {}",
        observed.node.name_any()
    );
    plan
}

/// The instance that was adopted or is being released, if EC2 must be requested to show it by its id: the
/// inventory has only what carries this Node's tags.
pub(super) fn unlisted(observed: &Observed) -> Option<InstanceId> {
    let released = || observed.node.status.as_ref()?.instance_id.as_ref().filter(|_| is_releasing(observed));
    let named = observed.node.spec.instance_id.as_ref().or_else(released)?;
    let is_needed = finalizer::has(&observed.node)
        && observed.instances.swept_at.is_some()
        && observed.instances.by_id(named).is_none();
    is_needed.then(|| named.clone())
}

/// Whether the Node is deleted, and its machine released.
fn is_releasing(observed: &Observed) -> bool {
    observed.node.spec.release && observed.node.metadata.deletion_timestamp.is_some()
}

fn decide(observed: &Observed, status: &NodeStatus, judged: &Judged, now: Timestamp) -> Plan {
    if observed.node.metadata.deletion_timestamp.is_some() {
        return termination::plan(observed, judged, now);
    }
    if !finalizer::has(&observed.node) {
        return Plan::act(vec![Action::AddFinalizer], NodeWait::Finalizer);
    }
    if !is_known(observed) {
        return Plan::wait(NodeWait::FirstSync);
    }
    let mut plan = match (&observed.node.spec.instance_id, &status.instance_id, &status.creation) {
        (Some(named), id, _) if id.as_ref() != Some(named) => adoption::take(observed, named),
        (_, Some(id), _) => identified(observed, status, id, judged, now),
        (_, None, Some(launch)) => launch::unidentified(observed, launch, now),
        (_, None, None) => launch::unlaunched(observed, now),
    };
    let unreadable = |id| release::unreadable(observed, id, now).filter(|_| observed.node.spec.release);
    if let Some(unreadable) = status.instance_id.as_ref().and_then(unreadable)
        && plan.waiting.is_none()
    {
        plan.requeue = unreadable.requeue.map(|requeue| sooner(requeue, plan.requeue));
        plan.waiting = unreadable.waiting;
    }
    let duplicates = duplicates(observed, status, now);
    // Before anything is launched; and pending, until EC2 shows them terminated.
    plan.pending |= duplicates.are_leaving;
    plan.actions.splice(0..0, duplicates.actions);
    if let (Some(blocker), None) = (duplicates.blockers.first(), &plan.waiting) {
        plan.waiting = Some(NodeWait::Blocked(blocker.clone()));
        // The labels of its Kubernetes node wake only the Node whose status names it.
        plan.requeue = Some(observed.timing.instance_sync_interval);
    }
    plan
}

/// The Node has an instance.
fn identified(
    observed: &Observed,
    status: &NodeStatus,
    id: &InstanceId,
    judged: &Judged,
    now: Timestamp,
) -> Plan {
    let proof = judged.proof.as_ref();
    match &judged.loss {
        Judgement::Well => shown(observed, status, id, now),
        Judgement::Suspected(loss) => suspected(observed, loss, shown(observed, status, id, now), now),
        Judgement::Due(loss, declared) => fence::begin(observed, status, id, loss, declared, proof, now),
        Judgement::Lost(declared) => fence::declared_lost(observed, status, id, declared, proof, now),
    }
}

/// There are signs of a loss, and the machine has time for them to pass.
fn suspected(observed: &Observed, loss: &Loss, plan: Plan, now: Timestamp) -> Plan {
    let graced = loss.cause.due(loss.since, &observed.timing);
    let (cause, signs, due) = (loss.cause, loss.signs.clone(), loss.due);
    let waiting = if recurrence::is_stalled(loss.before) && now >= graced {
        LossWait::Recurring { signs, cause, due, before: loss.before, node: observed.node.name_any() }.into()
    } else {
        plan.waiting.clone().unwrap_or_else(|| LossWait::Suspected(cause, signs).into())
    };
    let next = if now < graced { graced } else { due };
    Plan { waiting: Some(waiting), ..plan }.until(next, now)
}

/// The Node has an instance that is not declared lost.
fn shown(observed: &Observed, status: &NodeStatus, id: &InstanceId, now: Timestamp) -> Plan {
    let Some(instance) = observed.instances.by_id(id) else {
        if let Some(plan) = adoption::untagged(observed, id, now) {
            return plan;
        }
        return if proven_absent(observed, status.creation.as_ref()).is_some() {
            // Pending, since the look-ups that are the proof are forgotten when nothing is awaited any more.
            launch::ended(observed, status, id, None, now).pending()
        } else {
            Plan::wait(LaunchWait::NotListed(id.clone())).pending()
        };
    };
    match instance.state {
        InstanceState::Pending => initialization::starting(observed, status, instance, now),
        InstanceState::Running => {
            let plan = initialization::running(observed, status, instance, now);
            departing::considered(plan, observed, status, id)
        }
        InstanceState::Terminated => {
            launch::ended(observed, status, id, instance.state_reason.as_deref(), now)
        }
        InstanceState::ShuttingDown => Plan::wait(LossWait::ShuttingDown(id.clone())).pending(),
        InstanceState::Stopping | InstanceState::Stopped if observed.node.spec.instance_id.is_some() => {
            adoption::not_running(observed, id)
        }
        InstanceState::Stopping | InstanceState::Stopped => terminate(
            observed,
            id,
            messages::events::STOPPED_BEFORE_JOIN.to_owned(),
            LossWait::StoppedBeforeJoin(id.clone()),
            now,
        ),
        InstanceState::Unknown => Plan::wait(LaunchWait::UnknownState(id.clone())),
    }
}

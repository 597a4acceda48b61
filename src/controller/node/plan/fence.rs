//! The plan of a machine that is declared lost: stop it in stages until EC2 shows it stopped or terminated,
//! then free what it held. Pure.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node as CoreNode;

use super::action::{Action, Plan};
use super::facts::{again_to_terminate, proven_absent, removals};
use super::judgement::{Loss, Lost, Stage};
use crate::api::keys::OUT_OF_SERVICE_TAINT;
use crate::api::{ConditionType, InstanceId, NodeStatus};
use crate::cloud::InstanceState;
use crate::cluster::finalizer;
use crate::controller::conditions;
use crate::controller::memory::issued_requests::{Again, again};
use crate::controller::node::cause::Cause;
use crate::controller::node::observe::Observed;
use crate::controller::node::wait::loss::{Attached, FenceStep, LossWait, Proof};
use crate::controller::safety;
use crate::time::later;

/// The proof that nothing on the machine can write any more; `None` while EC2 does not show it.
pub(super) fn proof(observed: &Observed, status: &NodeStatus) -> Option<Proof> {
    let id = status.instance_id.as_ref()?;
    match observed.instances.by_id(id).map(|instance| instance.state) {
        Some(InstanceState::Terminated) => Some(Proof::Terminated(id.clone())),
        Some(InstanceState::Stopped) => Some(Proof::Stopped(id.clone())),
        Some(_) => None,
        // What was seen ended, and is shown no more, has not come back: EC2 forgets a terminated instance
        // after about an hour.
        None if conditions::is_true(&status.conditions, ConditionType::Fenced) => {
            Some(Proof::Forgotten(id.clone()))
        }
        None => proven_absent(observed, status.creation.as_ref()).map(|_| Proof::Absent(id.clone())),
    }
}

/// The machine is to be declared lost: written down first, unless the repair is postponed.
pub(super) fn begin(
    observed: &Observed,
    status: &NodeStatus,
    id: &InstanceId,
    loss: &Loss,
    declared: &Lost,
    proof: Option<&Proof>,
    now: Timestamp,
) -> Plan {
    let timing = &observed.timing;
    // The look-ups that prove an absence are forgotten when nothing is awaited any more.
    let is_hidden = observed.instances.by_id(id).is_none();
    let is_terminated = loss.cause == Cause::Terminated;
    let (fleet, swept_at) = (&observed.fleet, observed.instances.swept_at);
    if let Err(blocker) =
        safety::may_give_up(fleet, is_terminated, loss.due, swept_at, observed.leading_since, timing, now)
    {
        let plan = Plan::wait(LossWait::RepairPostponed(loss.signs.clone(), blocker));
        return Plan { requeue: Some(timing.requeue_interval), pending: is_hidden, ..plan };
    }
    let mut plan = declared_lost(observed, status, id, declared, proof, now);
    plan.actions.insert(0, Action::DeclareLost(Box::new(declared.fence.clone())));
    plan
}

/// The machine is declared lost, and its Node is not being deleted yet.
pub(super) fn declared_lost(
    observed: &Observed,
    status: &NodeStatus,
    id: &InstanceId,
    declared: &Lost,
    proof: Option<&Proof>,
    now: Timestamp,
) -> Plan {
    let Some(proof) = proof else { return staged(observed, id, declared, now) };
    let loss = declared.fence.message.clone();
    let wait = match attached(observed, status, now) {
        Some(attached) => LossWait::Attached { loss, attached },
        None => LossWait::Replaced { loss },
    };
    let is_hidden = observed.instances.by_id(id).is_none();
    let mut actions = out_of_service(observed, true);
    if actions.is_empty() {
        actions.extend(freed(observed, proof));
    }
    let plan = Plan::act(actions, wait);
    Plan {
        pending: is_hidden,
        requeue: Some(observed.timing.requeue_interval).filter(|_| !observed.attachments.is_empty()),
        ..plan
    }
}

/// What the next stage asks of EC2, and until when.
pub(super) fn staged(observed: &Observed, id: &InstanceId, declared: &Lost, now: Timestamp) -> Plan {
    let Lost { fence, stage, begun, ends } = declared;
    let shown = observed.instances.by_id(id).map(|instance| instance.state);
    let end = || Action::Terminate(id.clone(), fence.message.clone());
    let (stop_issued, end_issued) = (observed.issued_stop.as_ref(), observed.issued_terminations.get(id));
    let (stop_at, end_at) = (stop_issued.map(|asked| asked.at), end_issued.map(|asked| asked.at));
    let action = match (*stage, shown) {
        // A machine that starts can be terminated, not stopped; one that is being terminated needs no stop.
        (Stage::Stop | Stage::ForceStop, Some(InstanceState::Pending | InstanceState::ShuttingDown))
        | (Stage::Stop, Some(InstanceState::Stopping)) => None,
        // The last stage requests it again.
        (Stage::Terminate, Some(InstanceState::ShuttingDown)) if end_issued.is_some() => None,
        (Stage::Stop, _) => Some(Action::Stop(id.clone(), false)),
        (Stage::ForceStop, _) => Some(Action::Stop(id.clone(), true)),
        (Stage::Terminate, _)
        | (Stage::Failed, Some(InstanceState::Pending | InstanceState::ShuttingDown)) => Some(end()),
        (Stage::Failed, _) => Some(if stop_at <= end_at { Action::Stop(id.clone(), true) } else { end() }),
    };
    // What is not shown is requested all the same; what is shown as another Node's, the status names by
    // mistake.
    let action = action.filter(|_| safety::may_end(&observed.node, id) && !observed.is_of_another);
    let step = if action.is_some() { stage.step() } else { FenceStep::AwaitProof };
    let asked = match stage {
        // What an earlier stage requested was something else.
        Stage::Stop | Stage::ForceStop => again(
            stop_issued.filter(|asked| asked.at >= *begun),
            observed.instances.swept_at,
            observed.timing.requeue_interval,
            now,
        ),
        Stage::Terminate => again_to_terminate(observed, id, now),
        Stage::Failed => match stop_at.max(end_at) {
            Some(last) if now < later(last, observed.timing.fence_step_timeout) => Again::OnceShown,
            Some(_) | None => Again::Now,
        },
    };
    let actions = if asked == Again::Now { action.into_iter().collect() } else { Vec::new() };
    let plan = Plan::act(actions, LossWait::Fencing { loss: fence.message.clone(), step }).pending();
    plan.until(ends.unwrap_or_else(|| later(now, observed.timing.fence_step_timeout)), now)
}

/// Frees what the machine held, since nothing on it can write any more: the taint lets Kubernetes detach
/// without the kubelet's word, and only together with the deletion of the pods is that quick (the taint alone
/// takes a minute, the deletion of its Kubernetes node seven).
pub(super) fn out_of_service(observed: &Observed, always: bool) -> Vec<Action> {
    let is_needed = always || !observed.pods.is_empty() || !observed.attachments.is_empty();
    let core_node =
        observed.core_node.as_ref().filter(|core_node| is_needed && !is_out_of_service(core_node));
    let taint = core_node.map(|core_node| Action::OutOfService(Box::new(core_node.clone())));
    taint.into_iter().chain(removals(observed)).collect()
}

/// Frees the name of a terminated machine's Kubernetes node once nothing is attached to it. EC2 gives its
/// address to another machine, perhaps to the very one that takes its place, and that is its name, too: a
/// kubelet that finds a Kubernetes node of its name reports on it, and never registers as its own instance. A
/// stopped machine has its address.
fn freed(observed: &Observed, proof: &Proof) -> Option<Action> {
    let has_ended = matches!(proof, Proof::Terminated(_)) && observed.attachments.is_empty();
    let core_node =
        observed.core_node.as_ref().filter(|core_node| has_ended && finalizer::has(*core_node))?;
    Some(Action::ReleaseCoreNode(Box::new(core_node.clone())))
}

/// What still holds volumes to the machine after the proof; with a time when that takes long.
pub(super) fn attached(observed: &Observed, status: &NodeStatus, now: Timestamp) -> Option<Attached> {
    if observed.attachments.is_empty() {
        return None;
    }
    let since = [ConditionType::Fenced, ConditionType::InstanceTerminated]
        .into_iter()
        .filter_map(|kind| {
            conditions::find(&status.conditions, kind).filter(|condition| condition.status == "True")
        })
        .map(|condition| condition.last_transition_time.0)
        .min()
        .unwrap_or(now);
    let is_overdue = now >= later(since, observed.timing.kubelet_silence_timeout);
    Some(Attached { names: observed.attachments.clone(), overdue_since: is_overdue.then_some(since) })
}

fn is_out_of_service(core_node: &CoreNode) -> bool {
    core_node
        .spec
        .iter()
        .flat_map(|spec| spec.taints.iter().flatten())
        .any(|taint| taint.key == OUT_OF_SERVICE_TAINT)
}

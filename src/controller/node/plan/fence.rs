//! The plan of a machine that is given up: stop it in stages until EC2 shows it stopped or terminated, then free what it held. Pure.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node as CoreNode;

use super::action::{Action, Plan};
use super::facts::{again_to_terminate, evictions, proven_absent};
use super::loss::{self, Loss};

use crate::api::keys::OUT_OF_SERVICE_TAINT;
use crate::api::node::Fence;
use crate::api::{ConditionType, InstanceId, NodeStatus};
use crate::cloud::InstanceState;
use crate::controller::conditions;
use crate::controller::memory::issued_requests::{Again, again};
use crate::controller::node::observe::Observed;
use crate::controller::node::wait::{Attached, FenceStep, LossWait, Proof};
use crate::controller::safety;
use crate::settings::Timing;
use crate::time::later;

/// How far the fence is; each stage lasts `fence_step`, and EC2's proof ends any of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// EC2 is asked to stop the instance.
    Stop,
    /// EC2 is asked to stop it by force.
    ForceStop,
    /// EC2 is asked to terminate it.
    Terminate,
    /// All of that is over, or its time went by while the operator was down; EC2 is asked to stop it by force and to terminate it by
    /// turns, slowly. Both, since EC2 may refuse either: an instance can be protected from being stopped, and from its end.
    Failed,
}

impl Stage {
    /// The stage now, since when, and until when.
    pub fn at(fence: &Fence, timing: &Timing, now: Timestamp) -> (Self, Timestamp, Option<Timestamp>) {
        let mut begun = fence.started_at.0;
        for stage in [Self::Stop, Self::ForceStop, Self::Terminate] {
            let ends = later(begun, timing.fence_step);
            if now < ends {
                return (stage, begun, Some(ends));
            }
            begun = ends;
        }
        (Self::Failed, begun, None)
    }

    /// What is done in it.
    pub fn step(self) -> FenceStep {
        match self {
            Self::Stop => FenceStep::Stop,
            Self::ForceStop => FenceStep::ForceStop,
            Self::Terminate => FenceStep::Terminate,
            Self::Failed => FenceStep::Alternate,
        }
    }
}

/// The proof that nothing on the machine can write any more; `None` while EC2 does not show it.
pub(in crate::controller::node) fn proof(observed: &Observed, status: &NodeStatus) -> Option<Proof> {
    let id = status.instance_id.as_ref()?;
    match observed.instances.by_id(id).map(|instance| instance.state) {
        Some(InstanceState::Terminated) => Some(Proof::Terminated(id.clone())),
        Some(InstanceState::Stopped) => Some(Proof::Stopped(id.clone())),
        Some(_) => None,
        // What was seen ended, and is shown no more, has not come back: EC2 forgets a terminated instance after about an hour.
        None if conditions::is_true(&status.conditions, ConditionType::Fenced) => Some(Proof::Forgotten(id.clone())),
        None => proven_absent(observed, status.launch.as_ref()).map(|_| Proof::Absent(id.clone())),
    }
}

/// The machine is to be given up: written down first, unless the repair is held back.
pub(super) fn begin(observed: &Observed, status: &NodeStatus, id: &InstanceId, loss: &Loss, now: Timestamp) -> Plan {
    let timing = &observed.timing;
    // The look-ups that prove an absence are forgotten when nothing is awaited any more.
    let is_hidden = observed.instances.by_id(id).is_none();
    let is_terminated = loss.cause == loss::Cause::Terminated;
    if let Err(blocker) = safety::may_give_up(&observed.fleet, is_terminated, observed.instances.swept_at, timing, now) {
        let plan = Plan::wait(LossWait::RepairPostponed(loss.signs.clone(), blocker));
        return Plan { requeue: Some(timing.recheck), pending: is_hidden, ..plan };
    }
    let fence = loss.given_up(now);
    let mut plan = given_up(observed, status, id, &fence, now);
    plan.actions.insert(0, Action::GiveUp(Box::new(fence)));
    plan
}

/// The machine is given up, and its Node is not being deleted yet.
pub(super) fn given_up(observed: &Observed, status: &NodeStatus, id: &InstanceId, fence: &Fence, now: Timestamp) -> Plan {
    if proof(observed, status).is_none() {
        return staged(observed, id, fence, now);
    }
    let loss = fence.message.clone();
    let wait = match attached(observed, status, now) {
        Some(attached) => LossWait::Attached { loss, attached },
        None => LossWait::Replaced { loss },
    };
    let is_hidden = observed.instances.by_id(id).is_none();
    let plan = Plan::act(out_of_service(observed, true), wait);
    Plan { pending: is_hidden, requeue: Some(observed.timing.recheck).filter(|_| !observed.attachments.is_empty()), ..plan }
}

/// What the next stage asks of EC2, and until when.
pub(super) fn staged(observed: &Observed, id: &InstanceId, fence: &Fence, now: Timestamp) -> Plan {
    let (stage, begun, ends) = Stage::at(fence, &observed.timing, now);
    let shown = observed.instances.by_id(id).map(|instance| instance.state);
    let end = || Action::Terminate(id.clone(), fence.message.clone());
    let (stop_asked, end_asked) = (observed.stop_asked.as_ref(), observed.asked.get(id));
    let (stop_at, end_at) = (stop_asked.map(|asked| asked.at), end_asked.map(|asked| asked.at));
    let action = match (stage, shown) {
        // A machine that starts can be terminated, not stopped; one that is being terminated needs no stop.
        (Stage::Stop | Stage::ForceStop, Some(InstanceState::Pending | InstanceState::ShuttingDown))
        | (Stage::Stop, Some(InstanceState::Stopping)) => None,
        (Stage::Stop, _) => Some(Action::Stop(id.clone(), false)),
        (Stage::ForceStop, _) => Some(Action::Stop(id.clone(), true)),
        (Stage::Terminate, _) | (Stage::Failed, Some(InstanceState::Pending | InstanceState::ShuttingDown)) => Some(end()),
        (Stage::Failed, _) => Some(if stop_at <= end_at { Action::Stop(id.clone(), true) } else { end() }),
    };
    let step = if action.is_some() { stage.step() } else { FenceStep::AwaitProof };
    let asked = match stage {
        // What an earlier stage asked for was something else.
        Stage::Stop | Stage::ForceStop => {
            again(stop_asked.filter(|asked| asked.at >= begun), observed.instances.swept_at, observed.timing.recheck, now)
        }
        Stage::Terminate => again_to_terminate(observed, id, now),
        Stage::Failed => match stop_at.max(end_at) {
            Some(last) if now < later(last, observed.timing.fence_step) => Again::OnceShown,
            Some(_) | None => Again::Now,
        },
    };
    let actions = if asked == Again::Now { action.into_iter().collect() } else { Vec::new() };
    let plan = Plan::act(actions, LossWait::Fencing { loss: fence.message.clone(), step }).pending();
    plan.until(ends.unwrap_or_else(|| later(now, observed.timing.fence_step)), now)
}

/// Frees what the machine held, since nothing on it can write any more: the taint lets Kubernetes detach without the kubelet's word, and
/// only together with the deletion of the pods is that quick (the taint alone takes a minute, the deletion of its Kubernetes node seven).
pub(super) fn out_of_service(observed: &Observed, always: bool) -> Vec<Action> {
    let is_needed = always || !observed.pods.is_empty() || !observed.attachments.is_empty();
    let core_node = observed.core_node.as_ref().filter(|core_node| is_needed && !is_out_of_service(core_node));
    let taint = core_node.map(|core_node| Action::OutOfService(Box::new(core_node.clone())));
    taint.into_iter().chain(evictions(observed, true)).collect()
}

/// What still holds volumes to the machine after the proof; with a time when that takes long.
pub(super) fn attached(observed: &Observed, status: &NodeStatus, now: Timestamp) -> Option<Attached> {
    if observed.attachments.is_empty() {
        return None;
    }
    let since = [ConditionType::Fenced, ConditionType::InstanceTerminated]
        .into_iter()
        .filter_map(|kind| conditions::find(&status.conditions, kind).filter(|condition| condition.status == "True"))
        .map(|condition| condition.last_transition_time.0)
        .min()
        .unwrap_or(now);
    let is_overdue = now >= later(since, observed.timing.silence);
    Some(Attached { names: observed.attachments.clone(), overdue_since: is_overdue.then_some(since) })
}

fn is_out_of_service(core_node: &CoreNode) -> bool {
    core_node.spec.iter().flat_map(|spec| spec.taints.iter().flatten()).any(|taint| taint.key == OUT_OF_SERVICE_TAINT)
}

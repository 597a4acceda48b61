//! The part of the plan that puts one machine in the place of another. The new one is proven before the old
//! one is touched, and the old one is kept until the engine answers on the new one; and where the old one is
//! lost, nothing moves before EC2 shows that it cannot write any more. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::action::{Action, Plan};
use super::facts::{disk_zone, engine_waiting, is_named, next_zone, slowly};
use super::machines::{Machines, can_serve, is_initialized, is_lost, must_be_left, unfit, why_replaced};
use super::placement::machine;
use super::{room, tls};
use crate::api::Node;
use crate::api::database::Replacement;
use crate::controller::database::build;
use crate::controller::database::cause::{NodeDeletion, ReplaceCause};
use crate::controller::database::observe::Observed;
use crate::controller::database::ordinal::{next_ordinal, ordinal};
use crate::controller::database::wait::{DatabaseWait, ReplaceStep};
use crate::controller::{recurrence, safety};
use crate::time::{later, sooner, until, whole_second};

/// Where the engine runs in this pass, and what is awaited of a replacement.
pub(super) struct Replacing<'a> {
    /// The Node to run the engine on; `None` while no machine may run it.
    pub serves_on: Option<&'a Node>,
    /// What is awaited of the machine that takes another's place.
    pub waiting: Option<DatabaseWait>,
    /// When that is looked at again.
    pub requeue: Option<Duration>,
}

impl<'a> Replacing<'a> {
    fn waits(serves_on: Option<&'a Node>, waiting: Option<DatabaseWait>) -> Self {
        Self { serves_on, waiting, requeue: None }
    }

    /// The plan, with what this makes follow.
    pub fn requeued(&self, plan: Plan) -> Plan {
        let requeue = self.requeue.map(|requeue| sooner(requeue, plan.requeue));
        Plan { requeue: requeue.or(plan.requeue), ..plan }
    }
}

/// Takes the next step of a replacement, if there is one.
pub(super) fn plan<'a>(
    observed: &'a Observed,
    machines: &Machines<'a>,
    now: Timestamp,
    actions: &mut Vec<Action>,
) -> Replacing<'a> {
    let Machines { host, successor, former } = machines;
    let cause = why_replaced(observed, host);
    let way_back = way_back(observed, machines, now);
    for node in former.iter().filter(|node| way_back.is_none_or(|it| it.metadata.uid != node.metadata.uid)) {
        delete(node, NodeDeletion::MovedTo(host.name_any()), actions);
    }
    match (successor, cause) {
        // Whether the other machine is still one to go back to, its Kubernetes node says, which is not
        // watched.
        (None, None) => Replacing {
            requeue: way_back.map(|_| observed.timing.instance_sync_interval),
            ..Replacing::waits(Some(host), None)
        },
        (None, Some(cause)) => match way_back {
            Some(to) => move_back(host, to, cause),
            None => start(observed, machines, cause, now, actions),
        },
        (Some(successor), None) => {
            delete(successor, NodeDeletion::NotNeeded(host.name_any()), actions);
            Replacing::waits(Some(host), None)
        }
        (Some(successor), Some(cause)) if is_passed_over(observed, machines, successor) => {
            start(observed, machines, cause, now, actions)
        }
        (Some(successor), Some(cause)) => advance(observed, host, successor, cause, actions),
    }
}

/// The machine that was left and is kept, since the engine has not answered on the new one: what is proven of
/// the new one is a kubelet and a driver, and not that this pod starts there. Where the new one must go, too,
/// it is kept only if the database goes back to it.
fn way_back<'a>(observed: &Observed, machines: &Machines<'a>, now: Timestamp) -> Option<&'a Node> {
    let host = machines.host;
    if answers_on(observed, host) {
        return None;
    }
    let is_way_back =
        |node: &&Node| can_serve(observed, node) && !must_be_left(node) && !hangs_on(observed, node, now);
    let former = machines.former.iter().copied().rfind(is_way_back)?;
    let Some(cause) = why_replaced(observed, host) else { return Some(former) };
    // What EC2 has announced comes later, and the other one, which no database uses, reports none.
    let is_announced = matches!(cause, ReplaceCause::EventScheduled { .. });
    let is_better = why_replaced(observed, former).is_none() && !is_announced;
    // No pod is scheduled on one that was cordoned.
    let is_open = !observed.core_node_of(former).is_some_and(safety::is_cordoned);
    ((must_be_left(host) || is_better) && is_open).then_some(former)
}

/// Whether the pod does not end on the machine of this Node, so long after its grace: no other follows, here
/// or there, before it is gone, and the end of the machine is what ends it.
fn hangs_on(observed: &Observed, node: &Node, now: Timestamp) -> bool {
    let pod = observed.pod.as_ref().filter(|_| observed.runs_on().is_some_and(|on| is_named(node, on)));
    let ends = pod.and_then(|pod| pod.metadata.deletion_timestamp.as_ref());
    ends.is_some_and(|ends| now >= later(ends.0, observed.timing.kubelet_silence_timeout))
}

/// Whether the engine accepts connections on the machine of this Node.
fn answers_on(observed: &Observed, node: &Node) -> bool {
    let is_there = observed.runs_on().is_some_and(|core_node| is_named(node, core_node));
    is_there && !is_lost(node) && engine_waiting(observed).is_none()
}

/// Whether another machine is to take a lost one's place although this one, which cannot, is still going: EC2
/// may take hours to end it, and it never had the database. At most one is passed over.
fn is_passed_over(observed: &Observed, machines: &Machines<'_>, successor: &Node) -> bool {
    let is_newer = |node: &Node| ordinal_of(observed, node) > ordinal_of(observed, machines.host);
    is_lost(machines.host)
        && successor.metadata.deletion_timestamp.is_some()
        && !machines.former.iter().any(|node| is_newer(node))
}

fn ordinal_of(observed: &Observed, node: &Node) -> Option<i32> {
    ordinal(&observed.names, &node.name_any())
}

/// Back to the machine that was left, which is as good as it was.
fn move_back<'a>(host: &Node, to: &'a Node, cause: ReplaceCause) -> Replacing<'a> {
    let (serves_on, step) = match safety::may_move_from(host) {
        Ok(()) => (Some(to), ReplaceStep::MovingBack(to.name_any())),
        Err(blocker) => (None, ReplaceStep::Unfenced { to: to.name_any(), blocker }),
    };
    Replacing::waits(serves_on, Some(DatabaseWait::Replacing { node: host.name_any(), cause, step }))
}

/// The host must be replaced, and no successor was created yet.
fn start<'a>(
    observed: &'a Observed,
    machines: &Machines<'a>,
    cause: ReplaceCause,
    now: Timestamp,
    actions: &mut Vec<Action>,
) -> Replacing<'a> {
    let host = machines.host;
    let serves_on = Some(host).filter(|host| can_serve(observed, host));
    let replacing = |step: ReplaceStep, cause: ReplaceCause| {
        Some(DatabaseWait::Replacing { node: host.name_any(), cause, step })
    };
    // One that is only slow to go takes nothing from a lost machine's repair. A lost machine does not count
    // either, once it is left: it is fenced by then. So at most three run at once: the last one that was left
    // in good health, the host and its successor.
    if let Some(former) = machines.former.first().filter(|_| !is_lost(host)) {
        return Replacing::waits(serves_on, replacing(ReplaceStep::AfterFormer(former.name_any()), cause));
    }
    // Without a disk nothing is kept, and the next machine may be in any zone: it follows when this one is
    // gone.
    if observed.volume.ours().is_none() {
        delete(host, NodeDeletion::Unfit(cause.clone()), actions);
        return Replacing::waits(None, replacing(ReplaceStep::DeletedFirst, cause));
    }
    let (before, from) = recurrence(host, &cause, observed, now);
    if now < from {
        let is_stalled = recurrence::is_stalled(before);
        let waiting = replacing(ReplaceStep::Recurring { until: from, before, is_stalled }, cause);
        return Replacing { requeue: Some(until(from, now)), ..Replacing::waits(serves_on, waiting) };
    }
    let ordinal = next_ordinal(&observed.database, &observed.names, &observed.nodes);
    let mut node = build::node(&observed.database, &observed.names, ordinal, next_zone(observed).as_deref());
    node.spec.replaced_before = if cause.may_recur() { before.saturating_add(1) } else { 0 };
    let to = node.name_any();
    let started_at = Time(whole_second(now));
    let others = machines.former.iter().chain(&machines.successor);
    let leaving = others.map(|node| node.name_any()).collect();
    let replacement =
        Replacement { from: host.name_any(), to: to.clone(), cause: cause.message(), started_at, leaving };
    actions.push(Action::CreateNode(ordinal, Box::new(node), Some(replacement)));
    Replacing::waits(serves_on, replacing(ReplaceStep::Creating(to), cause))
}

/// How many machines before this one were replaced one soon after the other, and from when on it may be: a
/// machine that ends every other one must not cost a launch, an interruption and perhaps a forced stop every
/// few minutes for ever. One that may come back was declared lost that much later, and has paused then; one
/// that serves pauses from its launch on. A person who deletes its Node ends the pause.
fn recurrence(host: &Node, cause: &ReplaceCause, observed: &Observed, now: Timestamp) -> (i32, Timestamp) {
    let timing = &observed.timing;
    let ended_at = host.status.as_ref().and_then(|status| status.fence.as_ref()).map(|fence| fence.since.0);
    let is_counted = cause.may_recur() && host.metadata.deletion_timestamp.is_none();
    let since = ended_at.or_else(|| recurrence::born_at(host)).filter(|_| is_counted);
    let Some(since) = since else { return (0, Timestamp::MIN) };
    let before = match ended_at {
        Some(ended_at) => recurrence::before(host, ended_at, timing),
        None => recurrence::before_serving(host, now, timing),
    };
    (before, later(since, recurrence::pause(before, timing)))
}

/// The successor is on its way, or is ready.
fn advance<'a>(
    observed: &'a Observed,
    host: &'a Node,
    successor: &'a Node,
    cause: ReplaceCause,
    actions: &mut Vec<Action>,
) -> Replacing<'a> {
    let serves_on = Some(host).filter(|host| can_serve(observed, host));
    let to = successor.name_any();
    let waits = |step: ReplaceStep| {
        Replacing::waits(serves_on, Some(DatabaseWait::Replacing { node: host.name_any(), cause, step }))
    };
    let is_leaving = successor.metadata.deletion_timestamp.is_some();
    let leaving = || is_leaving.then(|| ReplaceCause::NodeDeleted { node: to.clone() });
    if let Some(why) = unfit(observed, successor).or_else(leaving) {
        delete(successor, NodeDeletion::Unfit(why.clone()), actions);
        return waits(ReplaceStep::SuccessorUnfit { to, why });
    }
    let starting = || (!is_initialized(successor)).then(|| DatabaseWait::NodeNotInitialized(to.clone()));
    if let Some(wait) =
        machine(observed, successor, disk_zone(observed).as_deref(), actions).or_else(starting)
    {
        return waits(ReplaceStep::AwaitingSuccessor {
            to,
            serves_on: serves_on.is_some(),
            wait: Box::new(wait),
        });
    }
    let core_node = observed.core_node_of(successor);
    let lacking = || room::lacking(observed, observed.stateful_set.ours()?, core_node?);
    if let Some(lacking) = serves_on.and_then(|_| lacking()) {
        // What a kubelet reports of its machine is not watched.
        let requeue = Some(observed.timing.instance_sync_interval);
        return Replacing { requeue, ..waits(ReplaceStep::NoRoom { to, lacking }) };
    }
    if let Some(wait) = serves_on.and_then(|_| tls::before_restart(observed)) {
        let requeue = Some(slowly(observed));
        let wait = Box::new(wait);
        let step = ReplaceStep::AwaitingSuccessor { to, serves_on: true, wait };
        return Replacing { requeue, ..waits(step) };
    }
    match safety::may_move_from(host) {
        Ok(()) => Replacing::waits(Some(successor), None),
        Err(blocker) => waits(ReplaceStep::Unfenced { to, blocker }),
    }
}

/// Deletes a Node, once.
fn delete(node: &Node, why: NodeDeletion, actions: &mut Vec<Action>) {
    if node.metadata.deletion_timestamp.is_none() {
        actions.push(Action::DeleteNode(node.name_any(), node.uid().unwrap_or_default(), why));
    }
}

//! The part of the plan that puts one machine in the place of another. The new one is proven before the old
//! one is touched, and the old one is kept until the engine answers on the new one; and where the old one is
//! lost, nothing moves before EC2 shows that it cannot write any more. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::action::Action;
use super::facts::{disk_zone, engine_waiting, is_named, next_zone};
use super::machines::{Machines, can_serve, is_initialized, is_lost, must_be_left, unfit, why_replaced};
use super::placement::machine;
use super::room;
use crate::api::Node;
use crate::api::database::Replacement;
use crate::controller::database::build;
use crate::controller::database::cause::{NodeDeletion, ReplaceCause};
use crate::controller::database::observe::Observed;
use crate::controller::database::ordinal::next_ordinal;
use crate::controller::database::wait::{DatabaseWait, ReplaceStep};
use crate::controller::safety;
use crate::time::whole_second;

/// Where the engine runs in this pass, and what is awaited of a replacement.
pub(super) struct Replacing<'a> {
    /// The Node to run the engine on; `None` while no machine may run it.
    pub serves_on: Option<&'a Node>,
    /// What is awaited of the machine that takes another's place.
    pub waiting: Option<DatabaseWait>,
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
    let way_back = way_back(observed, machines);
    for node in former.iter().filter(|node| way_back.is_none_or(|it| it.metadata.uid != node.metadata.uid)) {
        delete(node, NodeDeletion::MovedTo(host.name_any()), actions);
    }
    match (successor, cause) {
        (None, None) => Replacing { serves_on: Some(host), waiting: None },
        (None, Some(cause)) => match way_back {
            Some(to) => move_back(host, to, cause),
            None => start(observed, machines, cause, now, actions),
        },
        (Some(successor), None) => {
            delete(successor, NodeDeletion::NotNeeded(host.name_any()), actions);
            Replacing { serves_on: Some(host), waiting: None }
        }
        (Some(successor), Some(cause)) => advance(observed, host, successor, cause, actions),
    }
}

/// The machine that was left and is kept, since the engine has not answered on the new one: what is proven of
/// the new one is a kubelet and a driver, and not that this pod starts there. Where the new one must go, too,
/// it is kept only if the database goes back to it.
fn way_back<'a>(observed: &Observed, machines: &Machines<'a>) -> Option<&'a Node> {
    let host = machines.host;
    if answers_on(observed, host) {
        return None;
    }
    let former =
        machines.former.iter().copied().rfind(|node| can_serve(observed, node) && !must_be_left(node))?;
    let is_needed = must_be_left(host) || why_replaced(observed, former).is_none();
    (why_replaced(observed, host).is_none() || is_needed).then_some(former)
}

/// Whether the engine accepts connections on the machine of this Node.
fn answers_on(observed: &Observed, node: &Node) -> bool {
    let is_there = observed.runs_on().is_some_and(|core_node| is_named(node, core_node));
    is_there && !is_lost(node) && engine_waiting(observed).is_none()
}

/// Back to the machine that was left, which is as good as it was.
fn move_back<'a>(host: &Node, to: &'a Node, cause: ReplaceCause) -> Replacing<'a> {
    let (serves_on, step) = match safety::may_move_from(host) {
        Ok(()) => (Some(to), ReplaceStep::MovingBack(to.name_any())),
        Err(blocker) => (None, ReplaceStep::Unfenced { to: to.name_any(), blocker }),
    };
    Replacing { serves_on, waiting: Some(DatabaseWait::Replacing { node: host.name_any(), cause, step }) }
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
        return Replacing {
            serves_on,
            waiting: replacing(ReplaceStep::AfterFormer(former.name_any()), cause),
        };
    }
    // Without a disk nothing is kept, and the next machine may be in any zone: it follows when this one is
    // gone.
    if observed.volume.ours().is_none() {
        delete(host, NodeDeletion::Unfit(cause.clone()), actions);
        return Replacing { serves_on: None, waiting: replacing(ReplaceStep::DeletedFirst, cause) };
    }
    let ordinal = next_ordinal(&observed.database, &observed.names, &observed.nodes);
    let node = build::node(&observed.database, &observed.names, ordinal, next_zone(observed).as_deref());
    let to = node.name_any();
    let started_at = Time(whole_second(now));
    let replacement =
        Replacement { from: host.name_any(), to: to.clone(), cause: cause.message(), started_at };
    actions.push(Action::CreateNode(ordinal, Box::new(node), Some(replacement)));
    Replacing { serves_on, waiting: replacing(ReplaceStep::Creating(to), cause) }
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
    let waits = |step: ReplaceStep| Replacing {
        serves_on,
        waiting: Some(DatabaseWait::Replacing { node: host.name_any(), cause, step }),
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
        return waits(ReplaceStep::NoRoom { to, lacking });
    }
    match safety::may_move_from(host) {
        Ok(()) => Replacing { serves_on: Some(successor), waiting: None },
        Err(blocker) => waits(ReplaceStep::Unfenced { to, blocker }),
    }
}

/// Deletes a Node, once.
fn delete(node: &Node, why: NodeDeletion, actions: &mut Vec<Action>) {
    if node.metadata.deletion_timestamp.is_none() {
        actions.push(Action::DeleteNode(node.name_any(), node.uid().unwrap_or_default(), why));
    }
}

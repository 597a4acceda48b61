//! The part of the plan that puts one machine in the place of another. The new one is proven before the old one is touched; and where
//! the old one is lost, nothing moves before EC2 shows that it cannot write any more. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::action::Action;
use super::facts::{disk_zone, next_zone};
use super::machines::{Machines, can_serve, is_initialized, is_lost, lost_reason, unfit, why_replaced};
use super::placement::machine;

use crate::api::database::Replacement;
use crate::api::{Node, Reason};
use crate::controller::conditions::whole_second;
use crate::controller::database::build;
use crate::controller::database::observe::Observed;
use crate::controller::database::ordinal::next_ordinal;
use crate::controller::safety;
use crate::controller::waiting::Waiting;

/// Where the engine runs in this pass, and what is awaited of a replacement.
pub(super) struct Replacing<'a> {
    /// The Node to run the engine on; `None` while no machine may run it.
    pub serves_on: Option<&'a Node>,
    /// What is awaited of the machine that takes another's place.
    pub waiting: Option<Waiting>,
}

/// Takes the next step of a replacement, if there is one.
pub(super) fn plan<'a>(observed: &'a Observed, machines: &Machines<'a>, now: Timestamp, actions: &mut Vec<Action>) -> Replacing<'a> {
    let Machines { host, successor, former } = machines;
    for node in former {
        give_up(node, &format!("the database has moved to Node {}", host.name_any()), actions);
    }
    let cause = why_replaced(observed, host);
    match (successor, cause) {
        (None, None) => Replacing { serves_on: Some(host), waiting: None },
        (None, Some(cause)) => ask(observed, machines, &cause, now, actions),
        (Some(successor), None) => {
            give_up(successor, &format!("it is not needed any more: the database stays on Node {}", host.name_any()), actions);
            Replacing { serves_on: Some(host), waiting: None }
        }
        (Some(successor), Some(cause)) => follow(observed, host, successor, &cause, actions),
    }
}

/// The host must be replaced, and nothing was asked for yet.
fn ask<'a>(observed: &'a Observed, machines: &Machines<'a>, cause: &str, now: Timestamp, actions: &mut Vec<Action>) -> Replacing<'a> {
    let host = machines.host;
    let serves_on = Some(host).filter(|host| can_serve(observed, host));
    let name = host.name_any();
    if let Some(former) = machines.former.first() {
        let message = format!("Node {name} must be replaced ({cause}); that begins when Node {} is gone", former.name_any());
        return Replacing { serves_on, waiting: Some(Waiting::on(Reason::AwaitingNode, message)) };
    }
    // Without a disk nothing is kept, and the next machine may be in any zone: it follows when this one is gone.
    if observed.volume.ours().is_none() {
        give_up(host, cause, actions);
        let message = format!("Node {name} is being taken down ({cause}), and another follows");
        return Replacing { serves_on: None, waiting: Some(Waiting::on(Reason::AwaitingNode, message)) };
    }
    let ordinal = next_ordinal(&observed.database, &observed.names, &observed.nodes);
    let node = build::node(&observed.database, &observed.names, ordinal, next_zone(observed).as_deref());
    let to = node.name_any();
    let message = format!("Node {to} is asked for to take the place of Node {name}: {cause}");
    let reason = if is_lost(host) { lost_reason(host) } else { Reason::AwaitingNode };
    let replacement = Replacement { from: name, to, cause: cause.to_owned(), started_at: Time(whole_second(now)) };
    actions.push(Action::CreateNode(ordinal, Box::new(node), Some(replacement)));
    Replacing { serves_on, waiting: Some(Waiting::on(reason, message)) }
}

/// The successor is on its way, or is ready.
fn follow<'a>(observed: &'a Observed, host: &'a Node, successor: &'a Node, cause: &str, actions: &mut Vec<Action>) -> Replacing<'a> {
    let serves_on = Some(host).filter(|host| can_serve(observed, host));
    let (from, to) = (host.name_any(), successor.name_any());
    let waits = |reason: Reason, message: String| Replacing { serves_on, waiting: Some(Waiting::on(reason, message)) };
    let is_leaving = successor.metadata.deletion_timestamp.is_some();
    let unfit = unfit(observed, successor);
    if let Some(why) = unfit.or_else(|| is_leaving.then(|| "it was deleted".to_owned())) {
        give_up(successor, &why, actions);
        let message = format!("Node {to}, which was to take the place of Node {from} ({cause}), is taken down: {why}; another follows");
        return waits(Reason::AwaitingNode, message);
    }
    let starting = || (!is_initialized(successor)).then(|| Waiting::on(Reason::AwaitingNode, format!("Node {to} is being made ready")));
    if let Some(waiting) = machine(observed, successor, disk_zone(observed).as_deref(), actions).or_else(starting) {
        let reason = if is_lost(host) { lost_reason(host) } else { waiting.reason };
        let meanwhile = if serves_on.is_some() { ", which serves until then" } else { "" };
        let message = format!("Node {to} takes the place of Node {from}{meanwhile} ({cause}); {}", waiting.message);
        return Replacing { serves_on, waiting: Some(Waiting { reason, message, ..waiting }) };
    }
    match safety::may_move_from(host) {
        Ok(()) => Replacing { serves_on: Some(successor), waiting: None },
        Err(blocker) => {
            waits(blocker.reason, format!("Node {to} is ready to take the place of Node {from} ({cause}); {}", blocker.message))
        }
    }
}

/// Asks for the end of a Node, once.
fn give_up(node: &Node, why: &str, actions: &mut Vec<Action>) {
    if node.metadata.deletion_timestamp.is_none() {
        actions.push(Action::DeleteNode(node.name_any(), node.uid().unwrap_or_default(), why.to_owned()));
    }
}

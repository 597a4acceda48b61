//! The last step of a pass of the Node controller: what this process remembers of a Node until its next pass,
//! and what it forgets of one that is gone. What a restart costs: `controller/memory`.

use kube::ResourceExt;

use super::observe::Observed;
use super::plan::action::Plan;
use super::plan::facts::{last_possible_send, may_have_an_instance};
use super::status::{fenced_after, joined_after};
use super::wait::NodeWait;
use crate::api::node::NodeCreation;
use crate::api::{ConditionType, InstanceId, Node, NodeStatus};
use crate::cloud::identity::Kind;
use crate::cloud::inventory::{Awaited, Interest};
use crate::controller::conditions;
use crate::controller::pass::acted::Acted;
use crate::controller::pass::context::Context;
use crate::metrics::Metrics;

/// What a pass has seen, planned and done, as far as later passes and other objects need it.
pub(super) fn remember(observed: &Observed, plan: &Plan, acted: &Acted<Node>, ctx: &Context) {
    references(&observed.node, ctx);
    references(&acted.object, ctx);
    repairs(observed, plan, ctx);
    let uid = acted.object.uid().unwrap_or_default();
    ctx.inventory.set_interest(Kind::Node, &uid, interest(&acted.object, plan, ctx));
    ctx.inventory.set_named(Kind::Node, &uid, named(&acted.object));
    ctx.inventory.name_instance(&uid, read_by_id(&acted.object));
}

/// The instance that is read by its id while lists fail, and its zone. Of a Node that is deleted none: only a
/// full sync shows that nothing else of it is left.
fn read_by_id(node: &Node) -> Option<(InstanceId, String)> {
    let status = node.status.as_ref().filter(|_| node.metadata.deletion_timestamp.is_none())?;
    let launched = || status.creation.as_ref().map(|creation| creation.zone.clone());
    let zone = status.zone.clone().or_else(launched).unwrap_or_default();
    Some((status.instance_id.clone()?, zone))
}

/// Counts what a pass has written into the status: once, also where a write failed before.
pub(super) fn count(old: &NodeStatus, new: &NodeStatus, metrics: &Metrics) {
    if let Some(took) = fenced_after(old, new) {
        metrics.fenced(took);
    }
    if let Some(took) = joined_after(old, new) {
        metrics.joined(took);
    }
}

/// The Node is gone.
pub(super) fn forget(uid: &str, ctx: &Context) {
    ctx.inventory.forget(Kind::Node, uid);
    ctx.limits.forget(uid);
    ctx.references.forget(uid);
    ctx.sends.forget_object(uid);
    ctx.metrics.repairs_underway(ctx.fleet.forget(uid));
}

/// The Node has lost its finalizer, and its instances are gone.
pub(super) fn forget_released(observed: &Observed, ctx: &Context) {
    forget(&observed.node.uid().unwrap_or_default(), ctx);
    let shown = observed.instances.instances.iter().map(|instance| &instance.id);
    let recorded = observed.node.status.iter().filter_map(|status| status.instance_id.as_ref());
    for id in shown.chain(&observed.node.spec.instance_id).chain(recorded) {
        ctx.issued.forget(&id.0);
    }
}

/// Which Node a change of its instance wakes.
fn references(node: &Node, ctx: &Context) {
    let (namespace, name) = (node.namespace().unwrap_or_default(), node.name_any());
    ctx.references.remember(&node.uid().unwrap_or_default(), &namespace, &name);
    if let Some(id) = node.status.as_ref().and_then(|status| status.instance_id.as_ref()) {
        ctx.references.remember_instance(id, &namespace, &name);
    }
}

/// What the repairs of other machines must know of this one.
fn repairs(observed: &Observed, plan: &Plan, ctx: &Context) {
    let status = observed.node.status.as_ref();
    if !plan.declares_lost() && status.is_none_or(|status| status.fence.is_none()) {
        ctx.fleet.withdraw(&observed.node.uid().unwrap_or_default());
    }
    let zone = status.and_then(|status| status.zone.as_deref());
    if let (Some(zone), Some(at)) = (zone, observed.fleet.zone_down_at) {
        ctx.fleet.note_zone_down(zone, &observed.node.namespace().unwrap_or_default(), at);
    }
}

/// How often EC2 is searched for what belongs to the Node, and what is to be proven absent.
fn interest(node: &Node, plan: &Plan, ctx: &Context) -> Interest {
    let status = node.status.as_ref();
    // What is known by its token alone (its tags lag, or were taken off) stays looked up by it.
    let pending = plan.pending || ctx.inventory.is_by_token_alone(&node.uid().unwrap_or_default());
    match status.and_then(looked_up) {
        Some(launch) if pending => {
            let sent = ctx.sends.of(&launch.client_token);
            let last = last_possible_send(status, Some(&launch.attempt), sent.as_ref(), ctx.leading_since);
            let token = Some(launch.client_token.clone());
            awaits(plan, Awaited { token, last_possible_send: Some(last), modifying: None })
        }
        // The status was lost, perhaps but for the id: the absence can be proven by tag.
        None if pending && status.is_some_and(may_have_an_instance) => {
            let last = last_possible_send(status, None, None, ctx.leading_since);
            awaits(plan, Awaited { token: None, last_possible_send: Some(last), modifying: None })
        }
        Some(_) | None if pending => awaits(plan, Awaited::default()),
        Some(_) | None => Interest::Settled,
    }
}

/// How soon a change must be seen.
fn awaits(plan: &Plan, awaited: Awaited) -> Interest {
    if plan.waiting.as_ref().is_some_and(NodeWait::takes_long) {
        Interest::Slow(awaited)
    } else {
        Interest::Pending(awaited)
    }
}

/// The instance that EC2 must show by this Node's tags; none once its end is proven, or where the tags are
/// taken off.
fn named(node: &Node) -> Option<&str> {
    let has_ended = conditions::is_true(node.conditions(), ConditionType::Fenced);
    let id = node.status.as_ref()?.instance_id.as_ref()?;
    (!has_ended && !node.spec.release).then_some(id.0.as_str())
}

/// The attempt that is looked up by its token, too: one without an id, or with one that EC2 may not show. One
/// that was refused made nothing; but where the status has an id it was recorded over the refusal, and the
/// proof of its absence needs the look-ups.
fn looked_up(status: &NodeStatus) -> Option<&NodeCreation> {
    let is_open = |launch: &&NodeCreation| launch.attempt.refused.is_none() || status.instance_id.is_some();
    status.creation.as_ref().filter(is_open)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::node::tests::{launch, refused};

    #[test]
    fn an_attempt_is_looked_up_by_token_unless_it_was_refused_and_there_is_no_instance() {
        let instance = || Some(InstanceId("i-2".to_owned()));
        let refused = || refused("InvalidParameterValue", launch(1).attempt.started_at.0);
        let rows = [(launch(1), None, true), (refused(), None, false), (refused(), instance(), true)];
        for (creation, instance_id, expected) in rows {
            let status = NodeStatus { creation: Some(creation), instance_id, ..NodeStatus::default() };
            assert_eq!(looked_up(&status).is_some(), expected);
        }
    }
}

//! The Node controller: one EC2 instance and its core Node for each `Node`.

pub mod act;
pub mod cause;
mod create_instance;
pub mod lease_monitor;
pub mod messages;
pub mod observe;
mod on_machine;
pub mod plan;
mod pods;
pub mod registration;
mod remember;
pub mod status;
mod tagged;
pub mod wait;

use std::sync::Arc;

use futures::{Stream, StreamExt};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, ResourceExt};
use tokio_util::sync::CancellationToken;

use self::observe::Observed;
use self::plan::action::Plan;
use self::registration::instance_of;
use self::wait::NodeWait;
use super::conditions;
use super::copies::Copies;
use super::pass::acted::Acted;
use super::pass::close::{close, next_look};
use super::pass::context::Context;
use super::pass::drive;
use super::pass::enough::is_enough;
use super::pass::result::{Again, PassError};
use super::pass::triggers::Triggers;
use super::pass::woken::of_changed_class;
use crate::api::{ConditionType, EventReason, Node};
use crate::cloud::identity::Kind;
use crate::cluster::events::{Events, Happened};
use crate::cluster::mirror::Reads;
use crate::time::sooner;

#[cfg(test)]
mod tests;

/// Runs the controller until `stop`. It subscribes to what wakes its objects in this call, so that nothing is
/// missed of copies that are filled from then on.
pub fn run(
    ctx: Arc<Context>,
    copies: Arc<Copies>,
    concurrency: u16,
    stop: CancellationToken,
) -> impl Future<Output = ()> + Send {
    let woken = wakes(&ctx);
    let joining = joining(&ctx);
    let triggers = Triggers::of(copies.nodes.triggers(), copies.nodes.store());
    let store = triggers.store();
    ctx.fleet.watch(triggers.store());
    ctx.metrics.shown().conditions(triggers.store(), Node::conditions);
    let leaving = leaving_of(&ctx, triggers.store());
    let initializing = initializing(&ctx, triggers.store());
    let of_class = of_changed_class(&ctx, store, |node| &node.spec.node_class_name);
    let triggers = triggers
        .woken_by(of_class)
        .woken_by(woken)
        .woken_by(joining)
        .woken_by(leaving)
        .woken_by(initializing);
    drive::run("node", triggers, ctx, concurrency, stop, looks_lost, move |node, ctx, events| {
        let copies = Arc::clone(&copies);
        async move { pass(&node, &copies, &ctx, &events).await }
    })
}

/// Whether the machine is declared lost, or what ran on it may be down.
fn looks_lost(node: &Node) -> bool {
    let Some(status) = &node.status else { return false };
    let is_ready = conditions::is_true(&status.conditions, ConditionType::Ready);
    status.fence.is_some() || (registration::has_joined(status) && !is_ready)
}

/// What there is, and what is to be done; `None` when the object is gone, or is another of its name.
async fn decide(node: &Node, copies: &Copies, ctx: &Context) -> Result<Option<(Observed, Plan)>, PassError> {
    let failed = |error: kube::Error| PassError::Observe(error.into());
    // What ran before it was adopted may lack our labels, which the copies are selected by.
    if node.spec.instance_id.is_none() {
        let observed = observe::observe(node, copies, Reads::Cached, ctx).await.map_err(failed)?;
        let Some(observed) = observed else { return Ok(None) };
        let now = ctx.clock.now();
        let plan = plan::plan(&observed, now);
        let old = observed.node.status.clone().unwrap_or_default();
        let new = status::status(&observed, &plan, &Acted::new(observed.node.clone()), now);
        let asks_ec2 =
            plan::unlisted(&observed).is_some() || plan::release::needs_tagged(&observed).is_some();
        let is_ending = observed.node.metadata.deletion_timestamp.is_some() && !observed.node.spec.release;
        if is_enough(plan.acts() || asks_ec2, is_ending, &old, &new) {
            return Ok(Some((observed, plan)));
        }
    }
    let observed = observe::observe(node, copies, Reads::Live, ctx).await.map_err(failed)?;
    let Some(mut observed) = observed else { return Ok(None) };
    if let Some(id) = plan::unlisted(&observed) {
        observed.shown_by_id = observe::shown_by_id(&observed.node, &id, observed.priority, ctx)
            .await
            .map_err(|error| PassError::Observe(error.into()))?;
    }
    if let Some(tags) = plan::release::needs_tagged(&observed) {
        observed.tagged =
            tagged::read(&observed, &tags, ctx).await.map_err(|error| PassError::Observe(error.into()))?;
    }
    let plan = plan::plan(&observed, ctx.clock.now());
    Ok(Some((observed, plan)))
}

/// One pass: observe, plan, act, status, remember.
async fn pass(node: &Node, copies: &Copies, ctx: &Context, events: &Events) -> Result<Again, PassError> {
    let Some((observed, plan)) = decide(node, copies, ctx).await? else {
        remember::forget(&node.uid().unwrap_or_default(), ctx);
        return Ok(ctx.timing.resync_interval);
    };
    let acted = act::act(&plan, observed.node.clone(), ctx, events).await;
    if acted.finished {
        remember::forget_released(&observed, ctx);
        let message = plan.waiting.as_ref().map(NodeWait::message).unwrap_or_default();
        events.publish(&acted.object, &Happened::normal(EventReason::NodeReleased, message)).await;
        return Ok(ctx.timing.resync_interval);
    }
    let new = status::status(&observed, &plan, &acted, ctx.clock.now());
    // Before the status is written, which may fail.
    remember::remember(&observed, &plan, &acted, ctx);
    let old = acted.object.status.clone().unwrap_or_default();
    let nodes = Api::<Node>::namespaced(ctx.client.clone(), &acted.object.namespace().unwrap_or_default());
    let again =
        next_look(plan.requeue, acted.call_blocked.as_ref(), observed.instances.swept_at.is_some(), ctx);
    let waits = close(&nodes, acted, &old, &new, status::changes(&old, &new), events, ctx).await?;
    if waits.is_none() {
        remember::count(&old, &new, &ctx.metrics);
    }
    Ok(sooner(sooner(again, waits), observed.listed_again_in))
}

/// The Nodes whose core Nodes changed.
fn joining(ctx: &Arc<Context>) -> impl Stream<Item = ObjectRef<Node>> + Send + 'static {
    let references = Arc::clone(ctx);
    ctx.core_nodes.changes().filter_map(move |core_node| {
        let place = instance_of(&core_node).and_then(|id| references.references.by_instance(&id));
        async move { place.map(|(namespace, name)| ObjectRef::new(&name).within(&namespace)) }
    })
}

/// The Nodes that are being deleted or declared lost, and whose VolumeAttachments changed.
fn leaving_of(
    ctx: &Arc<Context>,
    nodes: Store<Node>,
) -> impl Stream<Item = ObjectRef<Node>> + Send + 'static {
    ctx.attachments.changes().filter_map(move |attachment| {
        let is_of = |node: &Node| {
            let core_node = node.status.as_ref().and_then(|status| status.core_node_name.as_ref());
            let is_given_up = node.status.as_ref().is_some_and(|status| status.fence.is_some());
            (node.metadata.deletion_timestamp.is_some() || is_given_up)
                && core_node == Some(&attachment.spec.node_name)
        };
        let node = nodes.find(is_of).map(|node| ObjectRef::from_obj(node.as_ref()));
        async move { node }
    })
}

/// The Nodes on whose machines a CSI driver has come or gone.
fn initializing(
    ctx: &Arc<Context>,
    nodes: Store<Node>,
) -> impl Stream<Item = ObjectRef<Node>> + Send + 'static {
    ctx.csi_nodes.changes().filter_map(move |csi_node| {
        let is_of = |node: &Node| {
            node.status.as_ref().is_some_and(|status| status.core_node_name == csi_node.metadata.name)
        };
        let node = nodes.find(is_of).map(|node| ObjectRef::from_obj(node.as_ref()));
        async move { node }
    })
}

/// The Nodes whose instances changed in EC2.
fn wakes(ctx: &Arc<Context>) -> impl Stream<Item = ObjectRef<Node>> + Send + 'static {
    let references = Arc::clone(ctx);
    ctx.inventory.wakes().filter_map(move |wake| {
        let place = (wake.kind == Kind::Node).then(|| references.references.by_uid(&wake.uid)).flatten();
        async move { place.map(|(namespace, name)| ObjectRef::new(&name).within(&namespace)) }
    })
}

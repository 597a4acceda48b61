//! The Node controller: one EC2 instance and its core Node for each `Node`.

pub mod act;
pub mod cause;
pub mod lease_monitor;
pub mod messages;
pub mod observe;
pub mod plan;
mod registration;
pub mod status;
pub mod wait;

use std::sync::Arc;

use futures::{Stream, StreamExt};
use kube::runtime::controller::Controller;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use tokio_util::sync::CancellationToken;

use self::registration::instance_of;
use super::creation::judge::last_possible_send;
use super::pass::close::{close, next_look};
use super::pass::context::Context;
use super::pass::drive;
use super::pass::result::{Again, PassError};

use crate::api::{EventReason, Node, NodeClass};
use crate::cloud::identity::Kind;
use crate::cloud::inventory::{Awaited, Interest};
use crate::cluster::events::{Events, Happened};

#[cfg(test)]
mod tests;

/// Runs the controller until `stop`.
pub async fn run(ctx: Arc<Context>, nodes: Api<Node>, concurrency: u16, stop: CancellationToken) {
    let classes = Api::<NodeClass>::all(ctx.client.clone());
    let woken = wakes(&ctx);
    let joining = joining(&ctx);
    let controller = Controller::new(nodes, watcher::Config::default());
    let store = controller.store();
    ctx.fleet.watch(controller.store());
    ctx.metrics.show_conditions(controller.store(), Node::conditions);
    let leaving = leaving_of(&ctx, controller.store());
    let initializing = initializing(&ctx, controller.store());
    let controller = controller
        .watches(classes, watcher::Config::default(), move |class| {
            let name = class.name_any();
            store
                .state()
                .into_iter()
                .filter(|node| node.spec.node_class_name == name)
                .map(|node| ObjectRef::from_obj(node.as_ref()))
                .collect::<Vec<_>>()
        })
        .reconcile_on(woken)
        .reconcile_on(joining)
        .reconcile_on(leaving)
        .reconcile_on(initializing);
    drive::run("node", controller, ctx, concurrency, stop, |node, ctx, events| async move { pass(&node, &ctx, &events).await }).await;
}

/// One pass: observe, plan, act, status.
async fn pass(node: &Node, ctx: &Context, events: &Events) -> Result<Again, PassError> {
    let Some(observed) = observe::observe(node, ctx).await.map_err(|error| PassError::Observe(error.into()))? else {
        let uid = node.uid().unwrap_or_default();
        forget(&uid, ctx);
        return Ok(ctx.timing.resync);
    };
    remember(&observed.node, ctx);
    let plan = plan::plan(&observed, ctx.clock.now());
    if !plan.gives_up() && observed.node.status.as_ref().is_none_or(|status| status.fence.is_none()) {
        ctx.fleet.is_well(observed.node.metadata.uid.as_deref().unwrap_or_default());
    }
    let (acted, repair) = act::act(&plan, observed.node.clone(), ctx, events).await;
    if acted.finished {
        let uid = observed.node.uid().unwrap_or_default();
        forget(&uid, ctx);
        for instance in &observed.instances.instances {
            ctx.asks.forget(&instance.id.0);
        }
        events.publish(&acted.object, &Happened::normal(EventReason::NodeReleased, messages::RELEASED.to_owned())).await;
        return Ok(ctx.timing.resync);
    }
    remember(&acted.object, ctx);
    express_interest(&acted.object, &plan, ctx);
    let again = next_look(plan.requeue, acted.held_up.as_ref(), observed.instances.swept_at.is_some(), ctx);
    let new = status::status(&observed, &plan, &acted, repair, ctx.clock.now());
    let old = acted.object.status.clone().unwrap_or_default();
    let nodes = Api::<Node>::namespaced(ctx.client.clone(), &acted.object.namespace().unwrap_or_default());
    if let Some(took) = status::fenced_after(&old, &new) {
        ctx.metrics.fenced(took);
    }
    let changes = status::changes(&old, &new);
    close(&nodes, acted, &old, &new, changes, events).await?;
    Ok(again)
}

fn forget(uid: &str, ctx: &Context) {
    ctx.inventory.forget(Kind::Node, uid);
    ctx.references.forget(uid);
    ctx.metrics.repairs_underway(ctx.fleet.forget(uid));
}

fn remember(node: &Node, ctx: &Context) {
    let (uid, namespace, name) = (node.uid().unwrap_or_default(), node.namespace().unwrap_or_default(), node.name_any());
    ctx.references.remember(&uid, &namespace, &name);
    if let Some(id) = node.status.as_ref().and_then(|status| status.instance_id.as_ref()) {
        ctx.references.remember_instance(id, &namespace, &name);
    }
}

/// Tells the inventory how often to look, and what to prove absent.
fn express_interest(node: &Node, plan: &plan::action::Plan, ctx: &Context) {
    let uid = node.uid().unwrap_or_default();
    let status = node.status.as_ref();
    // What is known by its token alone (its tags lag, or were taken off) stays looked up by it.
    let pending = plan.pending || ctx.inventory.is_by_token_alone(&uid);
    // Without an id, or with one that EC2 does not show, the attempt is looked up by its token, too.
    let attempt = status.and_then(|status| status.launch.as_ref()).filter(|launch| launch.refused.is_none());
    let interest = match attempt {
        Some(launch) if pending => Interest::Pending(Awaited {
            token: Some(launch.token.clone()),
            last_possible_send: Some(last_possible_send(ctx.sends.of(&launch.token).as_ref(), launch.started_at.0, ctx.process_started)),
            modifying: None,
        }),
        // The status was lost but for the id: its absence can be proven by tag.
        None if pending && status.is_some_and(|status| status.instance_id.is_some()) => {
            Interest::Pending(Awaited { token: None, last_possible_send: Some(ctx.process_started), modifying: None })
        }
        Some(_) | None if pending => Interest::changes(),
        Some(_) | None => Interest::Settled,
    };
    ctx.inventory.set_interest(Kind::Node, &uid, interest);
}

/// The Nodes whose core Nodes changed.
fn joining(ctx: &Arc<Context>) -> impl Stream<Item = ObjectRef<Node>> + Send + 'static {
    let references = Arc::clone(ctx);
    ctx.core_nodes.changes().filter_map(move |core_node| {
        let place = instance_of(&core_node).and_then(|id| references.references.by_instance(&id));
        async move { place.map(|(namespace, name)| ObjectRef::new(&name).within(&namespace)) }
    })
}

/// The Nodes that are being deleted or given up, and whose VolumeAttachments changed.
fn leaving_of(ctx: &Arc<Context>, nodes: Store<Node>) -> impl Stream<Item = ObjectRef<Node>> + Send + 'static {
    ctx.attachments.changes().filter_map(move |attachment| {
        let is_of = |node: &Node| {
            let core_node = node.status.as_ref().and_then(|status| status.core_node_name.as_ref());
            let is_given_up = node.status.as_ref().is_some_and(|status| status.fence.is_some());
            (node.metadata.deletion_timestamp.is_some() || is_given_up) && core_node == Some(&attachment.spec.node_name)
        };
        let node = nodes.find(is_of).map(|node| ObjectRef::from_obj(node.as_ref()));
        async move { node }
    })
}

/// The Nodes on whose machines a CSI driver has come or gone.
fn initializing(ctx: &Arc<Context>, nodes: Store<Node>) -> impl Stream<Item = ObjectRef<Node>> + Send + 'static {
    ctx.csi_nodes.changes().filter_map(move |csi_node| {
        let is_of = |node: &Node| node.status.as_ref().is_some_and(|status| status.core_node_name == csi_node.metadata.name);
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

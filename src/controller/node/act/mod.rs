//! The act step of the Node controller: carries the plan out. Only writes; it makes no choice.

mod adoption;

use k8s_openapi::api::core::v1::{Node as CoreNode, Pod, Taint};
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use super::create_instance::CreateInstance;
use super::messages;
use super::observe;
use super::plan::action::{Action, Plan};
use super::registration::{self, NO_EXECUTE};
use crate::api::keys::{DEDICATED_LABEL, DEDICATED_TAINT, OUT_OF_SERVICE_TAINT};
use crate::api::node::{Fence, NodeCreation};
use crate::api::{EventReason, InstanceId, Node, NodeStatus};
use crate::cloud::call::Call;
use crate::cloud::identity::Kind;
use crate::cloud::turns::Priority;
use crate::cluster::events::{Events, Happened};
use crate::cluster::{delete, finalizer, status};
use crate::controller::call_blocked::CallBlocked;
use crate::controller::creation;
use crate::controller::pass::acted::{ActError, Acted};
use crate::controller::pass::context::Context;
use crate::controller::safety::repairs_at_limit;
use crate::time::later;

/// How much of a console goes to the log, in bytes.
const CONSOLE_TAIL: usize = 4096;

/// Carries out every action in order, up to the first that fails.
pub async fn act(plan: &Plan, node: Node, ctx: &Context, events: &Events) -> Acted<Node> {
    let mut acted = Acted::new(node);
    for action in &plan.actions {
        let result = one(action, plan.priority, &mut acted, ctx, events).await;
        if !acted.goes_on(result) {
            break;
        }
    }
    acted
}

async fn one(
    action: &Action,
    priority: Priority,
    acted: &mut Acted<Node>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    let nodes = Api::<Node>::namespaced(ctx.client.clone(), &acted.object.namespace().unwrap_or_default());
    let core_nodes = Api::<CoreNode>::all(ctx.client.clone());
    match action {
        Action::AddFinalizer => acted.object = finalizer::add(&nodes, &acted.object).await?,
        Action::Launch(creation, user_data) => {
            let creation = CreateInstance { creation, user_data, priority };
            creation::act::begin(&creation, acted, ctx, events).await?;
        }
        Action::Resend(user_data) => {
            if let Some(creation) = creation_of(acted) {
                let creation = CreateInstance { creation: &creation, user_data, priority };
                creation::act::resend(&creation, acted, ctx, events).await?;
            }
        }
        Action::RecordInstance(id) => {
            let creation = creation_of(acted);
            let token = creation.as_ref().map(|creation| &creation.client_token);
            creation::act::record::<CreateInstance<'_>>(id, token, acted, ctx).await?;
            events
                .publish(
                    &acted.object,
                    &Happened::normal(EventReason::InstanceRecorded, messages::events::recorded(id)),
                )
                .await;
        }
        Action::Adopt(id, tags) => adoption::adopt(id, tags, priority, acted, ctx, events).await?,
        Action::Tag(id, tags) => adoption::tag(id, tags, priority, acted, ctx).await,
        Action::Untag(id, resources, tags) => {
            adoption::untag(id, resources, tags, priority, acted, ctx).await;
        }
        Action::RestoreCoreNode(core_node) => {
            adoption::restore_core_node(&acted.object, core_node, ctx).await?;
        }
        Action::MarkUnavailable(instance_type, zone) => {
            ctx.offerings.mark_unavailable(instance_type, zone, ctx.clock.now());
        }
        Action::LogConsole(id) => log_console(id, &acted.object, ctx).await,
        Action::Terminate(id, why) => terminate(id, why, priority, acted, ctx, events).await,
        Action::DeclareLost(fence) => declare_lost(fence, acted, ctx, events).await?,
        Action::Stop(id, force) => stop(id, *force, priority, acted, ctx, events).await,
        Action::OutOfService(core_node) => out_of_service(core_node, acted, ctx, events).await?,
        Action::Dedicate(core_node) => dedicate(core_node, acted, ctx, events).await?,
        Action::HoldCoreNode(core_node) => {
            finalizer::add(&core_nodes, core_node.as_ref()).await?;
        }
        Action::Cordon(name, uid) => {
            let patch = json!({"metadata": {"uid": uid}, "spec": {"unschedulable": true}});
            core_nodes.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
            events
                .publish(
                    &acted.object,
                    &Happened::normal(EventReason::Cordoned, messages::events::cordoned(name)),
                )
                .await;
        }
        Action::EvictPod { namespace, name, uid, at_once } => {
            let pods = Api::<Pod>::namespaced(ctx.client.clone(), namespace);
            delete::delete_with(&pods, name, uid, at_once.then_some(0)).await?;
        }
        Action::EvictForeignPod { namespace, name, uid, grace_seconds } => {
            let pods = Api::<Pod>::namespaced(ctx.client.clone(), namespace);
            let place = format!("{namespace}/{name}");
            match delete::delete_with(&pods, name, uid, Some(*grace_seconds)).await {
                Ok(()) => {
                    let note = messages::events::foreign_pod_evicted(&place, *grace_seconds);
                    let happened = Happened::warning(EventReason::ForeignPodEvicted, note);
                    events.publish(&acted.object, &happened).await;
                }
                // Nothing depends on it, and the next pass requests it again.
                Err(error) => tracing::warn!(pod = place, %error, "failed to delete a foreign pod"),
            }
        }
        Action::ReleaseCoreNode(core_node) => release_core_node(core_node, ctx).await?,
        Action::RemoveFinalizer => {
            finalizer::remove(&nodes, &acted.object).await?;
            acted.finished = true;
        }
    }
    Ok(())
}

/// The creation that the status has.
fn creation_of(acted: &Acted<Node>) -> Option<NodeCreation> {
    acted.object.status.as_ref()?.creation.clone()
}

/// Reserves the repair that the plan decided on, then records that the machine is lost. The plan cannot
/// reserve: the plans of two Nodes may see the same free place, and only one may have it.
async fn declare_lost(
    fence: &Fence,
    acted: &mut Acted<Node>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    let has_ended = |other: &Node| observe::has_ended(other, ctx);
    match ctx.fleet.reserve(&acted.object, has_ended, ctx.timing.fence_step_timeout, ctx.clock.now()) {
        Ok(underway) => ctx.metrics.repairs_underway(underway),
        Err(at_limit) => {
            acted.call_blocked = Some(CallBlocked::RepairPostponed {
                loss: fence.message.clone(),
                blocker: repairs_at_limit(at_limit),
                until: later(ctx.clock.now(), ctx.timing.requeue_interval),
            });
            return Ok(());
        }
    }
    let nodes = Api::<Node>::namespaced(ctx.client.clone(), &acted.object.namespace().unwrap_or_default());
    let old = acted.object.status.clone().unwrap_or_default();
    let new = NodeStatus { fence: Some(fence.clone()), ..old.clone() };
    // With the resourceVersion of this pass' read: nothing is declared lost on an old view.
    acted.object = status::patch(&nodes, &acted.object, &old, &new).await?;
    ctx.metrics.machine_lost(&fence.cause);
    events
        .publish(
            &acted.object,
            &Happened::warning(EventReason::MachineLost, messages::events::declared_lost(&fence.message)),
        )
        .await;
    Ok(())
}

/// Taints the Kubernetes node of a machine that is proven stopped.
async fn out_of_service(
    core_node: &CoreNode,
    acted: &Acted<Node>,
    ctx: &Context,
    events: &Events,
) -> Result<(), kube::Error> {
    let name = core_node.name_any();
    taint(core_node, (OUT_OF_SERVICE_TAINT, "nodeshutdown", NO_EXECUTE), None, ctx).await?;
    let note = messages::events::out_of_service(&name);
    events.publish(&acted.object, &Happened::normal(EventReason::OutOfService, note)).await;
    Ok(())
}

/// Gives a Kubernetes node the label and the taint of a database's machine.
async fn dedicate(
    core_node: &CoreNode,
    acted: &Acted<Node>,
    ctx: &Context,
    events: &Events,
) -> Result<(), kube::Error> {
    let effect = registration::dedicated_effect(&acted.object);
    let label = (DEDICATED_LABEL, "true");
    if let Some(effect) = effect {
        taint(core_node, (DEDICATED_TAINT, "true", effect), Some(label), ctx).await?;
    } else {
        let metadata = json!({"uid": core_node.metadata.uid, "labels": {label.0: label.1}});
        let core_nodes = Api::<CoreNode>::all(ctx.client.clone());
        let patch = Patch::Merge(json!({"metadata": metadata}));
        core_nodes.patch(&core_node.name_any(), &PatchParams::default(), &patch).await?;
    }
    let reason = EventReason::KubernetesNodeNotDedicated;
    let happened = if effect == Some(NO_EXECUTE) {
        let class = &acted.object.spec.node_class_name;
        Happened::warning(reason, messages::events::dedicated(&core_node.name_any(), class))
    } else {
        Happened::normal(reason, messages::events::dedicated_as_adopted(&core_node.name_any()))
    };
    events.publish(&acted.object, &happened).await;
    Ok(())
}

/// Adds a taint to a Kubernetes node, in place of one of its key and effect, and a label with it.
async fn taint(
    core_node: &CoreNode,
    (key, value, effect): (&str, &str, &str),
    label: Option<(&str, &str)>,
    ctx: &Context,
) -> Result<(), kube::Error> {
    let mut taints = core_node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    taints.retain(|taint| taint.key != key || taint.effect != effect);
    taints.push(Taint {
        key: key.to_owned(),
        value: Some(value.to_owned()),
        effect: effect.to_owned(),
        time_added: None,
    });
    // Taints are one list: with the resourceVersion, so that no taint of another client is lost.
    let metadata =
        json!({"uid": core_node.metadata.uid, "resourceVersion": core_node.metadata.resource_version});
    let mut patch = json!({"metadata": metadata, "spec": {"taints": taints}});
    if let Some((key, value)) = label {
        patch["metadata"]["labels"] = json!({key: value});
    }
    let core_nodes = Api::<CoreNode>::all(ctx.client.clone());
    core_nodes.patch(&core_node.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop)
}

/// Deletes the Kubernetes node, then takes our finalizer off it.
async fn release_core_node(core_node: &CoreNode, ctx: &Context) -> Result<(), kube::Error> {
    let core_nodes = Api::<CoreNode>::all(ctx.client.clone());
    let name = core_node.name_any();
    delete::delete(&core_nodes, &name, &core_node.uid().unwrap_or_default()).await?;
    // Its resourceVersion is another one now.
    match core_nodes.get_opt(&name).await? {
        Some(fresh) if fresh.metadata.uid == core_node.metadata.uid => {
            finalizer::remove(&core_nodes, &fresh).await
        }
        Some(_) | None => Ok(()),
    }
}

/// Requests EC2 to terminate an instance.
async fn terminate(
    id: &InstanceId,
    why: &str,
    priority: Priority,
    acted: &mut Acted<Node>,
    ctx: &Context,
    events: &Events,
) {
    let call = Call::TerminateInstances;
    if !acted.may_call(call, priority, ctx) {
        return;
    }
    let is_first = ctx.issued.of(call, &id.0).is_none();
    match ctx.cloud.terminate_instances(std::slice::from_ref(id)).await {
        Ok(()) => {
            ctx.issued.note(call, &id.0, ctx.clock.now(), None);
            ctx.inventory.request_sync(Kind::Node);
            if is_first {
                let note = messages::events::terminating(id, why);
                events
                    .publish(&acted.object, &Happened::normal(EventReason::InstanceTerminating, note))
                    .await;
            }
        }
        Err(error) => acted.refused(call, &id.0, &error, ctx),
    }
}

/// Requests EC2 to stop an instance.
async fn stop(
    id: &InstanceId,
    force: bool,
    priority: Priority,
    acted: &mut Acted<Node>,
    ctx: &Context,
    events: &Events,
) {
    let call = Call::StopInstances;
    if !acted.may_call(call, priority, ctx) {
        return;
    }
    let is_first = ctx.issued.of(call, &id.0).is_none();
    match ctx.cloud.stop_instances(std::slice::from_ref(id), force).await {
        Ok(()) => {
            ctx.issued.note(call, &id.0, ctx.clock.now(), None);
            ctx.inventory.request_sync(Kind::Node);
        }
        Err(error) => acted.refused(call, &id.0, &error, ctx),
    }
    if is_first {
        ctx.metrics.fence_begun();
    }
    if is_first || force {
        events
            .publish(
                &acted.object,
                &Happened::normal(EventReason::InstanceStopping, messages::events::stopping(id, force)),
            )
            .await;
    }
}

async fn log_console(id: &InstanceId, node: &Node, ctx: &Context) {
    if ctx.try_take(Call::GetConsoleOutput, node, Priority::Create).is_err() {
        return;
    }
    match ctx.cloud.console_output(id).await {
        Ok(console) => {
            let start = console.len().saturating_sub(CONSOLE_TAIL);
            let start = (start..=console.len())
                .find(|start| console.is_char_boundary(*start))
                .unwrap_or(console.len());
            tracing::warn!(instance = %id, console = &console[start..],
            "the instance never joined the cluster; the end of its console");
        }
        Err(error) => tracing::warn!(instance = %id, %error,
        "failed to read the console of an instance that never joined"),
    }
}

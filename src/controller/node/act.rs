//! The act step of the Node controller: carries the plan out. Only writes; it makes no choice.

use k8s_openapi::api::core::v1::{Node as CoreNode, Pod, Taint};
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use super::messages;
use super::plan::action::{Action, Plan, Repair};

use crate::api::keys::OUT_OF_SERVICE_TAINT;
use crate::api::node::{Fence, NodeLaunch};
use crate::api::{EventReason, InstanceId, Node, NodeStatus, Reason};
use crate::cloud::call::Call;
use crate::cloud::identity::Kind;
use crate::cloud::limits::Priority;
use crate::cloud::{Class, LaunchRequest};
use crate::cluster::events::{Events, Happened};
use crate::cluster::{delete, finalizer, status};
use crate::controller::creation::judge::{Outcome, outcome};
use crate::controller::pass::acted::{ActError, Acted, AttemptMarks, note_outcome};
use crate::controller::pass::call_blocked::held_up;
use crate::controller::pass::context::Context;
use crate::controller::waiting::HeldUp;
use crate::time::later;

/// How much of a console goes to the log, in bytes.
const CONSOLE_TAIL: usize = 4096;

/// Carries out every action in order, up to the first that fails.
pub async fn act(plan: &Plan, node: Node, ctx: &Context, events: &Events) -> (Acted<Node>, Repair) {
    let mut acted = Acted::new(node);
    let mut repair = Repair::AsPlanned;
    for action in &plan.actions {
        let result = if let Action::GiveUp(fence) = action {
            give_up(fence, &mut acted, ctx, events).await.map(|became| repair = became)
        } else {
            one(action, &mut acted, ctx, events).await
        };
        if !acted.goes_on(result) {
            break;
        }
    }
    (acted, repair)
}

async fn one(action: &Action, acted: &mut Acted<Node>, ctx: &Context, events: &Events) -> Result<(), ActError> {
    let nodes = Api::<Node>::namespaced(ctx.client.clone(), &acted.object.namespace().unwrap_or_default());
    let core_nodes = Api::<CoreNode>::all(ctx.client.clone());
    match action {
        Action::AddFinalizer => acted.object = finalizer::add(&nodes, &acted.object).await?,
        Action::Launch(launch, user_data) => launch_instance(launch, user_data, acted, ctx, events).await?,
        Action::Resend(user_data) => {
            let Some(launch) = acted.object.status.as_ref().and_then(|status| status.launch.clone()) else { return Ok(()) };
            ctx.sends.found_at_start(&launch.token, ctx.process_started);
            if acted.may_call(Call::RunInstances, Priority::Create, ctx) {
                send(&launch, user_data, acted, ctx, events).await?;
            }
        }
        Action::RecordInstance(id) => {
            acted.object = status::record(&nodes, &acted.object, |status| status.instance_id = Some(id.clone())).await?;
            if let Some(launch) = acted.object.status.as_ref().and_then(|status| status.launch.as_ref()) {
                ctx.sends.forget(&launch.token);
            }
            events.publish(&acted.object, &Happened::normal(EventReason::InstanceRecorded, messages::recorded(id))).await;
        }
        Action::MarkUnavailable(instance_type, zone) => ctx.offerings.mark_unavailable(instance_type, zone, ctx.clock.now()),
        Action::LogConsole(id) => log_console(id, ctx).await,
        Action::Terminate(id, why) => terminate(id, why, acted, ctx, events).await,
        Action::GiveUp(fence) => drop(give_up(fence, acted, ctx, events).await?),
        Action::Stop(id, force) => stop(id, *force, acted, ctx, events).await,
        Action::OutOfService(core_node) => {
            let name = core_node.name_any();
            let mut taints = core_node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
            let (key, effect) = (OUT_OF_SERVICE_TAINT.to_owned(), "NoExecute".to_owned());
            taints.push(Taint { key, value: Some("nodeshutdown".to_owned()), effect, time_added: None });
            // Taints are one list: with the resourceVersion, so that nobody else's is lost.
            let metadata = json!({"uid": core_node.metadata.uid, "resourceVersion": core_node.metadata.resource_version});
            let patch = json!({"metadata": metadata, "spec": {"taints": taints}});
            core_nodes.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
            events.publish(&acted.object, &Happened::normal(EventReason::OutOfService, messages::out_of_service(&name))).await;
        }
        Action::HoldCoreNode(core_node) => {
            finalizer::add(&core_nodes, core_node.as_ref()).await?;
        }
        Action::Cordon(name, uid) => {
            let patch = json!({"metadata": {"uid": uid}, "spec": {"unschedulable": true}});
            core_nodes.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
            events.publish(&acted.object, &Happened::normal(EventReason::Cordoned, messages::cordoned(name))).await;
        }
        Action::EvictPod { namespace, name, uid, at_once } => {
            let pods = Api::<Pod>::namespaced(ctx.client.clone(), namespace);
            delete::delete_with(&pods, name, uid, at_once.then_some(0)).await?;
        }
        Action::ReleaseCoreNode(core_node) => {
            let (name, uid) = (core_node.name_any(), core_node.uid().unwrap_or_default());
            delete::delete(&core_nodes, &name, &uid).await?;
            if let Some(fresh) = core_nodes.get_opt(&name).await?.filter(|fresh| fresh.metadata.uid == core_node.metadata.uid) {
                finalizer::remove(&core_nodes, &fresh).await?;
            }
        }
        Action::RemoveFinalizer => {
            finalizer::remove(&nodes, &acted.object).await?;
            acted.finished = true;
        }
    }
    Ok(())
}

/// Writes down that the machine is given up, unless other passes have begun as many repairs as may be meanwhile.
async fn give_up(fence: &Fence, acted: &mut Acted<Node>, ctx: &Context, events: &Events) -> Result<Repair, ActError> {
    match ctx.fleet.try_begin(&acted.object) {
        Ok(underway) => ctx.metrics.repairs_underway(underway),
        Err((underway, most)) => {
            let message = messages::repair_postponed(&fence.message, underway, most);
            let until = Some(later(ctx.clock.now(), ctx.timing.recheck));
            acted.held_up = Some(HeldUp { reason: Reason::RepairHeldBack, class: None, message, until });
            return Ok(Repair::Postponed);
        }
    }
    let nodes = Api::<Node>::namespaced(ctx.client.clone(), &acted.object.namespace().unwrap_or_default());
    let old = acted.object.status.clone().unwrap_or_default();
    let new = NodeStatus { fence: Some(fence.clone()), ..old.clone() };
    // With the resourceVersion of this pass' read: nothing is given up on an old view.
    acted.object = status::patch(&nodes, &acted.object, &old, &new).await?;
    ctx.metrics.machine_lost(&fence.cause);
    events.publish(&acted.object, &Happened::warning(EventReason::MachineLost, messages::declared_lost(&fence.message))).await;
    Ok(Repair::AsPlanned)
}

/// Asks EC2 to terminate an instance.
async fn terminate(id: &InstanceId, why: &str, acted: &mut Acted<Node>, ctx: &Context, events: &Events) {
    let call = Call::TerminateInstances;
    if !acted.may_call(call, Priority::Repair, ctx) {
        return;
    }
    let is_first = ctx.asks.of(call, &id.0).is_none();
    match ctx.cloud.terminate_instances(std::slice::from_ref(id)).await {
        Ok(()) => {
            ctx.asks.note(call, &id.0, ctx.clock.now(), None);
            ctx.inventory.request_sync(Kind::Node);
            if is_first {
                let note = messages::terminating(id, why);
                events.publish(&acted.object, &Happened::normal(EventReason::InstanceTerminating, note)).await;
            }
        }
        Err(error) => acted.refused(call, &id.0, &error, ctx),
    }
}

/// Asks EC2 to stop an instance.
async fn stop(id: &InstanceId, force: bool, acted: &mut Acted<Node>, ctx: &Context, events: &Events) {
    let call = Call::StopInstances;
    if !acted.may_call(call, Priority::Repair, ctx) {
        return;
    }
    let is_first = ctx.asks.of(call, &id.0).is_none();
    match ctx.cloud.stop_instances(std::slice::from_ref(id), force).await {
        Ok(()) => {
            ctx.asks.note(call, &id.0, ctx.clock.now(), None);
            ctx.inventory.request_sync(Kind::Node);
        }
        Err(error) => acted.refused(call, &id.0, &error, ctx),
    }
    if is_first {
        ctx.metrics.fence_begun();
    }
    if is_first || force {
        events.publish(&acted.object, &Happened::normal(EventReason::InstanceStopping, messages::stopping(id, force))).await;
    }
}

/// The create protocol: intent, call, id; nothing between.
async fn launch_instance(
    launch: &NodeLaunch,
    user_data: &str,
    acted: &mut Acted<Node>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    // Before the intent: an intent that is not sent at once would look like doubt.
    if !acted.may_call(Call::RunInstances, Priority::Create, ctx) {
        return Ok(());
    }
    let nodes = Api::<Node>::namespaced(ctx.client.clone(), &acted.object.namespace().unwrap_or_default());
    let old = acted.object.status.clone().unwrap_or_default();
    let new = NodeStatus {
        launch: Some(launch.clone()),
        instance_id: None,
        provider_id: None,
        core_node_name: None,
        instance_type: None,
        zone: None,
        ..old.clone()
    };
    // With the resourceVersion of this pass' read: the check that this view is not old.
    acted.object = status::patch(&nodes, &acted.object, &old, &new).await?;
    send(launch, user_data, acted, ctx, events).await
}

/// Sends the call and records at once what came of it.
async fn send(launch: &NodeLaunch, user_data: &str, acted: &mut Acted<Node>, ctx: &Context, events: &Events) -> Result<(), ActError> {
    let nodes = Api::<Node>::namespaced(ctx.client.clone(), &acted.object.namespace().unwrap_or_default());
    let token = &launch.token;
    let was_in_doubt = ctx.sends.starting(token, ctx.clock.now()) || launch.in_doubt_since.is_some();
    let answer = ctx.cloud.run_instance(&request(launch, user_data)).await;
    let now = ctx.clock.now();
    ctx.inventory.request_sync(Kind::Node);
    match answer {
        Ok(instance) => {
            acted.object = status::record(&nodes, &acted.object, |status| status.instance_id = Some(instance.id.clone())).await?;
            ctx.sends.forget(token);
            let note = messages::instance_launched(&instance.id, launch);
            events.publish(&acted.object, &Happened::normal(EventReason::InstanceLaunched, note)).await;
        }
        Err(error) => {
            acted.held_up = Some(held_up(Call::RunInstances, &error, ctx));
            if error.class == Class::Capacity {
                ctx.offerings.mark_unavailable(&launch.instance_type, &launch.zone, now);
            }
            // A profile that EC2 does not know for so long was not made moments ago: the name is wrong.
            let is_old = now >= later(launch.started_at.0, ctx.timing.offering_pause);
            let outcome = outcome(&error, is_old, was_in_doubt);
            note_outcome(outcome, &error, token, marks, &nodes, acted, ctx).await?;
            if outcome == Outcome::Refused {
                let note = messages::launch_refused(launch, &error);
                events.publish(&acted.object, &Happened::warning(EventReason::LaunchRefused, note)).await;
            }
        }
    }
    Ok(())
}

fn marks(status: &mut NodeStatus) -> Option<AttemptMarks<'_>> {
    let launch = status.launch.as_mut()?;
    Some(AttemptMarks { refused: &mut launch.refused, in_doubt_since: &mut launch.in_doubt_since })
}

fn request(launch: &NodeLaunch, user_data: &str) -> LaunchRequest {
    LaunchRequest {
        token: launch.token.clone(),
        subnet_id: launch.subnet_id.clone(),
        instance_type: launch.instance_type.clone(),
        image_id: launch.image_id.clone(),
        user_data: user_data.to_owned(),
        security_group_ids: launch.security_group_ids.clone(),
        instance_profile: launch.instance_profile.clone(),
        root_device: launch.root_volume.device_name.clone(),
        root_size: launch.root_volume.size,
        root_type: launch.root_volume.volume_type.clone(),
        kms_key_id: launch.kms_key_id.clone(),
        tags: launch.tags.clone(),
    }
}

async fn log_console(id: &InstanceId, ctx: &Context) {
    if ctx.limits.try_take(Call::GetConsoleOutput, Priority::Create, ctx.clock.now()).is_err() {
        return;
    }
    match ctx.cloud.console_output(id).await {
        Ok(console) => {
            let start = console.len().saturating_sub(CONSOLE_TAIL);
            let start = (start..=console.len()).find(|start| console.is_char_boundary(*start)).unwrap_or(console.len());
            tracing::warn!(instance = %id, console = &console[start..], "the instance never joined the cluster; the end of its console");
        }
        Err(error) => tracing::warn!(instance = %id, %error, "failed to read the console of an instance that never joined"),
    }
}

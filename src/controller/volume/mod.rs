//! The Volume controller: one EBS volume, its PersistentVolume and its claim for each `Volume`.

pub mod act;
pub mod build;
pub mod messages;
pub mod observe;
pub mod plan;
pub mod remembered;
pub mod status;
pub mod wait;

use std::sync::Arc;

use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::runtime::controller::Controller;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use tokio_util::sync::CancellationToken;

use self::plan::action::{Plan, VolumeInterest};
use self::wait::VolumeWait;
use super::creation::judge::last_possible_send;
use super::pass::close::{close, next_look};
use super::pass::context::Context;
use super::pass::drive;
use super::pass::result::{Again, PassError};

use crate::api::{ConditionType, EventReason, NodeClass, Volume, VolumeStatus, keys, names};
use crate::cloud::identity::Kind;
use crate::cloud::inventory::{Awaited, Interest};
use crate::cluster::events::{Events, Happened};
use crate::controller::conditions;

#[cfg(test)]
mod tests;

/// Runs the controller until `stop`.
pub async fn run(ctx: Arc<Context>, volumes: Api<Volume>, claims: Api<PersistentVolumeClaim>, concurrency: u16, stop: CancellationToken) {
    let references = Arc::clone(&ctx);
    let woken = wakes(&ctx);
    let detaching = detaching(&ctx);
    let ours = watcher::Config::default().labels(keys::DATABASE_UID_LABEL);
    let controller = Controller::new(volumes, watcher::Config::default());
    let store = controller.store();
    ctx.metrics.show_conditions(controller.store(), Volume::conditions);
    let controller = controller
        .owns(claims, ours.clone())
        .watches(Api::<PersistentVolume>::all(ctx.client.clone()), ours, move |record| {
            let uid = record.labels().get(keys::VOLUME_UID_LABEL);
            uid.and_then(|uid| references.references.by_uid(uid)).map(|(namespace, name)| ObjectRef::new(&name).within(&namespace))
        })
        .watches(Api::<NodeClass>::all(ctx.client.clone()), watcher::Config::default(), move |class| {
            let name = class.name_any();
            let volumes = store.state().into_iter().filter(|volume| volume.spec.node_class_name == name);
            volumes.map(|volume| ObjectRef::from_obj(volume.as_ref())).collect::<Vec<_>>()
        })
        .reconcile_on(woken)
        .reconcile_on(detaching);
    drive::run("volume", controller, ctx, concurrency, stop, |volume, ctx, events| async move { pass(&volume, &ctx, &events).await }).await;
}

/// One pass: observe, plan, act, status.
async fn pass(volume: &Volume, ctx: &Context, events: &Events) -> Result<Again, PassError> {
    let uid = volume.uid().unwrap_or_default();
    let Some(observed) = observe::observe(volume, ctx).await.map_err(|error| PassError::Observe(error.into()))? else {
        forget(&uid, ctx);
        return Ok(ctx.timing.resync);
    };
    ctx.references.remember(&uid, &volume.namespace().unwrap_or_default(), &volume.name_any());
    let plan = plan::plan(&observed, ctx.clock.now());
    let acted = act::act(&plan, observed.volume.clone(), ctx, events).await;
    if acted.finished {
        forget(&uid, ctx);
        for volume in &observed.volumes.volumes {
            ctx.asks.forget(&volume.id.0);
        }
        let note = plan.waiting.as_ref().map(VolumeWait::message).unwrap_or_default();
        events.publish(&acted.object, &Happened::normal(EventReason::VolumeReleased, note)).await;
        return Ok(ctx.timing.resync);
    }
    express_interest(&acted.object, &plan, ctx);
    let again = next_look(plan.requeue, acted.held_up.as_ref(), observed.volumes.swept_at.is_some(), ctx);
    let new = status::status(&observed, &plan, &acted, ctx.clock.now());
    let old = acted.object.status.clone().unwrap_or_default();
    let volumes = Api::<Volume>::namespaced(ctx.client.clone(), &acted.object.namespace().unwrap_or_default());
    let is_ready = |status: &VolumeStatus| conditions::is_true(&status.conditions, ConditionType::Ready);
    let became_ready =
        (!is_ready(&old) && is_ready(&new)).then(|| Happened::normal(EventReason::VolumeReady, messages::ready(new.size.as_ref())));
    close(&volumes, acted, &old, &new, became_ready, events).await?;
    Ok(again)
}

fn forget(uid: &str, ctx: &Context) {
    ctx.inventory.forget(Kind::Volume, uid);
    ctx.inventory.forget(Kind::Snapshot, uid);
    ctx.references.forget(uid);
}

/// Tells the inventory how often to look, and what to prove absent.
fn express_interest(volume: &Volume, plan: &Plan, ctx: &Context) {
    let uid = volume.uid().unwrap_or_default();
    let status = volume.status.clone().unwrap_or_default();
    if plan.interest == VolumeInterest::Settled {
        ctx.inventory.set_interest(Kind::Volume, &uid, Interest::Settled);
        ctx.inventory.set_interest(Kind::Snapshot, &uid, Interest::Settled);
        return;
    }
    let launch = status.launch.as_ref().filter(|launch| launch.refused.is_none());
    let last_send = match launch {
        Some(launch) => Some(last_possible_send(ctx.sends.of(&launch.token).as_ref(), launch.started_at.0, ctx.process_started)),
        // The status was lost but for the id: its absence can be proven all the same.
        None => status.volume_id.as_ref().map(|_| ctx.process_started),
    };
    let modifying = if plan.interest == VolumeInterest::Modification { status.volume_id.clone() } else { None };
    ctx.inventory.set_interest(Kind::Volume, &uid, Interest::Pending(Awaited { token: None, last_possible_send: last_send, modifying }));
    if plan.interest == VolumeInterest::Snapshot {
        let announced = status.final_snapshot.as_ref().map(|snapshot| snapshot.started_at.0.max(ctx.process_started));
        let awaited = Awaited { token: None, last_possible_send: announced, modifying: None };
        ctx.inventory.set_interest(Kind::Snapshot, &uid, Interest::Pending(awaited));
    }
}

/// The Volumes whose VolumeAttachments changed.
fn detaching(ctx: &Arc<Context>) -> impl Stream<Item = ObjectRef<Volume>> + Send + 'static {
    let references = Arc::clone(ctx);
    ctx.attachments.changes().filter_map(move |attachment| {
        let uid = attachment.spec.source.persistent_volume_name.as_deref().and_then(names::volume_uid_of);
        let place = uid.and_then(|uid| references.references.by_uid(uid));
        async move { place.map(|(namespace, name)| ObjectRef::new(&name).within(&namespace)) }
    })
}

/// The Volumes whose EBS volumes or snapshots changed in EC2.
fn wakes(ctx: &Arc<Context>) -> impl Stream<Item = ObjectRef<Volume>> + Send + 'static {
    let references = Arc::clone(ctx);
    ctx.inventory.wakes().filter_map(move |wake| {
        let place = matches!(wake.kind, Kind::Volume | Kind::Snapshot).then(|| references.references.by_uid(&wake.uid)).flatten();
        async move { place.map(|(namespace, name)| ObjectRef::new(&name).within(&namespace)) }
    })
}

//! The Volume controller: one EBS volume, its PersistentVolume and its claim for each `Volume`.

pub mod act;
pub mod adopted;
pub mod build;
mod create_snapshot;
mod create_volume;
pub mod expansion;
pub mod messages;
pub mod observe;
pub mod plan;
pub mod recorded;
mod remember;
pub mod status;
pub mod wait;

use std::sync::Arc;

use futures::{FutureExt, Stream, StreamExt};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::runtime::controller::Controller;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use tokio_util::sync::CancellationToken;

use self::wait::VolumeWait;
use super::pass::close::{close, next_look};
use super::pass::context::Context;
use super::pass::drive;
use super::pass::result::{Again, PassError};
use super::pass::woken::of_changed_class;
use super::retention;
use crate::api::names::VolumeNames;
use crate::api::{EventReason, Volume, keys};
use crate::cloud::identity::Kind;
use crate::cluster::events::{Events, Happened};
use crate::time::sooner;

#[cfg(test)]
mod tests;

/// Runs the controller until `stop`.
pub async fn run(
    ctx: Arc<Context>,
    volumes: Api<Volume>,
    claims: Api<PersistentVolumeClaim>,
    concurrency: u16,
    stop: CancellationToken,
) {
    let references = Arc::clone(&ctx);
    let woken = wakes(&ctx);
    let ours = watcher::Config::default().labels(keys::DATABASE_UID_LABEL);
    let scope = volumes.namespace().map(str::to_owned);
    let controller = Controller::new(volumes, watcher::Config::default());
    let store = controller.store();
    let of_class = of_changed_class(&ctx, store, |volume| &volume.spec.node_class_name);
    let detaching = detaching(&ctx, controller.store());
    ctx.metrics.shown().conditions(controller.store(), Volume::conditions);
    ctx.metrics.shown().volumes(controller.store());
    show_retained(&ctx, controller.store(), scope);
    let controller = controller
        .owns(claims, ours.clone())
        .watches(Api::<PersistentVolume>::all(ctx.client.clone()), ours, move |record| {
            let uid = record.labels().get(keys::VOLUME_UID_LABEL);
            uid.and_then(|uid| references.references.by_uid(uid))
                .map(|(namespace, name)| ObjectRef::new(&name).within(&namespace))
        })
        .reconcile_on(of_class)
        .reconcile_on(woken)
        .reconcile_on(detaching);
    drive::run(
        "volume",
        controller,
        ctx,
        concurrency,
        stop,
        |_| false,
        |volume, ctx, events| async move { pass(&volume, &ctx, &events).await },
    )
    .await;
}

/// One pass: observe, plan, act, status, remember.
async fn pass(volume: &Volume, ctx: &Context, events: &Events) -> Result<Again, PassError> {
    let Some(mut observed) =
        observe::observe(volume, ctx).await.map_err(|error| PassError::Observe(error.into()))?
    else {
        remember::forget(&volume.uid().unwrap_or_default(), ctx);
        return Ok(ctx.timing.resync_interval);
    };
    let mut plan = plan::plan(&observed, ctx.clock.now());
    if let Some(id) = &plan.look_up {
        observed.by_id = observe::by_id(&observed.volume, id, ctx)
            .await
            .map_err(|error| PassError::Observe(error.into()))?;
        plan = plan::plan(&observed, ctx.clock.now());
    }
    let acted = act::act(&plan, observed.volume.clone(), ctx, events).await;
    if acted.finished {
        remember::forget_released(&observed, ctx);
        let note = plan.waiting.as_ref().map(VolumeWait::message).unwrap_or_default();
        events.publish(&acted.object, &Happened::normal(EventReason::VolumeReleased, note)).await;
        return Ok(ctx.timing.resync_interval);
    }
    let new = status::status(&observed, &plan, &acted, ctx.clock.now());
    // Before the status is written, which may fail.
    remember::remember(&plan, &acted, ctx);
    let old = acted.object.status.clone().unwrap_or_default();
    let volumes =
        Api::<Volume>::namespaced(ctx.client.clone(), &acted.object.namespace().unwrap_or_default());
    let again =
        next_look(plan.requeue, acted.call_blocked.as_ref(), observed.volumes.swept_at.is_some(), ctx);
    let waits = close(&volumes, acted, &old, &new, status::changes(&old, &new), events, ctx).await?;
    Ok(sooner(again, waits))
}

/// Makes the retained volumes a metric: those of the watched namespace, or of all. None as long as not every
/// Volume is known, since the EBS volume of one that is not would be taken for a retained one.
fn show_retained(ctx: &Context, volumes: Store<Volume>, scope: Option<String>) {
    let inventory = Arc::clone(&ctx.inventory);
    ctx.metrics.shown().retained(move || {
        let is_whole = volumes.wait_until_ready().now_or_never().is_some_and(|ready| ready.is_ok());
        let shown = inventory.tagged_volumes(scope.as_deref()).filter(|_| is_whole).unwrap_or_default();
        let claimed = volumes.state().iter().flat_map(|volume| retention::claims(volume)).collect();
        let retained = retention::retained(shown, &claimed).into_iter();
        retained.map(|volume| (volume.namespace, volume.size)).collect()
    });
}

/// The Volumes whose VolumeAttachments changed.
fn detaching(
    ctx: &Arc<Context>,
    volumes: Store<Volume>,
) -> impl Stream<Item = ObjectRef<Volume>> + Send + 'static {
    ctx.attachments.changes().filter_map(move |attachment| {
        let name = attachment.spec.source.persistent_volume_name;
        let is_of = |volume: &Arc<Volume>| Some(VolumeNames::of(volume).persistent_volume) == name;
        let volume = volumes.state().into_iter().find(is_of);
        async move { volume.map(|volume| ObjectRef::from_obj(volume.as_ref())) }
    })
}

/// The Volumes whose EBS volumes or snapshots changed in EC2.
fn wakes(ctx: &Arc<Context>) -> impl Stream<Item = ObjectRef<Volume>> + Send + 'static {
    let references = Arc::clone(ctx);
    ctx.inventory.wakes().filter_map(move |wake| {
        let place = matches!(wake.kind, Kind::Volume | Kind::Snapshot)
            .then(|| references.references.by_uid(&wake.uid))
            .flatten();
        async move { place.map(|(namespace, name)| ObjectRef::new(&name).within(&namespace)) }
    })
}

//! The Volume controller: one EBS volume, its PersistentVolume and its claim for each `Volume`.

pub mod act;
pub mod adopted;
pub mod build;
mod create_snapshot;
mod create_volume;
pub mod expansion;
pub mod initialization;
pub mod messages;
pub mod observe;
pub mod plan;
pub mod recorded;
mod remember;
pub mod status;
pub mod wait;

use std::sync::Arc;

use futures::{FutureExt, Stream, StreamExt};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, ResourceExt};
use tokio_util::sync::CancellationToken;

use self::observe::Observed;
use self::plan::action::Plan;
use self::wait::VolumeWait;
use super::copies::Copies;
use super::pass::acted::Acted;
use super::pass::close::{close, next_look};
use super::pass::context::Context;
use super::pass::drive;
use super::pass::enough::is_enough;
use super::pass::result::{Again, PassError};
use super::pass::triggers::Triggers;
use super::pass::woken::{of_changed_child, of_changed_class};
use super::retention;
use crate::api::names::VolumeNames;
use crate::api::{EventReason, Volume, keys};
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
    scope: Option<String>,
    concurrency: u16,
    stop: CancellationToken,
) -> impl Future<Output = ()> + Send {
    let woken = wakes(&ctx);
    let recorded = recorded(&ctx);
    let triggers = Triggers::of(copies.volumes.triggers(), copies.volumes.store());
    let store = triggers.store();
    let of_class = of_changed_class(&ctx, store, |volume| &volume.spec.node_class_name);
    let detaching = detaching(&ctx, triggers.store());
    ctx.metrics.shown().conditions(triggers.store(), Volume::conditions);
    ctx.metrics.shown().volumes(triggers.store());
    show_retained(&ctx, triggers.store(), scope);
    let triggers = triggers
        .woken_by(of_changed_child(&copies.claims))
        .woken_by(recorded)
        .woken_by(of_class)
        .woken_by(woken)
        .woken_by(detaching);
    drive::run(
        "volume",
        triggers,
        ctx,
        concurrency,
        stop,
        |_| false,
        move |volume, ctx, events| {
            let copies = Arc::clone(&copies);
            async move { pass(&volume, &copies, &ctx, &events).await }
        },
    )
}

/// What there is, and what is to be done; `None` when the object is gone, or is another of its name.
async fn decide(
    volume: &Volume,
    copies: &Copies,
    ctx: &Context,
) -> Result<Option<(Observed, Plan)>, PassError> {
    let failed = |error: kube::Error| PassError::Observe(error.into());
    // What was there before may lack our labels, which the copies are selected by.
    let is_taken_over = volume.spec.adopt.is_some() || volume.spec.adopt_retained.is_some();
    if !is_taken_over {
        let observed = observe::observe(volume, copies, Reads::Cached, ctx).await.map_err(failed)?;
        let Some(observed) = observed else { return Ok(None) };
        let now = ctx.clock.now();
        let plan = plan::plan(&observed, now);
        let old = observed.volume.status.clone().unwrap_or_default();
        let new = status::status(&observed, &plan, &Acted::new(observed.volume.clone()), now);
        let is_ending =
            observed.volume.metadata.deletion_timestamp.is_some() && !observed.volume.spec.release;
        if is_enough(plan.acts() || plan.look_up.is_some(), is_ending, &old, &new) {
            return Ok(Some((observed, plan)));
        }
    }
    let observed = observe::observe(volume, copies, Reads::Live, ctx).await.map_err(failed)?;
    let Some(mut observed) = observed else { return Ok(None) };
    let mut plan = plan::plan(&observed, ctx.clock.now());
    if let Some(id) = &plan.look_up {
        observed.by_id = observe::by_id(&observed.volume, id, ctx)
            .await
            .map_err(|error| PassError::Observe(error.into()))?;
        plan = plan::plan(&observed, ctx.clock.now());
    }
    if observed.volume.metadata.deletion_timestamp.is_some() && plan.ends_data() {
        observed = observe::before_the_end(observed, copies, ctx).await.map_err(failed)?;
        plan = plan::plan(&observed, ctx.clock.now());
        if plan.needs_detached() {
            observed = observe::before_it_is_used(observed, ctx).await.map_err(failed)?;
            plan = plan::plan(&observed, ctx.clock.now());
        }
    }
    Ok(Some((observed, plan)))
}

/// One pass: observe, plan, act, status, remember.
async fn pass(volume: &Volume, copies: &Copies, ctx: &Context, events: &Events) -> Result<Again, PassError> {
    let Some((observed, plan)) = decide(volume, copies, ctx).await? else {
        remember::forget(&volume.uid().unwrap_or_default(), ctx);
        return Ok(ctx.timing.resync_interval);
    };
    let acted = act::act(&plan, observed.volume.clone(), ctx, events).await;
    if acted.finished {
        remember::forget_released(&observed, ctx);
        let note = plan.waiting.as_ref().map(VolumeWait::message).unwrap_or_default();
        events.publish(&acted.object, &Happened::normal(EventReason::VolumeReleased, note)).await;
        return Ok(ctx.timing.resync_interval);
    }
    let new = status::status(&observed, &plan, &acted, ctx.clock.now());
    // Before the status is written, which may fail.
    remember::remember(&plan, &acted, &new, ctx);
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

/// The Volumes whose PersistentVolumes changed.
fn recorded(ctx: &Arc<Context>) -> impl Stream<Item = ObjectRef<Volume>> + Send + 'static {
    let references = Arc::clone(ctx);
    ctx.persistent_volumes.changes().filter_map(move |record| {
        let uid = record.labels().get(keys::VOLUME_UID_LABEL);
        let place = uid.and_then(|uid| references.references.by_uid(uid));
        async move { place.map(|(namespace, name)| ObjectRef::new(&name).within(&namespace)) }
    })
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

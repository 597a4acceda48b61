//! The Backup controller: one snapshot of a database's volume, begun while the engine holds a checkpoint,
//! which is released in any case.

pub mod act;
mod attached;
mod create_backup;
pub mod messages;
mod mounted;
pub mod observe;
pub mod plan;
mod remember;
pub mod root;
pub mod status;
pub mod wait;

use std::sync::Arc;

use futures::{Stream, StreamExt};
use kube::runtime::reflector::ObjectRef;
use kube::{Api, ResourceExt};
use tokio_util::sync::CancellationToken;

use super::copies::Copies;
use super::pass::close::{close, next_look};
use super::pass::context::Context;
use super::pass::drive;
use super::pass::result::{Again, PassError};
use super::pass::triggers::Triggers;
use crate::api::Backup;
use crate::cloud::identity::Kind;
use crate::cluster::events::Events;
use crate::time::sooner;

#[cfg(test)]
mod tests;

/// Runs the controller until `stop`. It subscribes to what wakes its objects in this call, so that nothing is
/// missed of copies that are filled from then on.
pub fn run(
    ctx: Arc<Context>,
    copies: &Copies,
    concurrency: u16,
    stop: CancellationToken,
) -> impl Future<Output = ()> + Send + use<> {
    let woken = wakes(&ctx);
    let triggers = Triggers::of(copies.backups.triggers(), copies.backups.store());
    ctx.metrics.shown().conditions(triggers.store(), Backup::conditions);
    ctx.metrics.shown().backups(triggers.store());
    let triggers = triggers.woken_by(woken);
    drive::run(
        "backup",
        triggers,
        ctx,
        concurrency,
        stop,
        // A checkpoint that is held keeps the engine from freeing space.
        |backup| backup.status.as_ref().is_some_and(|status| status.checkpoint.is_some()),
        |backup, ctx, events| async move { pass(&backup, &ctx, &events).await },
    )
}

/// One pass: observe, plan, act, status, remember.
async fn pass(backup: &Backup, ctx: &Context, events: &Events) -> Result<Again, PassError> {
    let Some(mut observed) =
        observe::observe(backup, ctx).await.map_err(|error| PassError::Observe(error.into()))?
    else {
        remember::forget(backup, ctx);
        return Ok(ctx.timing.resync_interval);
    };
    let mut plan = plan::plan(&observed, ctx.clock.now());
    if let Some(id) = &plan.look_up {
        observed.by_id = observe::by_id(&observed.backup, id, ctx)
            .await
            .map_err(|error| PassError::Observe(error.into()))?;
        plan = plan::plan(&observed, ctx.clock.now());
    }
    if let Some(id) = &plan.look_up_volume {
        let shown = attached::read(&observed.backup, id, ctx).await;
        observed.ebs_now = shown.map_err(|error| PassError::Observe(error.into()))?;
        plan = plan::plan(&observed, ctx.clock.now());
    }
    let acted = act::act(&plan, observed.backup.clone(), ctx, events).await;
    if acted.finished {
        remember::forget(&acted.object, ctx);
        return Ok(ctx.timing.resync_interval);
    }
    let new = status::status(&observed, &plan, &acted, ctx.clock.now());
    // Before the status is written, which may fail.
    remember::remember(&observed, &plan, &acted, ctx);
    let old = acted.object.status.clone().unwrap_or_default();
    let backups =
        Api::<Backup>::namespaced(ctx.client.clone(), &acted.object.namespace().unwrap_or_default());
    let is_swept = observed.snapshots.swept_at.is_some();
    let again = next_look(plan.requeue, acted.call_blocked.as_ref(), is_swept, ctx);
    let waits = close(&backups, acted, &old, &new, status::changes(&old, &new), events, ctx).await?;
    Ok(sooner(again, waits))
}

/// The Backups whose snapshots changed in EC2.
fn wakes(ctx: &Arc<Context>) -> impl Stream<Item = ObjectRef<Backup>> + Send + 'static {
    let references = Arc::clone(ctx);
    ctx.inventory.wakes().filter_map(move |wake| {
        let place = (wake.kind == Kind::Backup).then(|| references.references.by_uid(&wake.uid)).flatten();
        async move { place.map(|(namespace, name)| ObjectRef::new(&name).within(&namespace)) }
    })
}

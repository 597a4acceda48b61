//! The BackupSchedule controller: creates Backups at the times of a schedule, deletes those that its
//! retention does not keep, and has the newest one restored and checked. It calls the API server, and a
//! restored engine for its check: the Backups and Databases do the work.

pub mod act;
pub mod build;
pub mod messages;
pub mod observe;
pub mod plan;
mod remember;
pub mod status;
pub mod times;
pub mod wait;

use std::fmt::Debug;
use std::sync::Arc;

use futures::{Stream, StreamExt};
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::copies::Copies;
use super::pass::close::close;
use super::pass::context::Context;
use super::pass::drive;
use super::pass::result::{Again, PassError};
use super::pass::triggers::Triggers;
use crate::api::BackupSchedule;
use crate::api::keys::{BACKUP_SCHEDULE_LABEL, VERIFICATION_LABEL};
use crate::cluster::events::Events;
use crate::cluster::mirror::Mirror;
use crate::time::sooner;

#[cfg(test)]
mod tests;

/// Runs the controller until `stop`. It subscribes to its Backups, and to the Databases that they are
/// restored in to verify them, in this call, so that nothing is missed of copies that are filled from then
/// on.
pub fn run(
    ctx: Arc<Context>,
    copies: &Copies,
    concurrency: u16,
    stop: CancellationToken,
) -> impl Future<Output = ()> + Send + use<> {
    let (of_backups, of_databases) = (
        of_labelled(&copies.backups, BACKUP_SCHEDULE_LABEL),
        of_labelled(&copies.databases, VERIFICATION_LABEL),
    );
    let triggers = Triggers::of(copies.schedules.triggers(), copies.schedules.store());
    ctx.metrics.shown().conditions(triggers.store(), BackupSchedule::conditions);
    ctx.metrics.shown().backup_schedules(triggers.store());
    let triggers = triggers.woken_by(of_backups).woken_by(of_databases);
    drive::run(
        "backup-schedule",
        triggers,
        ctx,
        concurrency,
        stop,
        |_| false,
        |schedule, ctx, events| async move { pass(&schedule, &ctx, &events).await },
    )
}

/// The BackupSchedules that changed objects name in this label.
fn of_labelled<K>(
    copy: &Mirror<K>,
    label: &'static str,
) -> impl Stream<Item = ObjectRef<BackupSchedule>> + Send + use<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    copy.changes().filter_map(move |object| async move {
        let schedule = object.labels().get(label)?;
        Some(ObjectRef::new(schedule).within(&object.namespace()?))
    })
}

/// One pass: observe, plan, act, status, remember.
async fn pass(schedule: &BackupSchedule, ctx: &Context, events: &Events) -> Result<Again, PassError> {
    let observed = observe::observe(schedule, ctx).await.map_err(|error| PassError::Observe(error.into()))?;
    let Some(observed) = observed else { return Ok(ctx.timing.resync_interval) };
    let now = ctx.clock.now();
    let plan = plan::plan(&observed, now);
    let (acted, is_answered) = act::act(&plan, observed.schedule.clone(), ctx, events).await;
    let new = status::status(&observed, &plan, &acted, is_answered, now);
    remember::remember(&observed, &plan, ctx);
    let old = acted.object.status.clone().unwrap_or_default();
    let namespace = acted.object.namespace().unwrap_or_default();
    let schedules = Api::<BackupSchedule>::namespaced(ctx.client.clone(), &namespace);
    let happened = status::changes(&plan);
    let waits = close(&schedules, acted, &old, &new, happened, events, ctx).await?;
    Ok(sooner(sooner(ctx.timing.resync_interval, plan.requeue), waits))
}

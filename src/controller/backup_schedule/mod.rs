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

use std::sync::Arc;

use kube::runtime::controller::Controller;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use tokio_util::sync::CancellationToken;

use super::pass::close::close;
use super::pass::context::Context;
use super::pass::drive;
use super::pass::result::{Again, PassError};
use crate::api::keys::{BACKUP_SCHEDULE_LABEL, VERIFICATION_LABEL};
use crate::api::{Backup, BackupSchedule, Database};
use crate::cluster::events::Events;
use crate::time::sooner;

#[cfg(test)]
mod tests;

/// What is read.
pub struct Apis {
    /// The BackupSchedules.
    pub schedules: Api<BackupSchedule>,
    /// The Backups.
    pub backups: Api<Backup>,
    /// The Databases, of which those are watched that Backups are restored in to verify them.
    pub databases: Api<Database>,
}

/// Runs the controller until `stop`.
pub async fn run(ctx: Arc<Context>, apis: Apis, concurrency: u16, stop: CancellationToken) {
    let scheduled = watcher::Config::default().labels(BACKUP_SCHEDULE_LABEL);
    let controller = Controller::new(apis.schedules, watcher::Config::default());
    ctx.metrics.shown().conditions(controller.store(), BackupSchedule::conditions);
    ctx.metrics.shown().backup_schedules(controller.store());
    let controller = controller.watches(apis.backups, scheduled, |backup| {
        let schedule = backup.labels().get(BACKUP_SCHEDULE_LABEL)?;
        Some(ObjectRef::new(schedule).within(&backup.namespace()?))
    });
    let restored = watcher::Config::default().labels(VERIFICATION_LABEL);
    let controller = controller.watches(apis.databases, restored, |database| {
        let schedule = database.labels().get(VERIFICATION_LABEL)?;
        Some(ObjectRef::new(schedule).within(&database.namespace()?))
    });
    drive::run(
        "backup-schedule",
        controller,
        ctx,
        concurrency,
        stop,
        |_| false,
        |schedule, ctx, events| async move { pass(&schedule, &ctx, &events).await },
    )
    .await;
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

//! Observe, BackupSchedule: reads everything that the plan depends on. Only reads.

use kube::ResourceExt;
use kube::api::{Api, ListParams};

use crate::api::keys::BACKUP_SCHEDULE_LABEL;
use crate::api::{Backup, BackupSchedule, Database};
use crate::cluster::if_served;
use crate::controller::pass::context::Context;
use crate::settings::Timing;

/// Everything that the plan of a BackupSchedule depends on.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The BackupSchedule, read fresh.
    pub schedule: BackupSchedule,
    /// Its Database exists, and is not being deleted.
    pub has_database: bool,
    /// The Backups of its Database that carry its name as their label. A list, since one that is deleted is
    /// judged by all others.
    pub backups: Vec<Backup>,
    /// The durations.
    pub timing: Timing,
}

/// Reads; `None` when the object is gone, is being deleted, or is another of its name.
pub async fn observe(schedule: &BackupSchedule, ctx: &Context) -> Result<Option<Observed>, kube::Error> {
    let (namespace, name) = (schedule.namespace().unwrap_or_default(), schedule.name_any());
    let schedules = Api::<BackupSchedule>::namespaced(ctx.client.clone(), &namespace);
    let is_it = |fresh: &BackupSchedule| {
        fresh.metadata.uid == schedule.metadata.uid && fresh.metadata.deletion_timestamp.is_none()
    };
    let Some(schedule) = schedules.get_opt(&name).await?.filter(is_it) else { return Ok(None) };
    let databases = Api::<Database>::namespaced(ctx.client.clone(), &namespace);
    let database = if_served(databases.get_opt(&schedule.spec.database_name).await)?;
    let labelled = ListParams::default().labels(&format!("{BACKUP_SCHEDULE_LABEL}={name}"));
    let backups = Api::<Backup>::namespaced(ctx.client.clone(), &namespace).list(&labelled).await?.items;
    let is_of_it = |backup: &Backup| backup.spec.database_name == schedule.spec.database_name;
    Ok(Some(Observed {
        has_database: database.is_some_and(|database| database.metadata.deletion_timestamp.is_none()),
        backups: backups.into_iter().filter(is_of_it).collect(),
        timing: ctx.timing.clone(),
        schedule,
    }))
}

//! Observe, BackupSchedule: reads everything that the plan depends on. Only reads.

use std::collections::BTreeSet;

use kube::ResourceExt;
use kube::api::{Api, ListParams};

use crate::api::keys::VERIFICATION_LABEL;
use crate::api::{Backup, BackupSchedule, Database};
use crate::cloud::identity::Kind;
use crate::cluster::if_served;
use crate::controller::memory::checks::CheckView;
use crate::controller::pass::context::Context;
use crate::settings::Timing;

/// Everything that the plan of a BackupSchedule depends on.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The BackupSchedule, read fresh.
    pub schedule: BackupSchedule,
    /// Its Database. One that is being deleted may go on for long, as with spec.deletionProtection.
    pub database: Option<Database>,
    /// Every Backup of its namespace: one that is deleted is judged by all others, and the name of the next
    /// one may be taken.
    pub backups: Vec<Backup>,
    /// The names of those whose snapshot EC2 showed in the last full sync; `None` before the first one.
    pub listed: Option<BTreeSet<String>>,
    /// The Database that has the name of the one of the verification that runs.
    pub restored: Option<Database>,
    /// While no verification runs: the Databases with the label of one of this BackupSchedule. They are left
    /// of one that is over, as when the answer to a creation was lost, or whose record is lost.
    pub left: Vec<Database>,
    /// What is known of the check of that Database.
    pub check: CheckView,
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
    let status = schedule.status.as_ref();
    let running = status.and_then(|status| status.verification.as_ref());
    let restored = match running {
        Some(running) => if_served(databases.get_opt(&running.database_name).await)?,
        None => None,
    };
    let is_used =
        schedule.spec.verify.is_some() || status.is_some_and(|it| it.last_verification_time.is_some());
    let left = if running.is_none() && is_used {
        let ours = ListParams::default().labels(&format!("{VERIFICATION_LABEL}={name}"));
        if_served(databases.list(&ours).await.map(|list| list.items))?
    } else {
        Vec::new()
    };
    let uid = restored.as_ref().and_then(ResourceExt::uid);
    let backups = Api::<Backup>::namespaced(ctx.client.clone(), &namespace);
    let backups = backups.list(&ListParams::default()).await?.items;
    let is_listed = |backup: &&Backup| {
        let id = backup.status.as_ref().and_then(|status| status.snapshot_id.as_ref());
        let shown = ctx.inventory.backups_of(&backup.uid().unwrap_or_default()).snapshots;
        id.is_some_and(|id| shown.iter().any(|snapshot| snapshot.id == *id))
    };
    let listed = backups.iter().filter(is_listed).map(ResourceExt::name_any).collect();
    Ok(Some(Observed {
        database,
        restored,
        left,
        check: uid.map_or(CheckView::NotBegun, |uid| ctx.checks.of(&uid)),
        listed: ctx.inventory.last_complete(Kind::Backup).map(|_| listed),
        backups,
        timing: ctx.timing.clone(),
        schedule,
    }))
}

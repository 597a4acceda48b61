//! The act step of the BackupSchedule controller: carries the plan out. Only writes; it makes no choice.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;

use super::messages;
use super::plan::action::{Action, Plan};
use crate::api::backup::SnapshotPolicy;
use crate::api::keys::{BACKUP_SCHEDULE_LABEL, EXPIRING_SINCE_ANNOTATION};
use crate::api::{Backup, BackupSchedule, BackupSpec, EventReason};
use crate::cluster::delete::delete_as_read;
use crate::cluster::events::{Events, Happened};
use crate::cluster::is_not_found;
use crate::controller::pass::acted::{ActError, Acted};
use crate::controller::pass::context::Context;

/// Carries out every action in order, up to the first that fails. Gives, too, whether every Backup that was
/// to be created is.
pub async fn act(
    plan: &Plan,
    schedule: BackupSchedule,
    ctx: &Context,
    events: &Events,
) -> (Acted<BackupSchedule>, bool) {
    let mut acted = Acted::new(schedule);
    for (place, action) in plan.actions.iter().enumerate() {
        let result = one(action, &acted.object, ctx, events).await;
        if !acted.goes_on(result) {
            let is_creation = |action: &Action| matches!(action, Action::Create(_));
            return (acted, !plan.actions[place..].iter().any(is_creation));
        }
    }
    (acted, true)
}

async fn one(
    action: &Action,
    schedule: &BackupSchedule,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    ctx.term.check()?;
    let namespace = schedule.namespace().unwrap_or_default();
    let backups = Api::<Backup>::namespaced(ctx.client.clone(), &namespace);
    match action {
        Action::Create(name) => {
            backups.create(&PostParams::default(), &backup(name, schedule)).await?;
            let note = messages::events::scheduled(name);
            events.publish(schedule, &Happened::normal(EventReason::BackupScheduled, note)).await;
        }
        Action::Expire { name, uid, resource_version } => {
            // Its snapshot goes with it. If this operator ends before the deletion, the next pass goes on, or
            // the Backup's controller puts the policy back.
            let since = ctx.clock.now().to_string();
            let patch = json!({
                "metadata": {
                    "uid": uid,
                    "resourceVersion": resource_version,
                    "annotations": {EXPIRING_SINCE_ANNOTATION: since},
                },
                "spec": {"deletionPolicy": SnapshotPolicy::Delete},
            });
            let patched = match backups.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await {
                Err(error) if is_not_found(&error) => return Ok(()),
                answer => answer?,
            };
            delete_as_read(&backups, name, uid, &patched.resource_version().unwrap_or_default()).await?;
            let note = messages::events::expired(name);
            events.publish(schedule, &Happened::normal(EventReason::BackupExpired, note)).await;
        }
    }
    Ok(())
}

/// A Backup of this schedule. No object owns it: it outlives the schedule and the Database.
fn backup(name: &str, schedule: &BackupSchedule) -> Backup {
    let labels = BTreeMap::from([(BACKUP_SCHEDULE_LABEL.to_owned(), schedule.name_any())]);
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: schedule.namespace(),
        labels: Some(labels),
        ..ObjectMeta::default()
    };
    let database_name = schedule.spec.database_name.clone();
    let spec = BackupSpec { database_name, deletion_policy: SnapshotPolicy::Retain };
    Backup { metadata, spec, status: None }
}

//! The act step of the BackupSchedule controller: carries the plan out. Only writes; it makes no choice.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;

use super::messages;
use super::plan::action::{Action, Plan};
use crate::api::backup::SnapshotPolicy;
use crate::api::keys::{BACKUP_SCHEDULE_LABEL, EXPIRING_SINCE_ANNOTATION};
use crate::api::verification::{BackupVerification, Verification, VerificationResult};
use crate::api::{
    Backup, BackupSchedule, BackupScheduleStatus, BackupSpec, BackupStatus, Database, EventReason,
};
use crate::cluster::delete::delete_as_read;
use crate::cluster::events::{Events, Happened};
use crate::cluster::{is_not_found, status};
use crate::controller::engine_access::{EnginePod, access, engine, engine_pod, is_of};
use crate::controller::pass::acted::{ActError, Acted};
use crate::controller::pass::context::Context;

/// Carries out what concerns the Backups, in order, up to the first that fails; and then in the same way what
/// concerns a verification: neither holds up the other. Gives, too, whether every Backup that was to be
/// created is.
pub async fn act(
    plan: &Plan,
    schedule: BackupSchedule,
    ctx: &Context,
    events: &Events,
) -> (Acted<BackupSchedule>, bool) {
    let mut acted = Acted::new(schedule);
    let is_of_backups = |it: &&Action| matches!(it, Action::Create(_) | Action::Expire { .. });
    let (backups, verification): (Vec<_>, Vec<_>) = plan.actions.iter().partition(is_of_backups);
    let done = in_order(&backups, &mut acted, ctx, events).await;
    let failed = acted.error.take();
    in_order(&verification, &mut acted, ctx, events).await;
    acted.error = failed.or_else(|| acted.error.take());
    let is_created = !backups.iter().skip(done).any(|it| matches!(it, Action::Create(_)));
    (acted, is_created)
}

/// How many actions were carried out before the first that failed.
async fn in_order(
    actions: &[&Action],
    acted: &mut Acted<BackupSchedule>,
    ctx: &Context,
    events: &Events,
) -> usize {
    for (place, action) in actions.iter().enumerate() {
        let result = one(action, acted, ctx, events).await;
        if !acted.goes_on(result) {
            return place;
        }
    }
    actions.len()
}

async fn one(
    action: &Action,
    acted: &mut Acted<BackupSchedule>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    ctx.term.check()?;
    let schedule = &acted.object;
    let namespace = schedule.namespace().unwrap_or_default();
    let backups = Api::<Backup>::namespaced(ctx.client.clone(), &namespace);
    let databases = Api::<Database>::namespaced(ctx.client.clone(), &namespace);
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
        Action::BeginVerification(running, time) => {
            acted.object = begin_verification(running, *time, schedule, ctx).await?;
        }
        Action::CreateDatabase(database) => {
            databases.create(&PostParams::default(), database).await?;
        }
        Action::Check(database) => check(database, schedule, ctx).await?,
        Action::Record(backup, verification) => record(backup, verification, ctx, events).await?,
        Action::DeleteDatabase { name, uid, resource_version } => {
            delete_as_read(&databases, name, uid, resource_version).await?;
        }
    }
    Ok(())
}

/// Writes the intent with the resourceVersion of this pass' read: nothing was created for it before.
async fn begin_verification(
    running: &Verification,
    time: Timestamp,
    schedule: &BackupSchedule,
    ctx: &Context,
) -> Result<BackupSchedule, ActError> {
    let schedules = Api::namespaced(ctx.client.clone(), &schedule.namespace().unwrap_or_default());
    let old = schedule.status.clone().unwrap_or_default();
    let new = BackupScheduleStatus {
        verification: Some(running.clone()),
        last_verification_time: Some(Time(time)),
        ..old.clone()
    };
    Ok(status::patch(&schedules, schedule, &old, &new).await?)
}

/// Begins the check of a restored database in the background: it may take hours. It only reads.
async fn check(database: &Database, schedule: &BackupSchedule, ctx: &Context) -> Result<(), ActError> {
    let namespace = database.namespace().unwrap_or_default();
    let of = engine(database);
    let pods = Api::<Pod>::namespaced(ctx.client.clone(), &namespace);
    let pod = pods.get_opt(&of.pod_name).await?.filter(|pod| is_of(pod, database));
    let address = match engine_pod(pod.as_ref(), of.container_name.as_deref()) {
        EnginePod::Running { address, .. } => address,
        EnginePod::Absent | EnginePod::NotRunning => None,
    };
    let access = access(&of, &namespace, address, ctx).await?;
    let query = schedule.spec.verify.as_ref().and_then(|verify| verify.query.clone());
    let (engines, kind) = (Arc::clone(&ctx.engines), database.spec.engine.kind);
    ctx.checks.begin(&database.uid().unwrap_or_default(), async move {
        let verified = engines.verify(&access?, kind, query.as_deref()).await;
        verified.map_err(|error| error.to_string())
    });
    Ok(())
}

/// Writes the result into the status of the Backup: no other controller writes that field.
async fn record(
    backup: &Backup,
    verification: &BackupVerification,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    let backups = Api::<Backup>::namespaced(ctx.client.clone(), &backup.namespace().unwrap_or_default());
    let note = |status: &mut BackupStatus| status.verification = Some(verification.clone());
    status::record(&backups, backup, note).await?;
    let happened = match verification.result {
        VerificationResult::Passed => {
            let note = messages::events::verified(&verification.database_name);
            Happened::normal(EventReason::BackupVerified, note)
        }
        VerificationResult::Failed => {
            let why = verification.message.as_deref().unwrap_or_default();
            Happened::warning(EventReason::VerificationFailed, messages::events::not_verified(why))
        }
    };
    events.publish(backup, &happened).await;
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

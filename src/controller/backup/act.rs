//! The act step of the Backup controller: carries the plan out. Only writes; it makes no choice.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use super::create_backup::CreateBackup;
use super::messages;
use super::plan::action::{Action, Plan};
use crate::api::backup::{CheckpointEngine, Consistency, OwedCheckpoint, SnapshotPolicy};
use crate::api::keys::{CONSISTENCY_TAG, EXPIRING_SINCE_ANNOTATION};
use crate::api::{Backup, BackupStatus, Database, EventReason, SnapshotId};
use crate::cloud::call::Call;
use crate::cloud::identity::Kind;
use crate::cloud::turns::Priority;
use crate::cluster::events::{Events, Happened};
use crate::cluster::{finalizer, status};
use crate::controller::creation;
use crate::controller::engine_access::{self, EnginePod};
use crate::controller::pass::acted::{ActError, Acted};
use crate::controller::pass::context::Context;
use crate::engine::client::{Access, ClientError};
use crate::time::whole_second;

/// Carries out every action in order, up to the first that fails.
pub async fn act(plan: &Plan, backup: Backup, ctx: &Context, events: &Events) -> Acted<Backup> {
    let mut acted = Acted::new(backup);
    for action in &plan.actions {
        let result = one(action, &mut acted, ctx, events).await;
        if !acted.goes_on(result) {
            break;
        }
    }
    acted
}

async fn one(
    action: &Action,
    acted: &mut Acted<Backup>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    let backups = backups(&acted.object, ctx);
    match action {
        Action::AddFinalizer => acted.object = finalizer::add(&backups, &acted.object).await?,
        Action::Checkpoint { pod_uid, engine_time } => {
            take_turn(&acted.object, ctx)?;
            checkpoint(pod_uid, *engine_time, acted, ctx).await?;
        }
        Action::NoteConsistent => {
            let note = |status: &mut BackupStatus| status.consistency = Some(Consistency::EngineCheckpoint);
            acted.object = status::record(&backups, &acted.object, note).await?;
        }
        Action::Release(began_at) => {
            ctx.term.check()?;
            let owed = acted.object.status.as_ref().and_then(|status| status.checkpoint.as_ref());
            let engine = match owed.and_then(|owed| owed.engine.clone()) {
                Some(engine) => engine,
                None => engine(&acted.object, ctx).await?,
            };
            let access = access(&acted.object, &engine, None, ctx).await?;
            ctx.engines.release_checkpoint(&access, *began_at).await?;
            note_released(acted, ctx).await?;
        }
        Action::NoteReleased => note_released(acted, ctx).await?,
        Action::Create(creation, source) => {
            take_turn(&acted.object, ctx)?;
            creation::act::begin(&CreateBackup { creation, source }, acted, ctx, events).await?;
        }
        Action::RecordSnapshot(id) => {
            creation::act::record::<CreateBackup<'_>>(id, None, acted, ctx).await?;
        }
        Action::Tag(id, consistency) => {
            if acted.may_call(Call::CreateTags, Priority::Existing, ctx) {
                let tags = BTreeMap::from([(CONSISTENCY_TAG.to_owned(), consistency.as_str().to_owned())]);
                let answer = ctx.cloud.tag_resource(&id.0, &tags).await;
                ctx.inventory.request_sync(Kind::Backup);
                acted.answered(Call::CreateTags, &id.0, answer, ctx);
            }
        }
        Action::PutPolicyBack => {
            let metadata = &acted.object.metadata;
            let patch = json!({
                "metadata": {
                    "uid": metadata.uid,
                    "resourceVersion": metadata.resource_version,
                    "annotations": {EXPIRING_SINCE_ANNOTATION: null},
                },
                "spec": {"deletionPolicy": SnapshotPolicy::Retain},
            });
            let name = acted.object.name_any();
            acted.object = backups.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        }
        Action::DeleteSnapshot(id) => delete_snapshot(id, acted, ctx, events).await?,
        Action::RemoveFinalizer => {
            finalizer::remove(&backups, &acted.object).await?;
            acted.finished = true;
        }
    }
    Ok(())
}

fn backups(backup: &Backup, ctx: &Context) -> Api<Backup> {
    Api::namespaced(ctx.client.clone(), &backup.namespace().unwrap_or_default())
}

/// Of two Backups of a Database that are begun at the same moment, the other one observes again.
fn take_turn(backup: &Backup, ctx: &Context) -> Result<(), ActError> {
    let namespace = backup.namespace().unwrap_or_default();
    let uid = backup.uid().unwrap_or_default();
    if ctx.backup_turns.take(&namespace, &backup.spec.database_name, &uid) {
        return Ok(());
    }
    Err(ActError::Conflict)
}

/// Writes down that a release is owed, with the resourceVersion of this pass' read, then has the engine begin
/// the checkpoint, then writes down when it began.
async fn checkpoint(
    pod_uid: &str,
    engine_time: Timestamp,
    acted: &mut Acted<Backup>,
    ctx: &Context,
) -> Result<(), ActError> {
    let engine = engine(&acted.object, ctx).await?;
    let access = access(&acted.object, &engine, Some(pod_uid), ctx).await?;
    let owed = OwedCheckpoint {
        since: Time(whole_second(ctx.clock.now())),
        pod_uid: pod_uid.to_owned(),
        engine_time: MicroTime(engine_time),
        began_at: None,
        engine: Some(engine),
    };
    let old = acted.object.status.clone().unwrap_or_default();
    let new = BackupStatus { checkpoint: Some(owed), ..old.clone() };
    let backups = backups(&acted.object, ctx);
    acted.object = status::patch(&backups, &acted.object, &old, &new).await?;
    ctx.term.check()?;
    match ctx.engines.create_checkpoint(&access).await {
        Ok(began_at) if ctx.term.check().is_err() => {
            // The process stood still meanwhile, and another operator may have found no checkpoint: what this
            // one has begun, and nothing else, it ends.
            ctx.engines.release_checkpoint(&access, began_at).await?;
            Ok(ctx.term.check()?)
        }
        Ok(began_at) => record_checkpoint(began_at, acted, ctx).await,
        Err(error) if error.is_refusal() => {
            let note = |status: &mut BackupStatus| status.checkpoint = None;
            acted.object = status::record(&backups, &acted.object, note).await?;
            Err(error.into())
        }
        Err(error) => Err(error.into()),
    }
}

async fn record_checkpoint(
    began_at: Timestamp,
    acted: &mut Acted<Backup>,
    ctx: &Context,
) -> Result<(), ActError> {
    let note = |status: &mut BackupStatus| {
        if let Some(owed) = &mut status.checkpoint {
            owed.began_at = Some(MicroTime(began_at));
        }
    };
    acted.object = status::record(&backups(&acted.object, ctx), &acted.object, note).await?;
    Ok(())
}

async fn note_released(acted: &mut Acted<Backup>, ctx: &Context) -> Result<(), ActError> {
    let now = Time(whole_second(ctx.clock.now()));
    let note = |status: &mut BackupStatus| {
        status.checkpoint = None;
        if status.snapshot_id.is_none() {
            status.released_in_vain_at = Some(now);
        }
    };
    acted.object = status::record(&backups(&acted.object, ctx), &acted.object, note).await?;
    Ok(())
}

/// How the engine of the Database is reached.
async fn engine(backup: &Backup, ctx: &Context) -> Result<CheckpointEngine, ActError> {
    let databases = Api::<Database>::namespaced(ctx.client.clone(), &backup.namespace().unwrap_or_default());
    Ok(engine_access::engine(&databases.get(&backup.spec.database_name).await?))
}

/// Where the engine listens, in the pod of this UID if one is given: a checkpoint that begins in another pod
/// would be one that no status names. A release that reaches another engine finds no checkpoint of this
/// Backup there.
async fn access(
    backup: &Backup,
    engine: &CheckpointEngine,
    pod_uid: Option<&str>,
    ctx: &Context,
) -> Result<Access, ActError> {
    let namespace = backup.namespace().unwrap_or_default();
    let pod = Api::namespaced(ctx.client.clone(), &namespace).get_opt(&engine.pod_name).await?;
    let address = match engine_access::engine_pod(pod.as_ref(), engine.container_name.as_deref()) {
        EnginePod::Running { uid, .. } if pod_uid.is_some_and(|expected| uid != expected) => {
            return Err(ActError::Conflict);
        }
        EnginePod::Running { address, .. } => address,
        EnginePod::Absent | EnginePod::NotRunning => None,
    };
    let access = engine_access::access(engine, &namespace, address, ctx).await?;
    access.map_err(|why| ActError::Engine(ClientError::NoAccess(why)))
}

async fn delete_snapshot(
    id: &SnapshotId,
    acted: &mut Acted<Backup>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    // The policy that counts is the one of this moment.
    let backups = backups(&acted.object, ctx);
    acted.check_as_read(&backups).await?;
    if !acted.may_call(Call::DeleteSnapshot, Priority::Existing, ctx) {
        return Ok(());
    }
    let answer = ctx.cloud.delete_snapshot(id).await;
    ctx.inventory.request_sync(Kind::Backup);
    let is_accepted = answer.is_ok();
    acted.answered(Call::DeleteSnapshot, &id.0, answer, ctx);
    if is_accepted {
        let at = Time(whole_second(ctx.clock.now()));
        let note = |status: &mut BackupStatus| status.deleted_at = Some(at);
        acted.object = status::record(&backups, &acted.object, note).await?;
        let note = messages::events::deleted(id);
        events.publish(&acted.object, &Happened::normal(EventReason::SnapshotDeleted, note)).await;
    }
    Ok(())
}

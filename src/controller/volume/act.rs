//! The act step of the Volume controller: carries the plan out. Only writes; it makes no choice.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;

use super::messages;
use super::plan::action::{Action, Modify, Plan};
use super::plan::facts::owner_of;

use crate::api::keys::{ADOPTED_BY_ANNOTATION, RETAINED_LABEL};
use crate::api::volume::{FinalSnapshot, VolumeLaunch};
use crate::api::{EventReason, Reason, SnapshotId, Volume, VolumeId, VolumeStatus};
use crate::cloud::call::Call;
use crate::cloud::identity::{self, Kind};
use crate::cloud::limits::Priority;
use crate::cloud::{Class, CreateVolumeRequest, VolumeQuery};
use crate::cluster::events::{Events, Happened};
use crate::cluster::{delete, finalizer, is_already_exists, status};
use crate::controller::conditions::whole_second;
use crate::controller::creation::judge::{Outcome, outcome};
use crate::controller::pass::acted::{ActError, Acted, AttemptMarks, note_outcome};
use crate::controller::pass::call_blocked::held_up;
use crate::controller::pass::context::Context;
use crate::controller::waiting::HeldUp;
use crate::time::later;

/// How many modifications the status remembers.
const REMEMBERED_MODIFICATIONS: usize = 10;

/// Carries out every action in order, up to the first that fails.
pub async fn act(plan: &Plan, volume: Volume, ctx: &Context, events: &Events) -> Acted<Volume> {
    let mut acted = Acted::new(volume);
    for action in &plan.actions {
        let result = one(action, &mut acted, ctx, events).await;
        if !acted.goes_on(result) {
            break;
        }
    }
    acted
}

async fn one(action: &Action, acted: &mut Acted<Volume>, ctx: &Context, events: &Events) -> Result<(), ActError> {
    let namespace = acted.object.namespace().unwrap_or_default();
    let volumes = volumes(&acted.object, ctx);
    let records = Api::<PersistentVolume>::all(ctx.client.clone());
    let claims = Api::<PersistentVolumeClaim>::namespaced(ctx.client.clone(), &namespace);
    match action {
        Action::AddFinalizer => acted.object = finalizer::add(&volumes, &acted.object).await?,
        Action::ConfirmGone(id) => {
            if !ctx.cloud.describe_volumes(&VolumeQuery::Ids(vec![id.clone()])).await?.is_empty() {
                let until = Some(later(ctx.clock.now(), ctx.timing.recheck.saturating_mul(12)));
                let message = messages::still_there(id);
                acted.held_up = Some(HeldUp { reason: Reason::VolumeLost, class: None, message, until });
            }
        }
        Action::Create(launch) => create(launch, acted, ctx, events).await?,
        Action::Resend => {
            let Some(launch) = acted.object.status.as_ref().and_then(|status| status.launch.clone()) else { return Ok(()) };
            ctx.sends.found_at_start(&launch.token, ctx.process_started);
            if acted.may_call(Call::CreateVolume, Priority::Create, ctx) {
                send(&launch, acted, ctx, events).await?;
            }
        }
        Action::RecordVolume(id) => {
            acted.object = status::record(&volumes, &acted.object, |status| status.volume_id = Some(id.clone())).await?;
            if let Some(launch) = acted.object.status.as_ref().and_then(|status| status.launch.as_ref()) {
                ctx.sends.forget(&launch.token);
            }
            events.publish(&acted.object, &Happened::normal(EventReason::VolumeRecorded, messages::recorded(id))).await;
        }
        Action::CreatePersistentVolume(record) => {
            let note = |status: &mut VolumeStatus| {
                status.ever_held = true;
                status.persistent_volume_name = Some(record.name_any());
            };
            acted.object = status::record(&volumes, &acted.object, note).await?;
            create_once(&records, record.as_ref()).await?;
        }
        Action::ReopenPersistentVolume(record) => {
            let patch = json!({
                "metadata": {"uid": record.metadata.uid, "resourceVersion": record.metadata.resource_version},
                "spec": {"claimRef": {"uid": null, "resourceVersion": null}},
            });
            records.patch(&record.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await?;
        }
        Action::CreateClaim(claim) => create_once(&claims, claim.as_ref()).await?,
        Action::Modify(change) => modify(change, acted, ctx, events).await?,
        Action::GrowClaim(claim) => {
            let patch = json!({
                "metadata": {"uid": claim.metadata.uid, "resourceVersion": claim.metadata.resource_version},
                "spec": {"resources": claim.spec.as_ref().and_then(|spec| spec.resources.as_ref())},
            });
            claims.patch(&claim.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await?;
        }
        Action::DeleteClaim(claim) => delete::delete(&claims, &claim.name_any(), &claim.uid().unwrap_or_default()).await?,
        Action::Adopt(id, tags) => adopt(id, tags, acted, ctx, events).await?,
        Action::Retag(id, tags) => {
            if acted.may_call(Call::CreateTags, Priority::Repair, ctx) {
                tag(id, tags, acted, ctx).await;
            }
        }
        Action::ReleaseRecord(record) => {
            let patch = json!({"metadata": {
                "uid": record.metadata.uid,
                "resourceVersion": record.metadata.resource_version,
                "annotations": {ADOPTED_BY_ANNOTATION: null},
            }});
            records.patch(&record.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await?;
        }
        Action::MarkRetained(record) => {
            let patch = json!({
                "metadata": {"uid": record.metadata.uid, "labels": {RETAINED_LABEL: "true"}, "annotations": record.annotations()},
                "spec": {"claimRef": record.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref())},
            });
            records.patch(&record.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await?;
        }
        Action::Snapshot(id) => snapshot(id, acted, ctx, events).await?,
        Action::RecordSnapshot(id) => {
            acted.object = status::record(&volumes, &acted.object, |status| note_snapshot(status, id)).await?;
        }
        Action::DeleteVolume(id) => delete_volume(id, acted, ctx, events).await?,
        Action::NoteDeleted => note_deleted(acted, ctx).await?,
        Action::DeletePersistentVolume(record) => delete::delete(&records, &record.name_any(), &record.uid().unwrap_or_default()).await?,
        Action::RemoveFinalizer => {
            finalizer::remove(&volumes, &acted.object).await?;
            acted.finished = true;
        }
    }
    Ok(())
}

fn volumes(volume: &Volume, ctx: &Context) -> Api<Volume> {
    Api::namespaced(ctx.client.clone(), &volume.namespace().unwrap_or_default())
}

/// Creates an object whose name is ours alone; one that is there already is looked at by the next pass.
async fn create_once<K>(api: &Api<K>, object: &K) -> Result<(), kube::Error>
where
    K: Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    match api.create(&PostParams::default(), object).await {
        Ok(_) => Ok(()),
        Err(error) if is_already_exists(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The create protocol: intent, call, id; nothing between.
async fn create(launch: &VolumeLaunch, acted: &mut Acted<Volume>, ctx: &Context, events: &Events) -> Result<(), ActError> {
    // Before the intent: an intent that is not sent at once would look like doubt.
    if !acted.may_call(Call::CreateVolume, Priority::Create, ctx) {
        return Ok(());
    }
    let old = acted.object.status.clone().unwrap_or_default();
    let new = VolumeStatus { launch: Some(launch.clone()), volume_id: None, ..old.clone() };
    // With the resourceVersion of this pass' read: the check that this view is not old.
    acted.object = status::patch(&volumes(&acted.object, ctx), &acted.object, &old, &new).await?;
    send(launch, acted, ctx, events).await
}

/// Sends the call and records at once what came of it.
async fn send(launch: &VolumeLaunch, acted: &mut Acted<Volume>, ctx: &Context, events: &Events) -> Result<(), ActError> {
    let volumes = volumes(&acted.object, ctx);
    let token = &launch.token;
    let was_in_doubt = ctx.sends.starting(token, ctx.clock.now()) || launch.in_doubt_since.is_some();
    let answer = ctx.cloud.create_volume(&request(launch)).await;
    ctx.inventory.request_sync(Kind::Volume);
    match answer {
        Ok(made) => {
            acted.object = status::record(&volumes, &acted.object, |status| status.volume_id = Some(made.id.clone())).await?;
            ctx.sends.forget(token);
            let note = messages::created(&made.id, launch);
            events.publish(&acted.object, &Happened::normal(EventReason::VolumeCreated, note)).await;
        }
        Err(error) => {
            acted.held_up = Some(held_up(Call::CreateVolume, &error, ctx));
            // A volume names nothing that is made moments before it.
            let outcome = outcome(&error, false, was_in_doubt);
            note_outcome(outcome, &error, token, marks, &volumes, acted, ctx).await?;
            if outcome == Outcome::Refused {
                let note = messages::creation_refused(&error);
                events.publish(&acted.object, &Happened::warning(EventReason::CreationRefused, note)).await;
            }
        }
    }
    Ok(())
}

fn request(launch: &VolumeLaunch) -> CreateVolumeRequest {
    CreateVolumeRequest {
        token: launch.token.clone(),
        zone: launch.zone.clone(),
        size: launch.size,
        volume_type: launch.volume_type.clone(),
        iops: launch.iops,
        throughput: launch.throughput,
        snapshot_id: launch.snapshot_id.clone(),
        kms_key_id: launch.kms_key_id.clone(),
        tags: launch.tags.clone(),
    }
}

/// Writes the modification down, with the resourceVersion of this pass' read, then asks for it: EC2 has no token for it.
async fn modify(change: &Modify, acted: &mut Acted<Volume>, ctx: &Context, events: &Events) -> Result<(), ActError> {
    let Modify { record, request, replaces_last } = change;
    if !acted.may_call(Call::ModifyVolume, Priority::Repair, ctx) {
        return Ok(());
    }
    let volumes = volumes(&acted.object, ctx);
    let old = acted.object.status.clone().unwrap_or_default();
    let mut modifications = old.modifications.clone();
    modifications.truncate(modifications.len() - usize::from(*replaces_last));
    modifications.push(record.clone());
    let surplus = modifications.len().saturating_sub(REMEMBERED_MODIFICATIONS);
    modifications.drain(..surplus);
    let new = VolumeStatus { modifications, ..old.clone() };
    acted.object = status::patch(&volumes, &acted.object, &old, &new).await?;
    let answer = ctx.cloud.modify_volume(request).await;
    ctx.inventory.request_sync(Kind::Volume);
    match answer {
        Ok(()) => {
            events.publish(&acted.object, &Happened::normal(EventReason::VolumeModifying, messages::modifying(request))).await;
        }
        Err(error) => {
            acted.refused(Call::ModifyVolume, &request.id.0, &error, ctx);
            if error.class != Class::InDoubt {
                // Refused for certain: EC2 does not count it. One before it that is in doubt may count.
                acted.object =
                    status::record(&volumes, &acted.object, |status| status.modifications.clone_from(&old.modifications)).await?;
                events
                    .publish(&acted.object, &Happened::warning(EventReason::ModificationRefused, messages::modification_refused(&error)))
                    .await;
            }
        }
    }
    Ok(())
}

/// Announces that the kept volume is this Volume's, with the resourceVersion of this pass' read, then tags it so.
async fn adopt(
    id: &VolumeId,
    tags: &BTreeMap<String, String>,
    acted: &mut Acted<Volume>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    if !acted.may_call(Call::CreateTags, Priority::Create, ctx) {
        return Ok(());
    }
    let old = acted.object.status.clone().unwrap_or_default();
    let new = VolumeStatus { volume_id: Some(id.clone()), ever_held: true, ..old.clone() };
    acted.object = status::patch(&volumes(&acted.object, ctx), &acted.object, &old, &new).await?;
    tag(id, tags, acted, ctx).await;
    events.publish(&acted.object, &Happened::normal(EventReason::VolumeAdopted, messages::adopted(id))).await;
    Ok(())
}

async fn tag(id: &VolumeId, tags: &BTreeMap<String, String>, acted: &mut Acted<Volume>, ctx: &Context) {
    let answer = ctx.cloud.tag_volume(id, tags).await;
    ctx.inventory.request_sync(Kind::Volume);
    match answer {
        Ok(()) => ctx.asks.note(Call::CreateTags, &id.0, ctx.clock.now(), None),
        Err(error) => acted.refused(Call::CreateTags, &id.0, &error, ctx),
    }
}

/// Announces the final snapshot, then takes it: EC2 has no token for it, so it is found again by its tags.
async fn snapshot(id: &VolumeId, acted: &mut Acted<Volume>, ctx: &Context, events: &Events) -> Result<(), ActError> {
    if !acted.may_call(Call::CreateSnapshot, Priority::Repair, ctx) {
        return Ok(());
    }
    let volumes = volumes(&acted.object, ctx);
    let old = acted.object.status.clone().unwrap_or_default();
    let announced = FinalSnapshot { started_at: Time(whole_second(ctx.clock.now())), snapshot_id: None };
    let new = VolumeStatus { final_snapshot: Some(announced), ..old.clone() };
    acted.object = status::patch(&volumes, &acted.object, &old, &new).await?;
    let mut owner = owner_of(&acted.object, &ctx.cluster_id);
    owner.kind = Kind::Snapshot;
    let answer = ctx.cloud.create_snapshot(id, &identity::tags(&owner, 1, &BTreeMap::new())).await;
    ctx.inventory.request_sync(Kind::Snapshot);
    match answer {
        Ok(taken) => {
            acted.object = status::record(&volumes, &acted.object, |status| note_snapshot(status, &taken.id)).await?;
            let note = messages::snapshot_started(&taken.id, id);
            events.publish(&acted.object, &Happened::normal(EventReason::FinalSnapshotStarted, note)).await;
        }
        Err(error) => {
            acted.refused(Call::CreateSnapshot, &id.0, &error, ctx);
            if error.class != Class::InDoubt {
                // Refused for certain, and it was never in doubt: nothing was taken.
                acted.object = status::record(&volumes, &acted.object, |status| status.final_snapshot = None).await?;
                events
                    .publish(&acted.object, &Happened::warning(EventReason::FinalSnapshotRefused, messages::snapshot_refused(&error)))
                    .await;
            }
        }
    }
    Ok(())
}

async fn delete_volume(id: &VolumeId, acted: &mut Acted<Volume>, ctx: &Context, events: &Events) -> Result<(), ActError> {
    // The policy that counts is the one of this moment: read fresh, so that a change of mind is honoured.
    let volumes = volumes(&acted.object, ctx);
    let fresh = volumes.get(&acted.object.name_any()).await?;
    if fresh.metadata.resource_version != acted.object.metadata.resource_version || fresh.metadata.uid != acted.object.metadata.uid {
        return Err(ActError::Conflict);
    }
    if !acted.may_call(Call::DeleteVolume, Priority::Repair, ctx) {
        return Ok(());
    }
    let answer = ctx.cloud.delete_volume(id).await;
    ctx.inventory.request_sync(Kind::Volume);
    match answer {
        Ok(()) => {
            note_deleted(acted, ctx).await?;
            events.publish(&acted.object, &Happened::normal(EventReason::VolumeDeleted, messages::deleted(id))).await;
        }
        Err(error) => acted.refused(Call::DeleteVolume, &id.0, &error, ctx),
    }
    Ok(())
}

fn note_snapshot(status: &mut VolumeStatus, id: &SnapshotId) {
    if let Some(snapshot) = &mut status.final_snapshot {
        snapshot.snapshot_id = Some(id.clone());
    }
}

fn marks(status: &mut VolumeStatus) -> Option<AttemptMarks<'_>> {
    let launch = status.launch.as_mut()?;
    Some(AttemptMarks { refused: &mut launch.refused, in_doubt_since: &mut launch.in_doubt_since })
}

async fn note_deleted(acted: &mut Acted<Volume>, ctx: &Context) -> Result<(), ActError> {
    let at: Timestamp = whole_second(ctx.clock.now());
    acted.object = status::record(&volumes(&acted.object, ctx), &acted.object, |status| status.deleted_at = Some(Time(at))).await?;
    Ok(())
}

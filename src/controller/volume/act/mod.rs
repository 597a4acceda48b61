//! The act step of the Volume controller: carries the plan out. Only writes; it makes no choice.

mod objects;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::api::Api;

use super::create_snapshot::CreateSnapshot;
use super::create_volume::CreateVolume;
use super::messages;
use super::plan::action::{Action, Modify, Plan};
use super::plan::facts::owner_of;
use crate::api::volume::VolumeCreation;
use crate::api::{EventReason, Volume, VolumeId, VolumeStatus};
use crate::cloud::Class;
use crate::cloud::call::Call;
use crate::cloud::identity::{self, Kind, Owner};
use crate::cloud::turns::Priority;
use crate::cluster::events::{Events, Happened};
use crate::cluster::{delete, finalizer, status};
use crate::controller::creation;
use crate::controller::pass::acted::{ActError, Acted};
use crate::controller::pass::context::Context;
use crate::time::whole_second;

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

async fn one(
    action: &Action,
    acted: &mut Acted<Volume>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    let namespace = acted.object.namespace().unwrap_or_default();
    let volumes = volumes(&acted.object, ctx);
    let records = Api::<PersistentVolume>::all(ctx.client.clone());
    let claims = Api::<PersistentVolumeClaim>::namespaced(ctx.client.clone(), &namespace);
    match action {
        Action::AddFinalizer => acted.object = finalizer::add(&volumes, &acted.object).await?,
        Action::Create(creation) => {
            creation::act::begin(&CreateVolume(creation), acted, ctx, events).await?;
        }
        Action::Resend => {
            if let Some(creation) = creation_of(acted) {
                creation::act::resend(&CreateVolume(&creation), acted, ctx, events).await?;
            }
        }
        Action::RecordVolume(id) => {
            let creation = creation_of(acted);
            let token = creation.as_ref().map(|creation| &creation.client_token);
            creation::act::record::<CreateVolume<'_>>(id, token, acted, ctx).await?;
            events
                .publish(
                    &acted.object,
                    &Happened::normal(EventReason::VolumeRecorded, messages::events::recorded(id)),
                )
                .await;
        }
        Action::CreatePersistentVolume(record) => create_persistent_volume(record, acted, ctx).await?,
        Action::ReopenPersistentVolume(record) => objects::reopen(&records, record).await?,
        Action::CreateClaim(claim) => objects::create_once(&claims, claim.as_ref()).await?,
        Action::Modify(change) => modify(change, acted, ctx, events).await?,
        Action::GrowClaim(claim) => objects::grow(&claims, claim).await?,
        Action::FreeClaim(claim) => finalizer::remove(&claims, claim).await?,
        Action::DeleteClaim(claim) => {
            delete::delete(&claims, &claim.name_any(), &claim.uid().unwrap_or_default()).await?;
        }
        Action::Adopt(id, tags) => adopt(id, tags, acted, ctx, events).await?,
        Action::Retag(id, tags) => {
            if acted.may_call(Call::CreateTags, Priority::Existing, ctx) {
                tag(id, tags, acted, ctx).await;
            }
        }
        Action::RecordAdopted(change) | Action::GiveBackRecord(change) => {
            objects::change(&records, change).await?;
        }
        Action::OwnClaim(change) | Action::DisownClaim(change) => objects::change(&claims, change).await?,
        Action::Untag(id, tags) => {
            if acted.may_call(Call::DeleteTags, Priority::Existing, ctx) {
                untag(id, tags, acted, ctx).await;
            }
        }
        Action::ReleaseRecord(record) => objects::release(&records, record).await?,
        Action::MarkRetained(record) => objects::mark_retained(&records, record).await?,
        Action::Snapshot(volume, attempt, contents) => {
            let owner = Owner { kind: Kind::Snapshot, ..owner_of(&acted.object, &ctx.cluster_id) };
            let mut tags = identity::tags(&owner, attempt.number, &BTreeMap::new());
            tags.extend(contents.clone());
            creation::act::begin(&CreateSnapshot { volume, attempt, tags }, acted, ctx, events).await?;
        }
        Action::RecordSnapshot(id) => {
            creation::act::record::<CreateSnapshot<'_>>(id, None, acted, ctx).await?;
        }
        Action::DeleteVolume(id) => delete_volume(id, acted, ctx, events).await?,
        Action::NoteDeleted => note_deleted(acted, ctx).await?,
        Action::DeletePersistentVolume(record) => {
            delete::delete(&records, &record.name_any(), &record.uid().unwrap_or_default()).await?;
        }
        Action::RemoveFinalizer => {
            finalizer::remove(&volumes, &acted.object).await?;
            acted.finished = true;
        }
    }
    Ok(())
}

/// The creation that the status has.
fn creation_of(acted: &Acted<Volume>) -> Option<VolumeCreation> {
    acted.object.status.as_ref()?.creation.clone()
}

fn volumes(volume: &Volume, ctx: &Context) -> Api<Volume> {
    Api::namespaced(ctx.client.clone(), &volume.namespace().unwrap_or_default())
}

/// Records that the EBS volume may hold data from now on, then creates its PersistentVolume.
async fn create_persistent_volume(
    record: &PersistentVolume,
    acted: &mut Acted<Volume>,
    ctx: &Context,
) -> Result<(), ActError> {
    let note = |status: &mut VolumeStatus| {
        status.ever_held = true;
        status.persistent_volume_name = Some(record.name_any());
    };
    acted.object = status::record(&volumes(&acted.object, ctx), &acted.object, note).await?;
    objects::create_once(&Api::all(ctx.client.clone()), record).await?;
    Ok(())
}

/// Writes the modification down, with the resourceVersion of this pass' read, then asks for it: EC2 has no
/// token for it.
async fn modify(
    change: &Modify,
    acted: &mut Acted<Volume>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    let Modify { record, request, replaces_last } = change;
    if !acted.may_call(Call::ModifyVolume, Priority::Existing, ctx) {
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
            events
                .publish(
                    &acted.object,
                    &Happened::normal(EventReason::VolumeModifying, messages::events::modifying(request)),
                )
                .await;
        }
        Err(error) => {
            acted.refused(Call::ModifyVolume, &request.id.0, &error, ctx);
            if error.class != Class::InDoubt {
                // Refused for certain: EC2 does not count it. One before it that is in doubt may count.
                acted.object = status::record(&volumes, &acted.object, |status| {
                    status.modifications.clone_from(&old.modifications);
                })
                .await?;
                events
                    .publish(
                        &acted.object,
                        &Happened::warning(
                            EventReason::ModificationRefused,
                            messages::events::modification_refused(&error),
                        ),
                    )
                    .await;
            }
        }
    }
    Ok(())
}

/// Announces that the adopted volume is this Volume's, with the resourceVersion of this pass' read, then
/// tags it so.
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
    let found = acted.object.spec.adopt.as_ref().map(|adopt| adopt.persistent_volume_name.clone());
    let new = VolumeStatus {
        volume_id: Some(id.clone()),
        ever_held: true,
        persistent_volume_name: found.or_else(|| old.persistent_volume_name.clone()),
        ..old.clone()
    };
    acted.object = status::patch(&volumes(&acted.object, ctx), &acted.object, &old, &new).await?;
    tag(id, tags, acted, ctx).await;
    events
        .publish(&acted.object, &Happened::normal(EventReason::VolumeAdopted, messages::events::adopted(id)))
        .await;
    Ok(())
}

async fn tag(id: &VolumeId, tags: &BTreeMap<String, String>, acted: &mut Acted<Volume>, ctx: &Context) {
    let answer = ctx.cloud.tag_resource(&id.0, tags).await;
    ctx.inventory.request_sync(Kind::Volume);
    acted.answered(Call::CreateTags, &id.0, answer, ctx);
}

async fn untag(id: &VolumeId, tags: &BTreeMap<String, String>, acted: &mut Acted<Volume>, ctx: &Context) {
    let answer = ctx.cloud.untag_resources(std::slice::from_ref(&id.0), tags).await;
    acted.answered(Call::DeleteTags, &id.0, answer, ctx);
}

async fn delete_volume(
    id: &VolumeId,
    acted: &mut Acted<Volume>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    // The policy that counts is the one of this moment.
    acted.check_as_read(&volumes(&acted.object, ctx)).await?;
    if !acted.may_call(Call::DeleteVolume, Priority::Existing, ctx) {
        return Ok(());
    }
    let answer = ctx.cloud.delete_volume(id).await;
    ctx.inventory.request_sync(Kind::Volume);
    match answer {
        Ok(()) => {
            note_deleted(acted, ctx).await?;
            let status = acted.object.status.as_ref();
            let snapshot = status.and_then(|status| status.final_snapshot.as_ref()?.snapshot_id.as_ref());
            let note = messages::events::deleted(id, snapshot);
            events.publish(&acted.object, &Happened::normal(EventReason::VolumeDeleted, note)).await;
        }
        Err(error) => acted.refused(Call::DeleteVolume, &id.0, &error, ctx),
    }
    Ok(())
}

async fn note_deleted(acted: &mut Acted<Volume>, ctx: &Context) -> Result<(), ActError> {
    let at: Timestamp = whole_second(ctx.clock.now());
    acted.object = status::record(&volumes(&acted.object, ctx), &acted.object, |status| {
        status.deleted_at = Some(Time(at));
    })
    .await?;
    Ok(())
}

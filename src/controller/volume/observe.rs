//! Observe, Volume: reads everything that the plan depends on. Only reads.

pub mod around;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{StorageClass, VolumeAttachment};
use kube::ResourceExt;
use kube::api::Api;

use self::around::Around;
use super::{build, expansion};
use crate::api::keys::VOLUME_UID_LABEL;
use crate::api::names::VolumeNames;
use crate::api::{Database, NodeClass, Volume, VolumeId, names};
use crate::cloud::call::Call;
use crate::cloud::inventory::{SnapshotView, VolumeView};
use crate::cloud::offerings::OfferingsView;
use crate::cloud::turns::Priority;
use crate::cloud::{CloudError, EbsVolume, VolumeQuery};
use crate::cluster::mirror::{Mirror, Reads};
use crate::cluster::ownership::{self, Ownership};
use crate::cluster::{self, controller_of, if_served, persistent_volume};
use crate::controller::copies::Copies;
use crate::controller::memory::issued_requests::IssuedRequest;
use crate::controller::memory::sends::Sent;
use crate::controller::pass::context::Context;
use crate::settings::Timing;

/// What EC2 answers to a read of one EBS volume by its id.
#[derive(Clone, Debug, PartialEq)]
pub enum ById {
    /// It was not read: no plan needed it yet, or the rate limit does not allow the call.
    NotRead,
    /// EC2 shows no such EBS volume.
    NotShown,
    /// EC2 shows it.
    Shown(Box<EbsVolume>),
}

/// Everything that a Volume's plan depends on.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The Volume.
    pub volume: Volume,
    /// Whether it still belongs to a Database.
    pub ownership: Ownership,
    /// Its NodeClass.
    pub class: Option<NodeClass>,
    /// What EC2 has under its UID.
    pub volumes: VolumeView,
    /// The EBS volume of the status, or the one to adopt, by its id; read only when a plan needs it.
    pub by_id: ById,
    /// Its final snapshots.
    pub snapshots: SnapshotView,
    /// Which quotas of the account are reached.
    pub offerings: OfferingsView,
    /// This process' sends of the current attempt.
    pub sent: Option<Sent>,
    /// When this process last requested of EC2 to change, snapshot or delete the EBS volume.
    pub issued: BTreeMap<Call, IssuedRequest>,
    /// The PersistentVolume of its name.
    pub persistent_volume: Option<PersistentVolume>,
    /// The record of the kept volume that it takes over, if it takes one over.
    pub record: Option<PersistentVolume>,
    /// What EC2 has under the UID of the Volume that had the kept volume before.
    pub former: VolumeView,
    /// The claim of its name.
    pub claim: Option<PersistentVolumeClaim>,
    /// The StorageClass of the claim; read only while the claim requests less than the spec.
    pub storage_class: Option<StorageClass>,
    /// VolumeAttachments of the PersistentVolume; read only while the Volume is being deleted, and from the
    /// API server only where its data is to end.
    pub attachments: Vec<String>,
    /// The Database that owns it; read only while the Volume is being deleted.
    pub owner: Option<Database>,
    /// What is being deleted around it; read only while the Volume is being deleted.
    pub around: Around,
    /// This cluster's identity.
    pub cluster_id: String,
    /// Since when this operator leads.
    pub leading_since: Timestamp,
    /// The durations.
    pub timing: Timing,
}

impl Observed {
    /// The EBS volume that this Volume's PersistentVolume names.
    pub fn recorded_volume(&self) -> Option<VolumeId> {
        let record =
            self.persistent_volume.as_ref().filter(|record| build::is_record_of(record, &self.volume))?;
        persistent_volume::ebs_volume(record)
    }

    /// Whether the EBS volume may hold data: a PersistentVolume was ever made for it, or it was adopted with
    /// its data.
    pub fn has_held(&self) -> bool {
        self.volume.spec.adopt.is_some()
            || self.volume.spec.adopt_retained.is_some()
            || self.volume.status.as_ref().is_some_and(|status| status.ever_held)
            || self.recorded_volume().is_some()
    }
}

/// Reads; `None` when the object is gone, or is another of its name.
pub async fn observe(
    volume: &Volume,
    copies: &Copies,
    reads: Reads,
    ctx: &Context,
) -> Result<Option<Observed>, kube::Error> {
    let namespace = volume.namespace().unwrap_or_default();
    let Some(volume) = copies.volumes.woken(volume, &ctx.client, reads).await? else { return Ok(None) };
    let uid = volume.uid().unwrap_or_default();
    let VolumeNames { persistent_volume: name, claim } = VolumeNames::of(&volume);
    let (mut attachments, mut around, mut owner) = (Vec::new(), Around::default(), None);
    if volume.metadata.deletion_timestamp.is_some() {
        attachments = attachments_of(&name, Reads::Cached, ctx).await?;
        around = around::recently(&volume, ctx).await?;
        owner = owner_of(&volume, &copies.databases, reads, ctx).await?;
    }
    let adopted = volume.spec.adopt_retained.as_deref();
    let record = match adopted {
        Some(record) => Api::<PersistentVolume>::all(ctx.client.clone()).get_opt(record).await?,
        None => None,
    };
    // A record of an EBS volume that was adopted in place has any name; one that is gone, its name alone.
    let former = record.as_ref().and_then(|record| record.labels().get(VOLUME_UID_LABEL)).map(String::as_str);
    let former = former.or_else(|| adopted.and_then(names::volume_uid_of));
    let claims = Api::namespaced(ctx.client.clone(), &namespace);
    let claim = copies.claims.read(&claims, &claim, reads).await?;
    let growing = claim.as_ref().filter(|claim| is_to_grow(claim, &volume));
    let storage_class = match growing {
        Some(claim) => storage_class_of(claim, ctx).await?,
        None => None,
    };
    Ok(Some(Observed {
        issued: issued(&volume, ctx),
        ownership: ownership::of(&volume, &ctx.client).await?,
        class: cluster::node_class(&ctx.node_classes, &ctx.client, &volume.spec.node_class_name).await?,
        volumes: ctx.inventory.volumes_of(&uid),
        former: ctx.inventory.volumes_of(former.unwrap_or_default()),
        record,
        by_id: ById::NotRead,
        snapshots: ctx.inventory.snapshots_of(&uid),
        offerings: ctx.offerings.view(&uid, Priority::Create, ctx.clock.now()),
        sent: sent(&volume, ctx),
        persistent_volume: ctx.persistent_volumes.read(&Api::all(ctx.client.clone()), &name, reads).await?,
        claim,
        storage_class,
        attachments,
        owner,
        around,
        cluster_id: ctx.cluster_id.clone(),
        leading_since: ctx.leading_since,
        timing: ctx.timing.clone(),
        volume,
    }))
}

/// The same with what decides the end of the data, as it is now: the Database, and what is torn down around
/// it. A later read takes no teardown back.
pub async fn before_the_end(
    observed: Observed,
    copies: &Copies,
    ctx: &Context,
) -> Result<Observed, kube::Error> {
    let now = around::now(&observed.volume, ctx).await?;
    let is_torn_down = observed.around.is_torn_down || now.is_torn_down;
    let owner = match controller_of(&observed.volume) {
        Some(owner) => {
            let databases = databases_beside(&observed.volume, ctx);
            let database = copies.databases.read(&databases, &owner.name, Reads::Live).await;
            if_served(database)?.filter(|it| it.metadata.uid.as_ref() == Some(&owner.uid))
        }
        None => None,
    };
    Ok(Observed { around: Around { is_torn_down, ..now }, owner, ..observed })
}

/// The same with the VolumeAttachments: that there is none the API server says.
pub async fn before_it_is_used(observed: Observed, ctx: &Context) -> Result<Observed, kube::Error> {
    let name = VolumeNames::of(&observed.volume).persistent_volume;
    Ok(Observed { attachments: attachments_of(&name, Reads::Live, ctx).await?, ..observed })
}

fn databases_beside(volume: &Volume, ctx: &Context) -> Api<Database> {
    Api::namespaced(ctx.client.clone(), &volume.namespace().unwrap_or_default())
}

/// This process' sends of the current attempt.
fn sent(volume: &Volume, ctx: &Context) -> Option<Sent> {
    let creation = volume.status.as_ref()?.creation.as_ref()?;
    ctx.sends.of(&creation.client_token)
}

/// What this process has requested of EC2 about the EBS volume.
fn issued(volume: &Volume, ctx: &Context) -> BTreeMap<Call, IssuedRequest> {
    let adopted = volume.spec.adopt.as_ref().map(|adopt| &adopt.volume_id);
    let id = adopted.or_else(|| volume.status.as_ref()?.volume_id.as_ref());
    let calls =
        [Call::ModifyVolume, Call::CreateSnapshot, Call::DeleteVolume, Call::CreateTags, Call::DeleteTags];
    calls.into_iter().filter_map(|call| Some((call, ctx.issued.of(call, &id?.0)?))).collect()
}

/// Reads one EBS volume by its id, unless the rate limit does not allow the call.
pub async fn by_id(volume: &Volume, id: &VolumeId, ctx: &Context) -> Result<ById, CloudError> {
    if ctx.try_take(Call::DescribeVolumes, volume, Priority::Existing).is_err() {
        return Ok(ById::NotRead);
    }
    let shown = ctx.cloud.describe_volumes(&VolumeQuery::Ids(vec![id.clone()])).await?;
    Ok(shown.into_iter().next().map_or(ById::NotShown, |shown| ById::Shown(Box::new(shown))))
}

fn is_to_grow(claim: &PersistentVolumeClaim, volume: &Volume) -> bool {
    let wanted = volume.spec.size.gib().filter(|_| volume.metadata.deletion_timestamp.is_none());
    expansion::requested(claim).zip(wanted).is_some_and(|(requested, wanted)| requested < wanted)
}

async fn storage_class_of(
    claim: &PersistentVolumeClaim,
    ctx: &Context,
) -> Result<Option<StorageClass>, kube::Error> {
    let Some(name) = expansion::class_of(claim) else { return Ok(None) };
    Api::<StorageClass>::all(ctx.client.clone()).get_opt(name).await
}

/// The Database that controls the Volume, if it is still there. That it is gone the API server says to a live
/// look.
async fn owner_of(
    volume: &Volume,
    copy: &Mirror<Database>,
    reads: Reads,
    ctx: &Context,
) -> Result<Option<Database>, kube::Error> {
    let Some(owner) = controller_of(volume) else { return Ok(None) };
    let database = if_served(copy.current(&databases_beside(volume, ctx), &owner.name, reads).await)?;
    Ok(database.filter(|database| database.metadata.uid.as_ref() == Some(&owner.uid)))
}

async fn attachments_of(
    persistent_volume: &str,
    reads: Reads,
    ctx: &Context,
) -> Result<Vec<String>, kube::Error> {
    let is_of = |attachment: &VolumeAttachment| {
        attachment.spec.source.persistent_volume_name.as_deref() == Some(persistent_volume)
    };
    ctx.attachments.left(&Api::all(ctx.client.clone()), is_of, reads).await
}

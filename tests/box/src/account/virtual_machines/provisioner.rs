//! The CSI provisioner: makes EBS volumes and PVs for PVCs whose first consumer is on a Node of this site,
//! over HTTP, and deletes them as the PV's reclaim policy says.
//!
//! It keeps the guarantees of the real external-provisioner: no volume before a Node is selected, one volume
//! for each PVC (its UID is in the token), a finalizer on each PV whose volume it will delete, and no
//! deletion while a `VolumeAttachment` names the PV. It does less: classes that bind at once, snapshots and
//! clones are left alone, and a zone without capacity is tried again, where the real one lets the scheduler
//! select another Node.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_ec2::types::{ResourceType, Tag, TagSpecification, VolumeState, VolumeType};
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{StorageClass, VolumeAttachment};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::error::Error;
use crate::account::context::Context;
use crate::account::{cloud, membership};
use crate::base::names::EBS_DRIVER;
use crate::base::quantity;
use crate::base::watching::Watching;

/// The finalizer of the external-provisioner, on PVs whose volume it will delete.
pub const FINALIZER: &str = "external-provisioner.volume.kubernetes.io/finalizer";

/// Which driver made the volume of a PV.
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

/// Which provisioner a PVC is for; the PV controller writes it once a Node is selected.
const PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";

/// The Node that the scheduler has selected for a PVC's first consumer.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The driver's topology.
const ZONE: &str = "topology.kubernetes.io/zone";

/// The file system of a class that names none, as the driver's chart has it.
const FILE_SYSTEM: &str = "ext4";

/// How long until a look without any change, and after a failure.
const RESYNC: Duration = Duration::from_secs(2);
/// How long EC2 is given to make a volume before this round ends; the next one goes on.
const USABLE_LIMIT: Duration = Duration::from_secs(30);

/// A PVC that is to have a volume.
struct Demand {
    claim: Arc<PersistentVolumeClaim>,
    class: StorageClass,
    zone: String,
    size: u64,
}

/// Runs until the site stops.
pub async fn run(context: Context) {
    let watching = Watching::new(context.tasks.clone(), context.stop.clone());
    // Classes, Nodes and VolumeAttachments are read when they are needed, which is seldom: every site pays
    // for what its control plane sends to all of them.
    let claims = watching.store(Api::<PersistentVolumeClaim>::all(context.client.clone()));
    let volumes = watching.store(Api::<PersistentVolume>::all(context.client.clone()));
    // The volumes that were deleted here: EC2 does not show any more that they were this site's.
    let mut deleted = HashSet::new();
    while !context.stop.is_cancelled() {
        for claim in claims.state().into_iter().filter(|claim| is_wanted(claim)) {
            if let Err(error) = provision(&context, &claim).await {
                tracing::info!(claim = claim.name_any(), %error, "a claim has no volume yet");
            }
        }
        for volume in volumes.state().into_iter().filter(|volume| is_followed(volume)) {
            if let Err(error) = follow(&context, &volume, &mut deleted).await {
                tracing::info!(name = volume.name_any(), %error, "a PersistentVolume is not followed yet");
            }
        }
        tokio::select! {
            () = watching.changed(RESYNC) => {}
            () = context.stop.cancelled() => {}
        }
    }
}

/// Whether a PVC waits for a volume, and a Node is selected for its first consumer.
fn is_wanted(claim: &PersistentVolumeClaim) -> bool {
    let is_empty = claim.spec.as_ref().is_some_and(|spec| {
        spec.volume_name.is_none() && spec.data_source.is_none() && spec.data_source_ref.is_none()
    });
    let is_for_driver = claim.annotations().get(PROVISIONER).is_some_and(|driver| driver == EBS_DRIVER);
    let is_going = claim.metadata.deletion_timestamp.is_some();
    is_empty && is_for_driver && !is_going && claim.annotations().contains_key(SELECTED_NODE)
}

/// What the claim asks for; none if its Node is another site's, or not known.
async fn demand(context: &Context, claim: &Arc<PersistentVolumeClaim>) -> Result<Option<Demand>, Error> {
    let Some(selected) = claim.annotations().get(SELECTED_NODE) else { return Ok(None) };
    let node = Api::<Node>::all(context.client.clone()).get_opt(selected).await?;
    let instance = node.as_ref().and_then(membership::instance_id);
    let Some(instance) = instance.and_then(|id| context.simulator.instance(id)) else { return Ok(None) };
    let asked = claim.spec.as_ref().and_then(|spec| {
        let size = spec.resources.as_ref()?.requests.as_ref()?.get("storage")?;
        Some((spec.storage_class_name.clone()?, quantity::gib(quantity::bytes(size)?)))
    });
    let Some((class, size)) = asked else { return Ok(None) };
    let class = Api::<StorageClass>::all(context.client.clone()).get(&class).await?;
    Ok(Some(Demand { claim: claim.clone(), class, zone: instance.zone, size }))
}

/// Makes the volume, waits until EC2 shows it available, then makes the PV that the PV controller binds. Done
/// again, it makes nothing twice.
async fn provision(context: &Context, claim: &Arc<PersistentVolumeClaim>) -> Result<(), Error> {
    let Some(demand) = demand(context, claim).await? else { return Ok(()) };
    let name = format!("pvc-{}", claim.uid().unwrap_or_default());
    let volumes = Api::<PersistentVolume>::all(context.client.clone());
    if volumes.get_opt(&name).await?.is_some() {
        return Ok(());
    }
    let parameters = demand.class.parameters.clone().unwrap_or_default();
    let id = create(context, &demand, &name, &parameters).await?;
    until_available(context, &id).await?;
    let record =
        serde_json::from_value(record(&demand, &name, &id, &parameters)).map_err(kube::Error::SerdeError)?;
    match volumes.create(&PostParams::default(), &record).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        other => Ok(other.map(drop)?),
    }
}

/// The volume's id. The real driver hashes the name for its token.
async fn create(
    context: &Context,
    demand: &Demand,
    name: &str,
    parameters: &BTreeMap<String, String>,
) -> Result<String, Error> {
    let kind = parameters.get("type").map_or("gp3", String::as_str);
    let claim = &demand.claim;
    let tags = [
        ("CSIVolumeName", name.to_owned()),
        ("ebs.csi.aws.com/cluster", "true".to_owned()),
        ("kubernetes.io/created-for/pv/name", name.to_owned()),
        ("kubernetes.io/created-for/pvc/name", claim.name_any()),
        ("kubernetes.io/created-for/pvc/namespace", claim.namespace().unwrap_or_default()),
    ];
    let tags = tags.map(|(key, value)| Tag::builder().key(key).value(value).build());
    let tags =
        TagSpecification::builder().resource_type(ResourceType::Volume).set_tags(Some(tags.into())).build();
    let mut request = context
        .cloud
        .create_volume()
        .client_token(name)
        .availability_zone(&demand.zone)
        .size(i32::try_from(demand.size).unwrap_or(i32::MAX))
        .volume_type(VolumeType::from(kind))
        .tag_specifications(tags);
    if parameters.get("encrypted").is_some_and(|value| value == "true") {
        request = request.encrypted(true).set_kms_key_id(parameters.get("kmsKeyId").cloned());
    }
    let doing = format!("create a volume of {} GiB in {}", demand.size, demand.zone);
    let made = request.send().await.map_err(cloud::failed(doing))?;
    made.volume_id.ok_or_else(|| Error::State("EC2 gave no volume id".to_owned()))
}

async fn until_available(context: &Context, id: &str) -> Result<(), Error> {
    let mut changes = context.simulator.changes();
    let started = tokio::time::Instant::now();
    loop {
        let state = cloud::volume(&context.cloud, id).await?.and_then(|volume| volume.state);
        if state == Some(VolumeState::Available) {
            return Ok(());
        }
        if started.elapsed() > USABLE_LIMIT {
            return Err(Error::State(format!("volume {id} is {state:?}")));
        }
        let _ = tokio::time::timeout(RESYNC, changes.changed()).await;
    }
}

/// The PV as the external-provisioner makes it of the driver's answer.
fn record(demand: &Demand, name: &str, id: &str, parameters: &BTreeMap<String, String>) -> Value {
    let (claim, class) = (&demand.claim, &demand.class);
    let spec = claim.spec.as_ref();
    let file_system = parameters.get("csi.storage.k8s.io/fstype").map_or(FILE_SYSTEM, String::as_str);
    json!({
        "metadata": {
            "name": name,
            "annotations": {
                PROVISIONED_BY: EBS_DRIVER,
                "volume.kubernetes.io/provisioner-deletion-secret-name": "",
                "volume.kubernetes.io/provisioner-deletion-secret-namespace": "",
            },
            "finalizers": [FINALIZER],
        },
        "spec": {
            "accessModes": spec.and_then(|spec| spec.access_modes.clone()),
            "capacity": {"storage": format!("{}Gi", demand.size)},
            "claimRef": {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": claim.name_any(),
                "namespace": claim.namespace(), "uid": claim.uid(),
                "resourceVersion": claim.resource_version(),
            },
            "csi": {"driver": EBS_DRIVER, "volumeHandle": id, "fsType": file_system},
            "mountOptions": class.mount_options,
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{
                "matchExpressions": [{"key": ZONE, "operator": "In", "values": [demand.zone]}],
            }]}},
            "persistentVolumeReclaimPolicy": class.reclaim_policy,
            "storageClassName": class.name_any(),
            "volumeMode": spec.and_then(|spec| spec.volume_mode.clone()),
        },
    })
}

fn has_finalizer(volume: &PersistentVolume) -> bool {
    volume.finalizers().iter().any(|finalizer| finalizer == FINALIZER)
}

/// Whether the reclaim policy is to delete the volume.
fn is_deleted_with_claim(volume: &PersistentVolume) -> bool {
    let policy = volume.spec.as_ref().and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    policy == Some("Delete")
}

fn is_followed(volume: &PersistentVolume) -> bool {
    let is_of_driver =
        volume.spec.as_ref().and_then(|spec| spec.csi.as_ref()).is_some_and(|csi| csi.driver == EBS_DRIVER);
    is_of_driver && (is_deleted_with_claim(volume) || has_finalizer(volume))
}

/// Keeps the finalizer as the reclaim policy wants it, and ends the volume of a released PV.
async fn follow(
    context: &Context,
    volume: &PersistentVolume,
    deleted: &mut HashSet<String>,
) -> Result<(), Error> {
    let Some(csi) = volume.spec.as_ref().and_then(|spec| spec.csi.as_ref()) else { return Ok(()) };
    let id = &csi.volume_handle;
    if !deleted.contains(id) && context.simulator.volume(id).is_none() {
        return Ok(());
    }
    let is_going = volume.metadata.deletion_timestamp.is_some();
    let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    if !is_deleted_with_claim(volume) {
        return set_finalizer(context, volume, false).await;
    }
    if phase == Some("Bound") && !is_going && !has_finalizer(volume) {
        return set_finalizer(context, volume, true).await;
    }
    let is_over = is_going && !has_finalizer(volume);
    if phase != Some("Released") || is_over || is_named(context, &volume.name_any()).await? {
        return Ok(());
    }
    if !deleted.contains(id) {
        let answer = context.cloud.delete_volume().volume_id(id).send().await;
        match answer.map_err(cloud::failed(format!("delete volume {id}"))) {
            Err(error) if error.code != "InvalidVolume.NotFound" => return Err(error.into()),
            Ok(_) | Err(_) => deleted.insert(id.clone()),
        };
    }
    if is_going {
        return set_finalizer(context, volume, false).await;
    }
    // The finalizer goes at the next look, which has the version of after the deletion.
    let volumes = Api::<PersistentVolume>::all(context.client.clone());
    volumes.delete(&volume.name_any(), &DeleteParams::default()).await?;
    Ok(())
}

/// Whether a `VolumeAttachment` names this PV.
async fn is_named(context: &Context, name: &str) -> Result<bool, Error> {
    let all = Api::<VolumeAttachment>::all(context.client.clone()).list(&ListParams::default()).await?;
    let names = |attachment: &VolumeAttachment| {
        attachment.spec.source.persistent_volume_name.as_deref() == Some(name)
    };
    Ok(all.items.iter().any(names))
}

async fn set_finalizer(context: &Context, volume: &PersistentVolume, wanted: bool) -> Result<(), Error> {
    let others = volume.finalizers().iter().map(String::as_str).filter(|finalizer| *finalizer != FINALIZER);
    let finalizers: Vec<&str> = others.chain(wanted.then_some(FINALIZER)).collect();
    let patch = json!({"metadata": {"resourceVersion": volume.resource_version(), "finalizers": finalizers}});
    let volumes = Api::<PersistentVolume>::all(context.client.clone());
    volumes.patch(&volume.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

//! The writes of the Volume controller to a PersistentVolume and a claim.

use std::fmt::Debug;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::api::keys::{ADOPTED_BY_ANNOTATION, RETAINED_LABEL};
use crate::cluster::is_already_exists;
use crate::cluster::status::{PatchError, difference};
use crate::controller::volume::adopted::Change;

/// Creates an object whose name is ours alone; one that is there already is looked at by the next pass.
pub(super) async fn create_once<K>(api: &Api<K>, object: &K) -> Result<(), kube::Error>
where
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    match api.create(&PostParams::default(), object).await {
        Err(error) if !is_already_exists(&error) => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Lets a PersistentVolume whose claim is gone be claimed again.
pub(super) async fn reopen(
    records: &Api<PersistentVolume>,
    record: &PersistentVolume,
) -> Result<(), kube::Error> {
    let patch = json!({
        "metadata": {"uid": record.metadata.uid, "resourceVersion": record.metadata.resource_version},
        "spec": {"claimRef": {"uid": null, "resourceVersion": null}},
    });
    merge(records, &record.name_any(), &patch).await
}

/// Requests the size of this claim.
pub(super) async fn grow(
    claims: &Api<PersistentVolumeClaim>,
    claim: &PersistentVolumeClaim,
) -> Result<(), kube::Error> {
    let patch = json!({
        "metadata": {"uid": claim.metadata.uid, "resourceVersion": claim.metadata.resource_version},
        "spec": {"resources": claim.spec.as_ref().and_then(|spec| spec.resources.as_ref())},
    });
    merge(claims, &claim.name_any(), &patch).await
}

/// Releases the record of a retained EBS volume that was never adopted.
pub(super) async fn release(
    records: &Api<PersistentVolume>,
    record: &PersistentVolume,
) -> Result<(), kube::Error> {
    let patch = json!({"metadata": {
        "uid": record.metadata.uid,
        "resourceVersion": record.metadata.resource_version,
        "annotations": {ADOPTED_BY_ANNOTATION: null},
    }});
    merge(records, &record.name_any(), &patch).await
}

/// Makes a PersistentVolume the record of a retained EBS volume.
pub(super) async fn mark_retained(
    records: &Api<PersistentVolume>,
    record: &PersistentVolume,
) -> Result<(), kube::Error> {
    let patch = json!({
        "metadata": {"uid": record.metadata.uid, "labels": {RETAINED_LABEL: "true"},
        "annotations": record.annotations()},
        "spec": {"claimRef": record.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref())},
    });
    merge(records, &record.name_any(), &patch).await
}

/// Writes what differs, with the resourceVersion of what was read.
pub(super) async fn change<K>(api: &Api<K>, change: &Change<K>) -> Result<(), PatchError>
where
    K: Clone + Debug + Serialize + DeserializeOwned + Resource<DynamicType = ()>,
{
    let (from, to) = (serde_json::to_value(&change.from)?, serde_json::to_value(&change.to)?);
    let Some(mut patch) = difference(&from, &to) else { return Ok(()) };
    let meta = change.from.meta();
    patch["metadata"]["uid"] = json!(meta.uid);
    patch["metadata"]["resourceVersion"] = json!(meta.resource_version);
    Ok(merge(api, &change.from.name_any(), &patch).await?)
}

async fn merge<K>(api: &Api<K>, name: &str, patch: &Value) -> Result<(), kube::Error>
where
    K: Clone + Debug + DeserializeOwned,
{
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
}

//! Reads what EC2's tags say of retained volumes, and writes the retention records that are asked for.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, PersistentVolume};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde::Serialize;
use serde_json::json;

use super::error::RetainedError;
use super::unrecorded::{Choices, Known, Unrecorded, unrecorded};
use crate::api::keys::{DATABASE_TAG, PURPOSE_FINAL, PURPOSE_TAG};
use crate::api::{SnapshotId, Volume, VolumeId};
use crate::cloud::{Cloud, Snapshot, SnapshotState, VolumeQuery, identity};
use crate::cluster::if_served;
use crate::controller::retention;

/// What EC2's tags say.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ByTags {
    /// The retained volumes that no record names.
    pub volumes: Vec<Unrecorded>,
    /// The final snapshots.
    pub snapshots: Vec<FinalSnapshot>,
}

/// A final snapshot, of the policy Snapshot.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FinalSnapshot {
    /// The namespace that its tag names.
    pub namespace: String,
    /// The Database that its tag names.
    pub database: String,
    /// The snapshot.
    #[serde(rename = "snapshotID")]
    pub snapshot_id: SnapshotId,
    /// The EBS volume that it was taken of.
    #[serde(rename = "volumeID")]
    pub volume_id: VolumeId,
    /// When.
    pub started_at: Option<String>,
    /// How far it is.
    pub state: &'static str,
}

/// Lists them: of one namespace, or of all.
pub async fn find(
    client: &Client,
    cloud: &dyn Cloud,
    cluster_id: Option<&str>,
    namespace: Option<&str>,
) -> Result<ByTags, RetainedError> {
    let namespaces = Api::<Namespace>::all(client.clone());
    let cluster_id = match cluster_id {
        Some(id) => id.to_owned(),
        None => namespaces.get("kube-system").await?.uid().unwrap_or_default(),
    };
    let tags = identity::cluster_tags(&cluster_id);
    // EC2 first: a Volume is there before its EBS volume, so that what is being created is not listed; and
    // the PersistentVolumes last, since a Volume that ends meanwhile leaves its record.
    let mut volumes = cloud.describe_volumes(&VolumeQuery::Tags(tags.clone())).await?;
    let is_asked = |of: Option<&str>| namespace.is_none_or(|namespace| of == Some(namespace));
    volumes.retain(|volume| is_asked(identity::namespace(&volume.tags)));
    let of_final = tags.into_iter().chain([(PURPOSE_TAG.to_owned(), PURPOSE_FINAL.to_owned())]).collect();
    let snapshots = cloud.describe_snapshots(&of_final).await?;
    let snapshots = snapshots.iter().map(shown).filter(|it| is_asked(Some(it.namespace.as_str()))).collect();
    let of_volumes = match namespace {
        Some(namespace) => Api::<Volume>::namespaced(client.clone(), namespace),
        None => Api::<Volume>::all(client.clone()),
    };
    let of_cluster = if_served(of_volumes.list(&ListParams::default()).await.map(Some))?;
    let claimed: BTreeSet<String> =
        of_cluster.iter().flat_map(|list| &list.items).flat_map(retention::claims).collect();
    let mut known = Known { volumes, claimed, ..Known::default() };
    known.records = Api::<PersistentVolume>::all(client.clone()).list(&ListParams::default()).await?.items;
    known.namespaces = uids(&namespaces, &known).await?;
    Ok(ByTags { volumes: unrecorded(&known), snapshots })
}

/// The UIDs of the namespaces that the volumes' tags name.
async fn uids(namespaces: &Api<Namespace>, known: &Known) -> Result<BTreeMap<String, String>, RetainedError> {
    let named: BTreeSet<&str> =
        known.volumes.iter().filter_map(|volume| identity::namespace(&volume.tags)).collect();
    let mut uids = BTreeMap::new();
    for name in named.into_iter().filter(|name| !name.is_empty()) {
        let uid = namespaces.get_opt(name).await?.and_then(|namespace| namespace.uid());
        uids.extend(uid.map(|uid| (name.to_owned(), uid)));
    }
    Ok(uids)
}

fn shown(snapshot: &Snapshot) -> FinalSnapshot {
    let tag = snapshot.tags.get(DATABASE_TAG).and_then(|tag| tag.split_once('/'));
    let (namespace, database) = tag.unwrap_or_default();
    FinalSnapshot {
        namespace: namespace.to_owned(),
        database: database.to_owned(),
        snapshot_id: snapshot.id.clone(),
        volume_id: snapshot.volume.clone(),
        started_at: snapshot.started_at.map(|at| at.to_string()),
        state: match snapshot.state {
            SnapshotState::Pending => "pending",
            SnapshotState::Completed => "completed",
            SnapshotState::Error => "error",
        },
    }
}

/// Writes the records of these EBS volumes: of all of them, or, where one of them cannot have one, of none.
/// The names of the PersistentVolumes.
pub async fn write(
    client: &Client,
    found: &ByTags,
    ids: &[VolumeId],
    choices: &Choices,
    now: Timestamp,
) -> Result<Vec<String>, RetainedError> {
    let mut wanted = Vec::new();
    for id in ids {
        let one = found.volumes.iter().find(|one| one.volume_id == *id);
        let one = one.ok_or_else(|| RetainedError::NotListed(id.clone()))?;
        if let Some(why) = one.hindrance.clone() {
            return Err(RetainedError::Hindered { why });
        }
        wanted.push(one);
    }
    let records = Api::<PersistentVolume>::all(client.clone());
    let mut names = Vec::new();
    for one in wanted {
        let record = one.record(choices, now);
        if one.persistent_volume.is_some() {
            // With the policy Delete, Kubernetes would delete what is recorded.
            let patch = json!({
                "metadata": {
                    "uid": record.metadata.uid,
                    "resourceVersion": record.metadata.resource_version,
                    "labels": record.labels(),
                    "annotations": record.annotations(),
                },
                "spec": {"persistentVolumeReclaimPolicy": "Retain"},
            });
            records.patch(&record.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
        } else {
            records.create(&PostParams::default(), &record).await?;
        }
        names.push(record.name_any());
    }
    Ok(names)
}

//! What a `Database` begins with: the data of a backup.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::backup::Consistency;
use super::ids::SnapshotId;

/// The backup whose data a database begins with: one of the two.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.backupName) != has(self.snapshotID)")
    .message("spec.restore needs exactly one of backupName and snapshotID"))]
pub struct Restore {
    /// A complete Backup of this namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub backup_name: Option<String>,

    /// The EBS snapshot of a Backup whose object is gone. It must carry the tags of a Backup of this
    /// namespace: `freehold backups --from-ec2` lists those.
    #[serde(rename = "snapshotID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub snapshot_id: Option<SnapshotId>,
}

/// What a database was restored from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Restored {
    /// The EBS snapshot.
    #[serde(rename = "snapshotID")]
    pub snapshot_id: SnapshotId,

    /// The moment that the data is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_at: Option<Time>,

    /// What the snapshot is a snapshot of.
    pub consistency: Consistency,

    /// The version of the engine that wrote the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_version: Option<String>,
}

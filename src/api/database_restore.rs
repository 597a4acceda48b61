//! What a `Database` begins with: the data of a backup.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::backup::Consistency;
use super::ids::SnapshotId;
use super::size::Size;

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

    /// How fast EC2 reads the volume from the snapshot, in MiB/s (EBS Provisioned Rate for Volume
    /// Initialization). The database serves meanwhile, and is slow where it needs what EC2 has not read yet.
    /// AWS charges for it by the GiB, and allows an account 5,000 MiB/s in a Region at a time unless that
    /// quota is raised. Default: EC2's own rate, which costs nothing, and of which AWS promises nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 300))]
    pub initialization_rate: Option<i32>,
}

/// How far EC2 has read a volume from the snapshot that it was created from. Not there of a volume that was
/// created empty, or of which EC2 does not say it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Initialization {
    /// How much of it is read, in per cent, in steps of ten: 100 when it has ended.
    pub progress_percent: i32,

    /// When it ends, as EC2 estimated it at this step: only at a rate that the spec requests
    /// (spec.restore.initializationRate), and until it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_end: Option<Time>,

    /// When it was seen to have ended: from then on the volume is as fast as its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
}

/// What a database was restored from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Restored {
    /// The EBS snapshot.
    #[serde(rename = "snapshotID")]
    pub snapshot_id: SnapshotId,

    /// The size of the volume that was backed up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,

    /// The moment that the data is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_at: Option<Time>,

    /// What the snapshot is a snapshot of.
    pub consistency: Consistency,

    /// The version of the engine that wrote the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_version: Option<String>,
}

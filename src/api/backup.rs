//! `Backup`: one EBS snapshot of a database's volume, and what is in it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumIter, EnumString, IntoStaticStr};

use super::condition::ConditionType;
use super::creation::Attempt;
use super::database::EngineType;
use super::ids::{SnapshotId, VolumeId};
use super::size::Size;
use super::verification::BackupVerification;

/// What is backed up, and what becomes of the snapshot.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "freehold.dev",
    version = "v1alpha1",
    kind = "Backup",
    plural = "backups",
    singular = "backup",
    shortname = "fbackup",
    category = "freehold",
    namespaced,
    status = "BackupStatus",
    derive = "PartialEq",
    doc = "One backup of a Database of the same namespace: an EBS snapshot of its volume. Wait for the \
        condition Complete or Failed. It outlives its Database.",
    printcolumn(
        name = "Complete", type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Complete\")].status",
        description = "Whether the backup can be restored."
    ),
    printcolumn(
        name = "Reason", type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Complete\")].reason",
        description = "Why it can, or what is awaited."
    ),
    printcolumn(
        name = "Verified", type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Verified\")].status",
        description = "Whether its newest verification passed, if there was one."
    ),
    printcolumn(
        name = "Database", type_ = "string",
        json_path = ".spec.databaseName",
        description = "The Database."
    ),
    printcolumn(
        name = "Engine", type_ = "string",
        json_path = ".status.source.engine",
        description = "The database engine.",
        priority = 1
    ),
    printcolumn(
        name = "Version", type_ = "string",
        json_path = ".status.source.engineVersion",
        description = "The engine's version.",
        priority = 1
    ),
    printcolumn(
        name = "Consistency", type_ = "string",
        json_path = ".status.consistency",
        description = "What the snapshot is a snapshot of."
    ),
    printcolumn(
        name = "Size", type_ = "string",
        json_path = ".status.size",
        description = "The size of the volume."
    ),
    printcolumn(
        name = "Snapshot-ID", type_ = "string",
        json_path = ".status.snapshotID",
        description = "The EBS snapshot."
    ),
    printcolumn(
        name = "Started", type_ = "date",
        json_path = ".status.startedAt",
        description = "The moment that the data is of."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.size() <= 200")
        .message("metadata.name must have at most 200 characters: the snapshot is named after it")
)]
#[serde(rename_all = "camelCase")]
pub struct BackupSpec {
    /// The Database, in the namespace of this Backup. It cannot change.
    #[schemars(length(min = 1, max = 40))]
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("spec.databaseName cannot change: create another Backup"))]
    pub database_name: String,

    /// What becomes of the snapshot when this Backup is deleted. When the namespace or the resource
    /// definitions are deleted instead, it is retained. Default: Retain.
    #[serde(default)]
    pub deletion_policy: SnapshotPolicy,
}

/// What becomes of a Backup's snapshot when the Backup is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SnapshotPolicy {
    /// The snapshot stays in EC2. `freehold orphans` lists it.
    #[default]
    Retain,
    /// The snapshot is deleted.
    Delete,
}

/// What a snapshot is a snapshot of.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    JsonSchema,
    EnumIter,
    EnumString,
    IntoStaticStr
)]
pub enum Consistency {
    /// It began while the engine held a checkpoint: a restore has every row that the engine had acknowledged
    /// before the checkpoint.
    EngineCheckpoint,
    /// It is what a power cut at that moment would have left: the engine recovers from it as it recovers from
    /// a power cut. If the database was paused, nothing needs recovery.
    CrashConsistent,
}

impl Consistency {
    /// The name in a status and a tag.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Backup {
    /// What its status says; nothing before its controller's first pass.
    pub fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }

    /// Whether it has come to its end, good or bad, and owes the engine no release.
    pub fn is_over(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.is_final() && status.checkpoint.is_none())
    }

    /// Whether it is complete, and EC2 was not seen without its snapshot.
    pub fn can_be_restored(&self) -> bool {
        let is_missing = self
            .conditions()
            .iter()
            .any(|it| it.type_ == ConditionType::SnapshotMissing.as_str() && it.status == "True");
        self.status.as_ref().is_some_and(|status| status.completed_at.is_some()) && !is_missing
    }

    /// Whether anything was requested of the engine or of EC2 for it.
    pub fn has_begun(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.checkpoint.is_some() || status.creation.is_some())
    }
}

/// What is known of a backup.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Complete, Failed and Stalled; SnapshotMissing while it is so; Verified once it was verified.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,

    /// What is backed up, as it was when the snapshot was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<BackupSource>,

    /// The engine's checkpoint, of which the release is owed: written before the checkpoint is requested, and
    /// removed once the engine shows that it holds this checkpoint no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<OwedCheckpoint>,

    /// When a checkpoint was released before a snapshot had started: the next one follows after a pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released_in_vain_at: Option<Time>,

    /// The snapshot that was decided, whole, written before it is requested of EC2. CreateSnapshot has no
    /// token: the snapshot is found again by its tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creation: Option<SnapshotCreation>,

    /// The snapshot, once an answer or a look-up has named it.
    #[serde(rename = "snapshotID", default, skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<SnapshotId>,

    /// What the snapshot is a snapshot of, once that is certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consistency: Option<Consistency>,

    /// The size of the volume: no smaller one can be created from the snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,

    /// When EC2 started the snapshot: the moment that the data is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,

    /// When the snapshot was seen to be complete. From then on this is final.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Time>,

    /// Why there is no backup. This is final, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<BackupFailure>,

    /// When EC2 accepted the deletion of the snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Time>,

    /// What the newest verification of this Backup came to (`spec.verify` of its BackupSchedule).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<BackupVerification>,
}

impl BackupStatus {
    /// Whether the backup has come to its end, good or bad.
    pub fn is_final(&self) -> bool {
        self.completed_at.is_some() || self.failure.is_some()
    }
}

/// What is backed up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupSource {
    /// The UID of the Database.
    #[serde(rename = "databaseUID")]
    pub database_uid: String,

    /// The Volume.
    pub volume_name: String,

    /// The EBS volume.
    #[serde(rename = "volumeID")]
    pub volume_id: VolumeId,

    /// The file system.
    pub file_system: String,

    /// The engine.
    pub engine: EngineType,

    /// Its version: of QuestDB the newest one that was started on the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_version: Option<String>,

    /// The image: of the pod that ran, or of a custom engine's spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
}

/// A checkpoint that the engine may hold for this Backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwedCheckpoint {
    /// When this was written, before the checkpoint was requested.
    pub since: Time,

    /// The pod of the engine: no other engine holds the checkpoint.
    #[serde(rename = "podUID")]
    pub pod_uid: String,

    /// The engine's own time before the checkpoint was requested: what began earlier is not this checkpoint.
    pub engine_time: MicroTime,

    /// When the checkpoint began, by the engine's own time, once the engine has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_at: Option<MicroTime>,

    /// How the engine is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<CheckpointEngine>,
}

/// How the engine is reached that may hold a checkpoint: the release is owed also once its Database is gone,
/// as long as its pod runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointEngine {
    /// The pod.
    pub pod_name: String,

    /// The engine's container, if the Database names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_name: Option<String>,

    /// The Secret with the administrator's credentials.
    pub secret_name: String,

    /// The UID of the Database.
    #[serde(rename = "databaseUID")]
    pub database_uid: String,

    /// The port of the PostgreSQL wire protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,

    /// The database to connect to.
    pub database_name: String,
}

/// One decided snapshot: everything that CreateSnapshot is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotCreation {
    /// The attempt.
    #[serde(flatten)]
    pub attempt: Attempt,

    /// The EBS volume.
    #[serde(rename = "volumeID")]
    pub volume_id: VolumeId,

    /// True if the engine holds a checkpoint for it.
    #[serde(default)]
    pub with_checkpoint: bool,

    /// Every tag of the snapshot.
    pub tags: BTreeMap<String, String>,
}

/// Why a backup failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupFailure {
    /// When that was seen.
    pub at: Time,

    /// What it was.
    pub what: BackupFault,
}

/// What can make a backup fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter)]
pub enum BackupFault {
    /// EC2 shows the snapshot in the state error.
    SnapshotFailed,
    /// The engine did not hold the checkpoint any more when the snapshot had started: it was restarted, the
    /// checkpoint was released outside Freehold, or it was held for as long as it may be. The snapshot is not
    /// used.
    CheckpointLost,
    /// The snapshot was deleted before it was complete.
    SnapshotGone,
}

//! `Volume`: one EBS volume, its PersistentVolume and its claim. Written by the Database controller only.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::creation::Attempt;
use super::database::{DeletionPolicy, FileSystem, Initialization};
use super::ids::{ClientToken, SnapshotId, VolumeId};
use super::size::Size;

/// What the volume of a database must be.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "freehold.dev",
    version = "v1alpha1",
    kind = "Volume",
    plural = "volumes",
    singular = "volume",
    shortname = "fvol",
    category = "freehold",
    namespaced,
    status = "VolumeStatus",
    derive = "PartialEq",
    doc = "One EBS volume, its PersistentVolume and its claim. Created and deleted by the Database \
        controller; do not write it by hand.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether the volume is as specified and bound."
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "Why it is, or what is awaited."
    ),
    printcolumn(name = "Size", type_ = "string", json_path = ".spec.size", description = "The wanted size."),
    printcolumn(
        name = "Type",
        type_ = "string",
        json_path = ".spec.type",
        description = "The wanted volume type."
    ),
    printcolumn(name = "Zone", type_ = "string", json_path = ".spec.zone", description = "The zone."),
    printcolumn(
        name = "Volume-ID",
        type_ = "string",
        json_path = ".status.volumeID",
        description = "The EBS volume."
    ),
    printcolumn(
        name = "Policy",
        type_ = "string",
        json_path = ".spec.deletionPolicy",
        description = "What happens to it when the Database is deleted."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.zone == oldSelf.zone")
    .message("spec.zone cannot change: an EBS volume cannot leave its zone"))]
#[x_kube(validation = Rule::new("quantity(self.size).compareTo(quantity(oldSelf.size)) >= 0")
    .message("spec.size cannot shrink: EBS volumes only grow"))]
#[x_kube(validation = Rule::new("has(self.snapshotID) == has(oldSelf.snapshotID) && (!has(self.snapshotID) \
    || self.snapshotID == oldSelf.snapshotID)")
    .message("spec.snapshotID cannot change: a volume is filled once"))]
#[x_kube(validation = Rule::new("has(self.initializationRate) == has(oldSelf.initializationRate) && \
    (!has(self.initializationRate) || self.initializationRate == oldSelf.initializationRate)")
    .message("spec.initializationRate cannot change: a volume is filled once"))]
#[x_kube(validation = Rule::new("!has(self.initializationRate) || has(self.snapshotID)")
    .message("spec.initializationRate needs spec.snapshotID: an empty volume has nothing to read"))]
#[x_kube(validation = Rule::new("self.fileSystem == oldSelf.fileSystem")
    .message("spec.fileSystem cannot change: the volume is formatted once"))]
#[x_kube(validation = Rule::new("has(self.adoptRetained) == has(oldSelf.adoptRetained) && \
    (!has(self.adoptRetained) || self.adoptRetained == oldSelf.adoptRetained)")
    .message("spec.adoptRetained cannot change: which EBS volume this is is decided once"))]
#[x_kube(validation = Rule::new("has(self.adopt) == has(oldSelf.adopt) && (!has(self.adopt) || self.adopt == \
    oldSelf.adopt)")
    .message("spec.adopt cannot change: which EBS volume this is is decided once"))]
pub struct VolumeSpec {
    /// The NodeClass that names the KMS key, the StorageClass and the tags.
    #[schemars(length(min = 1, max = 63))]
    pub node_class_name: String,

    /// The size in whole GiB or TiB.
    #[x_kube(validation = Rule::new("self.matches('^[1-9][0-9]*(Gi|Ti)$')")
        .message("spec.size must be a whole number of GiB or TiB, for example 100Gi or 2Ti"))]
    pub size: Size,

    /// The EBS volume type.
    #[serde(rename = "type")]
    #[schemars(length(min = 2, max = 16))]
    pub volume_type: String,

    /// Provisioned IOPS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub iops: Option<i32>,

    /// Provisioned throughput in MiB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub throughput: Option<i32>,

    /// The file system.
    pub file_system: FileSystem,

    /// The zone.
    #[schemars(length(min = 1, max = 32))]
    pub zone: String,

    /// The snapshot that the volume is created from.
    #[serde(rename = "snapshotID", default, skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<SnapshotId>,

    /// How fast EC2 reads the volume from the snapshot, in MiB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 300))]
    pub initialization_rate: Option<i32>,

    /// The PersistentVolume that records the retained EBS volume that this one adopts, instead of creating
    /// one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub adopt_retained: Option<String>,

    /// The EBS volume of a database that ran before it was adopted, with its PersistentVolume and its claim.
    /// All three are used as they are; if the EBS volume ends, no other one is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt: Option<AdoptedVolume>,

    /// True releases the volume when this object is deleted, whatever the deletionPolicy says: the EBS
    /// volume, the PersistentVolume and the claim stay, without what Freehold has put on them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub release: bool,

    /// True once the Database has decided what becomes of the EBS volume. Until then this object, if it is
    /// deleted, only waits, as long as its Database exists.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deletion_decided: bool,

    /// True once another Volume is to take the place of this one (spec.restoreInPlace of the Database): the
    /// EBS volume is retained when this object is deleted, whatever the deletionPolicy says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaced: bool,

    /// The generation of the Database's spec.restoreInPlace that the data is of, or that was in its spec when
    /// this object was created: no restore of this generation, or of a lower one, replaces the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub restore_generation: Option<i64>,

    /// What becomes of the EBS volume when this object is deleted.
    pub deletion_policy: DeletionPolicy,
}

/// An EBS volume that a database used before it was adopted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdoptedVolume {
    /// The EBS volume.
    #[serde(rename = "volumeID")]
    pub volume_id: VolumeId,

    /// The PersistentVolume that names it.
    #[schemars(length(min = 1, max = 253))]
    pub persistent_volume_name: String,

    /// The claim that the PersistentVolume is bound to, in the namespace of this object.
    #[schemars(length(min = 1, max = 253))]
    pub claim_name: String,
}

impl Volume {
    /// What its status says; nothing before its controller's first pass.
    pub fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }
}

/// What is known of a volume.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Created, Bound, Modified, Ready and Stalled.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,

    /// The creation that was decided, whole, written before it is sent to EC2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creation: Option<VolumeCreation>,

    /// The EBS volume, once an answer or a look-up has named it.
    #[serde(rename = "volumeID", default, skip_serializing_if = "Option::is_none")]
    pub volume_id: Option<VolumeId>,

    /// The size that EC2 shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,

    /// How far EC2 has read it from the snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<Initialization>,

    /// True once a PersistentVolume was created for the EBS volume: from then on it may hold data, and it is
    /// never replaced by an empty one.
    #[serde(default)]
    pub ever_held: bool,

    /// The last modifications that were requested of EC2 and that EC2 did not refuse (at most 10): it allows
    /// four in a rolling day.
    #[serde(default)]
    #[schemars(length(max = 10))]
    pub modifications: Vec<ModificationRecord>,

    /// Since when a change of size, type, IOPS or throughput is due that EC2 does not show yet: edits within
    /// the coalescing window become one modification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_due_since: Option<Time>,

    /// EC2's refusal of the modification that this spec requests, as long as only another spec helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modification_refused: Option<ModificationRefusal>,

    /// Since when the EBS volume counts as lost: it held data and is proven gone, or EC2 shows it in the
    /// state error. Absent once EC2 shows it sound again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_since: Option<Time>,

    /// The PersistentVolume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent_volume_name: Option<String>,

    /// The final snapshot, under the policy Snapshot: recorded here before it is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_snapshot: Option<FinalSnapshot>,

    /// When EC2 accepted the deletion of the EBS volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Time>,
}

/// One decided creation of a volume: everything that CreateVolume is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeCreation {
    /// The attempt.
    #[serde(flatten)]
    pub attempt: Attempt,

    /// The idempotency token of this attempt.
    pub client_token: ClientToken,

    /// The zone.
    pub zone: String,

    /// GiB.
    pub size: i32,

    /// The EBS volume type.
    #[serde(rename = "type")]
    pub volume_type: String,

    /// Provisioned IOPS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<i32>,

    /// Provisioned throughput in MiB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<i32>,

    /// The snapshot that the volume is created from.
    #[serde(rename = "snapshotID", default, skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<SnapshotId>,

    /// How fast EC2 reads the volume from the snapshot, in MiB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization_rate: Option<i32>,

    /// The KMS key.
    #[serde(rename = "kmsKeyID", default, skip_serializing_if = "Option::is_none")]
    pub kms_key_id: Option<String>,

    /// Every tag of the volume.
    pub tags: BTreeMap<String, String>,
}

/// One ModifyVolume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModificationRecord {
    /// When it was requested.
    pub at: Time,

    /// GiB.
    pub size: i32,

    /// The EBS volume type.
    #[serde(rename = "type")]
    pub volume_type: String,

    /// IOPS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<i32>,

    /// MiB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<i32>,
}

/// EC2's refusal of a modification as invalid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModificationRefusal {
    /// The generation of the spec whose modification was refused.
    pub generation: i64,

    /// EC2's answer.
    pub message: String,
}

/// The final snapshot of a volume. CreateSnapshot has no token: the snapshot is found again by its tags.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FinalSnapshot {
    /// The attempt.
    #[serde(flatten)]
    pub attempt: Attempt,

    /// The snapshot, once an answer or a look-up has named it.
    #[serde(rename = "snapshotID", default, skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<SnapshotId>,
}

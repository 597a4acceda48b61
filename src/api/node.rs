//! `Node`: one dedicated EC2 instance and its core `v1/Node`. Written by the Database controller only.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::creation::Attempt;
use super::ids::{ClientToken, InstanceId};
use super::node_class::{AdditionalVolume, RootVolume};

/// What the machine of a database must be.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "freehold.dev",
    version = "v1alpha1",
    kind = "Node",
    plural = "nodes",
    singular = "node",
    shortname = "fnode",
    category = "freehold",
    namespaced,
    status = "NodeStatus",
    derive = "PartialEq",
    doc = "One dedicated EC2 instance and its Kubernetes node. Created and deleted by the Database \
        controller; do not write it by hand.",
    printcolumn(
        name = "Ready", type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether the machine can run the database."
    ),
    printcolumn(
        name = "Reason", type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "Why it can, or what is awaited."
    ),
    printcolumn(
        name = "Type", type_ = "string",
        json_path = ".status.instanceType",
        description = "The instance type."
    ),
    printcolumn(name = "Zone", type_ = "string", json_path = ".status.zone", description = "The zone."),
    printcolumn(
        name = "Instance", type_ = "string",
        json_path = ".status.instanceID",
        description = "The EC2 instance."
    ),
    printcolumn(name = "Kube-Node", type_ = "string", json_path = ".status.coreNodeName",
    description = "The Kubernetes node.", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("!has(oldSelf.spec.zone) || (has(self.spec.zone) && self.spec.zone == \
        oldSelf.spec.zone)")
        .message("spec.zone cannot change once it is set: it is the zone of the volume"),
    validation = Rule::new("has(self.spec.instanceID) == has(oldSelf.spec.instanceID) && \
        (!has(self.spec.instanceID) || self.spec.instanceID == oldSelf.spec.instanceID)")
        .message("spec.instanceID cannot change: which machine this is is decided once"),
)]
#[serde(rename_all = "camelCase")]
pub struct NodeSpec {
    /// The NodeClass that says how the machine is created.
    #[schemars(length(min = 1, max = 63))]
    pub node_class_name: String,

    /// Instance types in order of preference.
    #[schemars(length(min = 1, max = 20), inner(length(max = 32)))]
    pub instance_types: Vec<String>,

    /// The zones that the machine may be in; empty means every zone of the class.
    #[serde(default)]
    #[schemars(length(max = 10), inner(length(max = 32)))]
    pub zones: Vec<String>,

    /// The zone that the machine must be in: set once the database has a volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    pub zone: Option<String>,

    /// The EC2 instance of a database that ran before it was adopted. It is used as it is; if it ends, this
    /// Node launches no other one.
    #[serde(rename = "instanceID", default, skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<InstanceId>,

    /// True releases the instance when this Node is deleted: it goes on running, without what Freehold has
    /// put on it. Otherwise it is terminated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub release: bool,

    /// How many machines of the database were replaced before this one, each within an hour of its launch
    /// (60 times `--relaunch-backoff`), for a cause outside Freehold, such as a loss. The more, the longer
    /// the replacement of this one pauses if it ends as soon.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub replaced_before: i32,
}

impl Node {
    /// What its status says; nothing before its controller's first pass.
    pub fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }
}

/// What is known of a machine.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Launched, Registered, Initialized, Ready, Drifted, Stalled and Lost; while lost or terminated without
    /// being drained Fenced; while deleting Drained, VolumeDetached and InstanceTerminated.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,

    /// The creation of the instance that was decided, whole, written before it is sent to EC2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creation: Option<NodeCreation>,

    /// When the operator found this status empty although it had written it before: another client cleared
    /// it, or it was not restored. Nothing is launched, and the Node is not released, before EC2 has shown
    /// for `--absence-window` that no earlier launch is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_lost_at: Option<Time>,

    /// The EC2 instance, once an answer or a look-up has named it.
    #[serde(rename = "instanceID", default, skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<InstanceId>,

    /// The providerID of the Kubernetes node: `aws:///<zone>/<instance id>`.
    #[serde(rename = "providerID", default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,

    /// The Kubernetes node that this machine registered as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_node_name: Option<String>,

    /// The instance type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,

    /// The zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,

    /// Since when EC2's system or instance check fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impaired_since: Option<Time>,

    /// Since when the operator has seen the kubelet not Ready, by its own clock: the kubelet's is another's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_ready_since: Option<Time>,

    /// The decision that the machine is lost: written before anything is done to it, and never reverted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<Fence>,

    /// Whether the machine looks lost, once it has joined the cluster. When more than half of the machines of
    /// a zone do, the zone itself may be down, and no repair begins there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<MachineHealth>,

    /// Why the database must move to another machine although this one still runs; empty when it may stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement_needed: Option<ReplacementNeeded>,
}

/// Whether a machine that has joined the cluster looks lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MachineHealth {
    /// There is no sign of a loss.
    Healthy,
    /// There is a sign of a loss, and the machine is not declared lost yet.
    Suspected,
    /// The machine would be declared lost, and its repair is postponed.
    RepairPostponed,
    /// The machine is declared lost.
    Lost,
    /// The machine is declared lost, and EC2 does not show it stopped or terminated although stop, forced
    /// stop and termination were requested.
    FenceFailed,
    /// A newer version of Freehold recorded it, and this version does not know what it is.
    #[serde(other)]
    Unknown,
}

/// Why a machine that still runs must be replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplacementNeeded {
    /// Why.
    pub cause: ReplacementCause,

    /// The same as a sentence, with names.
    pub message: String,
}

/// What makes a replacement necessary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReplacementCause {
    /// The Kubernetes node of the machine is being deleted, which cannot be undone.
    KubernetesNodeDeleted,
    /// EC2 has scheduled an event that interrupts the instance.
    EventScheduled,
    /// The Kubernetes node of the machine was cordoned outside Freehold.
    Cordoned,
    /// A newer version of Freehold recorded it, and this version does not know what it is.
    #[serde(other)]
    Unknown,
}

/// The decision that a machine is lost. From `startedAt` count the stages until EC2 shows it stopped or
/// terminated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fence {
    /// When it was decided.
    pub started_at: Time,

    /// Why: the reason of the condition Lost.
    pub cause: String,

    /// Since when the cause was there.
    pub since: Time,

    /// The same as a sentence.
    pub message: String,
}

/// One decided creation of an instance: everything that RunInstances is sent, so that the identical call can
/// be made again with the same token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeCreation {
    /// The attempt.
    #[serde(flatten)]
    pub attempt: Attempt,

    /// The idempotency token of this attempt.
    pub client_token: ClientToken,

    /// The zone of the subnet.
    pub zone: String,

    /// The subnet.
    #[serde(rename = "subnetID")]
    pub subnet_id: String,

    /// The instance type.
    pub instance_type: String,

    /// The image.
    #[serde(rename = "imageID")]
    pub image_id: String,

    /// The security groups.
    #[serde(rename = "securityGroupIDs", default)]
    pub security_group_ids: Vec<String>,

    /// The instance profile's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_profile: Option<String>,

    /// The root disk.
    pub root_volume: RootVolume,

    /// The further disks; none in what an earlier release decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub additional_volumes: Vec<AdditionalVolume>,

    /// The KMS key of the disks.
    #[serde(rename = "kmsKeyID", default, skip_serializing_if = "Option::is_none")]
    pub kms_key_id: Option<String>,

    /// Every tag of the instance and its disks.
    pub tags: BTreeMap<String, String>,

    /// SHA-256 of the user data, hexadecimal: the text itself stays in the NodeClass.
    pub user_data_hash: String,

    /// How many machines before this attempt ran but never joined the cluster.
    #[serde(default)]
    pub never_joined: i32,

    /// Which constants the release that decided it adds to the request: a release with others cannot make the
    /// identical call.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shape: i32,
}

/// For serde.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &i32) -> bool {
    *number == 0
}

//! `NodeClass`: how machines are created; written by the platform team, never by a tenant.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::node_class_images::{CustomImages, EngineImage, ImageDigest, Images, PullPolicy};
pub use super::node_class_limits::Limits;
use super::node_class_status::NodeClassStatus;

/// How the machines of databases are created. Cluster-scoped; a changed class replaces no running machine.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "freehold.dev",
    version = "v1alpha1",
    kind = "NodeClass",
    plural = "nodeclasses",
    singular = "nodeclass",
    shortname = "fnc",
    category = "freehold",
    status = "NodeClassStatus",
    derive = "PartialEq",
    doc = "How the machines of databases are created: image, network, identity and first-boot script. \
        Written by the platform team.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether everything that the class names is there and fits."
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "Why it is, or is not."
    ),
    printcolumn(
        name = "Image",
        type_ = "string",
        json_path = ".spec.imageID",
        description = "The machine image."
    ),
    printcolumn(
        name = "Profile",
        type_ = "string",
        json_path = ".spec.instanceProfile",
        description = "The instance profile."
    ),
    printcolumn(
        name = "StorageClass",
        type_ = "string",
        json_path = ".spec.storageClassName",
        description = "The StorageClass that the volumes name."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("!has(self.spec.additionalVolumes) || self.spec.additionalVolumes.all(v, \
        self.spec.additionalVolumes.exists_one(w, w.deviceName == v.deviceName))")
        .message("spec.additionalVolumes: each deviceName may be there once: give each volume its own"),
    validation = Rule::new("!has(self.spec.additionalVolumes) || !has(self.spec.rootVolume) || \
        !has(self.spec.rootVolume.deviceName) || self.spec.additionalVolumes.all(v, \
        v.deviceName != self.spec.rootVolume.deviceName)")
        .message("spec.additionalVolumes: a deviceName is that of spec.rootVolume: set the size and the type \
            of that disk there"),
)]
#[serde(rename_all = "camelCase")]
pub struct NodeClassSpec {
    /// The AMI that machines boot from (`ami-…`).
    #[serde(rename = "imageID")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new("self.startsWith('ami-')")
        .message("spec.imageID must be an AMI id: ami-…"))]
    pub image_id: String,

    /// The subnets that machines are launched in, with their zones; the order is the order of preference.
    #[schemars(length(min = 1, max = 20))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["id".into()]))]
    pub subnets: Vec<Subnet>,

    /// In which order the zones of the subnets are tried for a database that has no zone yet. Default: that
    /// of the subnets, so that all databases are in the first zone while it has capacity.
    #[serde(default)]
    pub zone_order: ZoneOrder,

    /// The security groups of every machine (`sg-…`).
    #[serde(rename = "securityGroupIDs", default)]
    #[schemars(length(max = 16), inner(length(max = 32)))]
    #[x_kube(validation = Rule::new("self.all(g, g.startsWith('sg-'))")
        .message("spec.securityGroupIDs: each must be a security group id: sg-…"))]
    pub security_group_ids: Vec<String>,

    /// The name of the instance profile that gives machines the rights to join the cluster. A dry run of a
    /// launch says in the condition `LaunchAccepted` whether it exists and may be passed to machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub instance_profile: Option<String>,

    /// The first-boot script, the same for every machine. It must register the kubelet with the taint
    /// `freehold.dev/dedicated:NoExecute`, the label `freehold.dev/dedicated=true`, a providerID of
    /// `aws:///<zone>/<instance id>`, and the region, zone and instance-type labels. Where the taint or the
    /// label is missing Freehold adds it before a database may use the machine, and reports that. At most
    /// 16 KiB (EC2's limit); no secrets. A NodeConfig of Amazon Linux 2023, also as a part of a MIME
    /// multipart text, and Bottlerocket's TOML are read, and the condition `UserDataReady` names mistakes;
    /// scripts are not read.
    #[schemars(length(max = 16384))]
    pub user_data: String,

    /// The machine's own disk.
    #[serde(default)]
    pub root_volume: RootVolume,

    /// Further disks that the image has, or that its first-boot script uses: encrypted with `kmsKeyID`,
    /// tagged as the machine, and deleted with it. Bottlerocket keeps images, logs and emptyDirs on its
    /// second disk, `/dev/xvdb`. A disk of the image that is not named here is as the image and the account's
    /// defaults say: perhaps not encrypted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub additional_volumes: Vec<AdditionalVolume>,

    /// The KMS key that volumes are encrypted with; without it the account's default key for EBS. Volumes are
    /// always encrypted. EC2 uses a key only after it has accepted a launch: of one that may not be used the
    /// first machine ends with `Client.InternalError`, which the condition `LaunchAccepted` reports then.
    #[serde(rename = "kmsKeyID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub kms_key_id: Option<String>,

    /// The namespaces whose Databases may name this class, by the namespaces' labels; a label
    /// `kubernetes.io/metadata.name` with the name is on each. Default: every namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,

    /// The instance types that databases may request, and so what a machine may cost, as patterns with `*`:
    /// `r7i.*`. `*` alone allows every type.
    #[schemars(length(min = 1, max = 50), inner(length(min = 1, max = 32)))]
    pub instance_types: Vec<String>,

    /// The most that a Database may request. Default: no limit.
    #[serde(default)]
    pub limits: Limits,

    /// The StorageClass that PersistentVolumes and claims name. It must belong to the EBS CSI driver and
    /// allow volume expansion.
    #[serde(default = "default_storage_class_name")]
    #[schemars(length(min = 1, max = 253))]
    pub storage_class_name: String,

    /// Where engines' images are pulled from. Default: by tag from Docker Hub, without credentials.
    #[serde(default)]
    pub images: Images,

    /// Whether tenants may run images of their own (the engine `custom`), and which. Default: all.
    #[serde(default)]
    pub custom: CustomImages,

    /// Tags of your own on every instance, network interface and volume, and on every snapshot of a volume.
    /// EKS demands `kubernetes.io/cluster/<name>: owned` of machines that are no part of a managed node
    /// group; it is not put on snapshots.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 30))]
    #[x_kube(validation = Rule::new("self.all(k, k.size() >= 1 && k.size() <= 128 && self[k].size() <= 256)")
        .message("spec.tags: a key has 1 to 128 characters, a value at most 256 (EC2's limits)"))]
    #[x_kube(validation = Rule::new("self.all(k, !k.startsWith('aws:') && !k.startsWith('freehold.dev/') && \
        (!k.startsWith('kubernetes.io/') || k.startsWith('kubernetes.io/cluster/')) && k != 'Name')")
        .message("spec.tags: keys that start with aws:, freehold.dev/ or kubernetes.io/ (but \
            kubernetes.io/cluster/<name>), and Name, are reserved"))]
    pub tags: BTreeMap<String, TagValue>,
}

impl NodeClass {
    /// What its status says; nothing before its controller's first pass.
    pub fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }

    /// Whether this generation was found to be one of which machines can be launched.
    pub fn is_launchable(&self) -> bool {
        self.status.as_ref().is_some_and(|status| {
            status.launchable == Some(true) && status.observed_generation == self.metadata.generation
        })
    }

    /// Whether this generation was found to be one of which no machine can be launched.
    pub fn prevents_launches(&self) -> bool {
        self.status.as_ref().is_some_and(|status| {
            status.launchable == Some(false) && status.observed_generation == self.metadata.generation
        })
    }
}

/// In which order the zones of a class are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ZoneOrder {
    /// The first subnet's zone first.
    #[default]
    Subnets,
    /// Databases take turns: each begins with a zone that its UID decides, so that about as many are in each.
    Spread,
}

/// One subnet and the zone that it is in.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subnet {
    /// The subnet id (`subnet-…`).
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new("self.startsWith('subnet-')")
        .message("spec.subnets: id must be a subnet id: subnet-…"))]
    pub id: String,

    /// The availability zone of the subnet, for example us-east-1a.
    #[schemars(length(min = 1, max = 32))]
    pub zone: String,
}

/// The machine's own disk: encrypted, and deleted with the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RootVolume {
    /// GiB.
    #[serde(default = "default_root_size")]
    #[schemars(range(min = 8, max = 16384))]
    pub size: i32,

    /// The EBS volume type.
    #[serde(rename = "type", default = "default_root_type")]
    #[schemars(length(min = 2, max = 16))]
    pub volume_type: String,

    /// The device name of the image's root disk.
    #[serde(default = "default_root_device")]
    #[schemars(length(min = 1, max = 32))]
    pub device_name: String,
}

impl Default for RootVolume {
    fn default() -> Self {
        Self {
            size: default_root_size(),
            volume_type: default_root_type(),
            device_name: default_root_device(),
        }
    }
}

/// One more disk of a machine: encrypted, and deleted with the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdditionalVolume {
    /// The device name (`/dev/xvdb`).
    #[schemars(length(min = 1, max = 32))]
    pub device_name: String,

    /// GiB.
    #[schemars(range(min = 1, max = 16384))]
    pub size: i32,

    /// The EBS volume type.
    #[serde(rename = "type", default = "default_root_type")]
    #[schemars(length(min = 2, max = 16))]
    pub volume_type: String,
}

/// The value of a tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TagValue(#[schemars(length(max = 256))] pub String);

fn default_storage_class_name() -> String {
    "freehold".to_owned()
}

fn default_root_size() -> i32 {
    30
}

fn default_root_type() -> String {
    "gp3".to_owned()
}

fn default_root_device() -> String {
    "/dev/xvda".to_owned()
}

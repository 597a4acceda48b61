//! The EBS volume of a `Database`.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumIter, IntoStaticStr};

use super::database_auto_grow::AutoGrow;
use super::size::Size;

/// The types of EBS volumes (EC2 API reference, "CreateVolume").
pub const VOLUME_TYPES: [&str; 7] = ["gp2", "gp3", "io1", "io2", "st1", "sc1", "standard"];

/// The size of the largest volume of a type, in GiB (EBS user guide, "Amazon EBS volume types").
pub fn largest_size(volume_type: &str) -> i32 {
    match volume_type {
        "standard" => 1024,
        "gp3" | "io2" => 65_536,
        _ => 16_384,
    }
}

/// The EBS volume of a database.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("quantity(self.size).compareTo(quantity(oldSelf.size)) >= 0")
    .message("spec.storage.size cannot shrink: EBS volumes only grow; create a smaller Database and copy the \
        data"))]
#[x_kube(validation = Rule::new("self.fileSystem == oldSelf.fileSystem")
    .message("spec.storage.fileSystem cannot change: the volume is formatted once; set it back, or create a \
        new Database and copy the data"))]
#[x_kube(validation = Rule::new("!has(self.adoptRetained) || (has(oldSelf.adoptRetained) && \
    self.adoptRetained == oldSelf.adoptRetained)")
    .message("spec.storage.adoptRetained can be set only when the Database is created: delete this Database \
        (its deletionPolicy says what happens to its own volume) and create it with the line"))]
#[x_kube(validation = Rule::new("!has(self.adoptRetained) || !has(self.startEmpty) || !self.startEmpty")
    .message("spec.storage.startEmpty and spec.storage.adoptRetained exclude each other: remove one of them"))]
#[x_kube(validation = Rule::new("!has(self.newCredentials) || !self.newCredentials || has(self.adoptRetained)")
    .message("spec.storage.newCredentials is for retained data: set spec.storage.adoptRetained, too, or remove \
        it"))]
#[x_kube(validation = Rule::new("!has(self.autoGrow) || \
    quantity(self.autoGrow.maxSize).compareTo(quantity(self.size)) >= 0")
    .message("spec.storage.autoGrow.maxSize is less than spec.storage.size: raise it, or remove \
        spec.storage.autoGrow"))]
#[x_kube(validation = Rule::new("!has(self.throughput) || self.type == 'gp3'")
    .message("spec.storage.throughput is only for the type gp3: remove it or set spec.storage.type to gp3"))]
#[x_kube(validation = Rule::new("!has(self.iops) || !(self.type in ['gp2', 'st1', 'sc1', 'standard'])")
    .message("spec.storage.iops is not for this type: remove it or set spec.storage.type to gp3"))]
#[x_kube(validation = Rule::new("has(self.iops) || !(self.type in ['io1', 'io2'])")
    .message("spec.storage.iops is required for io1 and io2"))]
pub struct Storage {
    /// The size in whole GiB or TiB, for example 100Gi. It can grow while the database runs; it can never
    /// shrink.
    #[x_kube(validation = Rule::new("self.matches('^[1-9][0-9]*(Gi|Ti)$')")
        .message("spec.storage.size must be a whole number of GiB or TiB, for example 100Gi or 2Ti"))]
    pub size: Size,

    /// The EBS volume type: gp2, gp3, io1, io2, st1, sc1 or standard. Default: gp3.
    #[serde(rename = "type", default = "default_volume_type")]
    #[schemars(length(min = 2, max = 16))]
    #[x_kube(validation = Rule::new("self in ['gp2', 'gp3', 'io1', 'io2', 'st1', 'sc1', 'standard']")
        .message("spec.storage.type must be gp2, gp3, io1, io2, st1, sc1 or standard"))]
    pub volume_type: String,

    /// Provisioned IOPS; without it EC2's default for the type (gp3: 3000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub iops: Option<i32>,

    /// Provisioned throughput in MiB/s (gp3 only); without it EC2's default (125).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub throughput: Option<i32>,

    /// The file system, created once by the EBS CSI driver: xfs or ext4. Default: xfs.
    #[serde(default)]
    pub file_system: FileSystem,

    /// Lets the volume grow by itself when its file system fills up. Without it Freehold changes the size
    /// only as spec.storage.size says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_grow: Option<AutoGrow>,

    /// Restores a volume that was retained when a Database of this namespace was deleted, with its data and
    /// its credentials, instead of a new one: the name of the PersistentVolume that records it, as `freehold
    /// retained` lists it. Only when the Database is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("spec.storage.adoptRetained must be the name of a PersistentVolume that `freehold retained` \
            lists, such as freehold-6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11"))]
    pub adopt_retained: Option<String>,

    /// True begins with an empty volume, although the volume of a former Database of this name is retained.
    /// Without it, and without adoptRetained, nothing is created then: a Database that is created again from
    /// its manifest does not serve an empty volume where clients expect the data. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub start_empty: bool,

    /// With adoptRetained: true gives the retained data new credentials instead of those that it was created
    /// with, whose Secret is lost, as it is with a deleted namespace. PostgreSQL sets the password of its
    /// administrator to that of the new Secret before it serves; QuestDB reads it from there at each start;
    /// an image of your own must do so itself. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub new_credentials: bool,
}

/// A file system that the EBS CSI driver creates and grows online.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    JsonSchema,
    EnumIter,
    IntoStaticStr
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum FileSystem {
    /// XFS.
    #[default]
    Xfs,
    /// ext4.
    Ext4,
}

impl FileSystem {
    /// The name as the CSI driver knows it.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

fn default_volume_type() -> String {
    "gp3".to_owned()
}

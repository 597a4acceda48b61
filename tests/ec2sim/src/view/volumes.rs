//! What can be seen of volumes, their attachments and modifications, and of snapshots.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::Tags;

/// The states of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum AttachmentState {
    /// On its way.
    Attaching,
    /// The instance has the device.
    Attached,
    /// On its way out.
    Detaching,
    /// Gone; seen only in `DetachVolume`'s answers.
    Detached,
}

impl AttachmentState {
    /// EC2's word.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A volume at an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachmentView {
    /// `vol-…`.
    pub volume_id: String,
    /// `i-…`.
    pub instance_id: String,
    /// Such as `/dev/xvdba`.
    pub device: String,
    /// The state.
    pub state: AttachmentState,
    /// When attaching began.
    pub attached_at: Timestamp,
    /// Whether the volume is deleted with the instance.
    pub delete_on_termination: bool,
}

/// The states of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum VolumeState {
    /// Being made.
    Creating,
    /// Ready to be attached.
    Available,
    /// Attached, or on its way in or out.
    InUse,
    /// Being deleted.
    Deleting,
    /// Broken.
    Error,
}

impl VolumeState {
    /// EC2's word.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// How EC2 reads a volume from its snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Initialization {
    /// The provisioned rate in MiB a second; without one it is the default.
    pub rate: Option<u32>,
    /// When everything is read.
    pub ends_at: Timestamp,
}

/// How far the initialization of a volume is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitializationProgress {
    /// Whether its rate is provisioned.
    pub is_provisioned: bool,
    /// Per cent.
    pub progress: u8,
    /// The seconds that are left.
    pub seconds_left: u64,
}

/// What `DescribeVolumeStatus` says of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeStatusView {
    /// The volume.
    pub volume: VolumeView,
    /// Its initialization; none of a volume that was made empty.
    pub initialization: Option<InitializationProgress>,
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeView {
    /// `vol-…`.
    pub id: String,
    /// The token of its creation.
    pub client_token: Option<String>,
    /// The availability zone's name.
    pub zone: String,
    /// What it holds and how fast it is.
    pub shape: Shape,
    /// Whether it is encrypted.
    pub encrypted: bool,
    /// The key.
    pub kms_key: Option<String>,
    /// The snapshot that it was made from.
    pub snapshot_id: Option<String>,
    /// How it is read from that snapshot.
    pub initialization: Option<Initialization>,
    /// The state.
    pub state: VolumeState,
    /// When it was created.
    pub created_at: Timestamp,
    /// Tags by key.
    pub tags: Tags,
    /// At most one: multi-attach is not modelled.
    pub attachment: Option<AttachmentView>,
    /// Its modifications, the oldest first.
    pub modifications: Vec<ModificationView>,
}

/// Size and performance of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// GiB.
    pub size: u32,
    /// `gp3`, `io2` …
    pub volume_type: String,
    /// Operations a second, where the type has them.
    pub iops: Option<u32>,
    /// MiB a second, for gp3.
    pub throughput: Option<u32>,
}

/// The states of a modification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum ModificationState {
    /// Begun.
    Modifying,
    /// The new size can be used; the performance is on its way.
    Optimizing,
    /// Done.
    Completed,
    /// Given up.
    Failed,
}

impl ModificationState {
    /// EC2's word.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A change of a volume's shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModificationView {
    /// `vol-…`.
    pub volume_id: String,
    /// The state.
    pub state: ModificationState,
    /// Per cent.
    pub progress: u8,
    /// Before.
    pub original: Shape,
    /// After.
    pub target: Shape,
    /// When it was asked for.
    pub started_at: Timestamp,
    /// When it was completed or failed.
    pub ended_at: Option<Timestamp>,
}

/// The states of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum SnapshotState {
    /// Being copied.
    Pending,
    /// Whole.
    Completed,
    /// Failed.
    Error,
}

impl SnapshotState {
    /// EC2's word.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotView {
    /// `snap-…`.
    pub id: String,
    /// `vol-…`.
    pub volume_id: String,
    /// The volume's size when it was taken, in GiB.
    pub size: u32,
    /// The state.
    pub state: SnapshotState,
    /// Per cent.
    pub progress: u8,
    /// The point in time that it holds: when `CreateSnapshot` answered.
    pub started_at: Timestamp,
    /// When it was completed.
    pub completed_at: Option<Timestamp>,
    /// The caller's words.
    pub description: String,
    /// Whether it is encrypted.
    pub encrypted: bool,
    /// The key.
    pub kms_key: Option<String>,
    /// Tags by key.
    pub tags: Tags,
}

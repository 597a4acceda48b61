//! Values that go to and come from EC2, free of the SDK's types.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::api::{ClientToken, InstanceId, SnapshotId, VolumeId};

/// Which constants are added to [`LaunchRequest`], such as the metadata options: EC2 refuses another request
/// with the same token. It is one more whenever `requests.rs` sends another request for the same parameters;
/// its golden file shows that.
pub const LAUNCH_SHAPE: i32 = 0;

/// The parameters of RunInstances.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchRequest {
    /// The idempotency token.
    pub token: ClientToken,
    /// The subnet, which decides the zone.
    pub subnet_id: String,
    /// The instance type.
    pub instance_type: String,
    /// The image.
    pub image_id: String,
    /// The user data, not encoded.
    pub user_data: String,
    /// The security groups.
    pub security_group_ids: Vec<String>,
    /// The instance profile's name.
    pub instance_profile: Option<String>,
    /// The machine's own disks: the root disk first.
    pub disks: Vec<Disk>,
    /// The KMS key of the disks.
    pub kms_key_id: Option<String>,
    /// Tags of the instance and of its disks.
    pub tags: BTreeMap<String, String>,
}

/// A disk of a machine's own, made and deleted with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// The device name.
    pub device: String,
    /// GiB.
    pub size: i32,
    /// The volume type.
    pub volume_type: String,
}

/// An EC2 instance as one answer showed it.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// Its id.
    pub id: InstanceId,
    /// Its state.
    pub state: InstanceState,
    /// Why it is in this state, in EC2's words (`Server.InsufficientInstanceCapacity: …`).
    pub state_reason: Option<String>,
    /// The token that it was launched with.
    pub token: Option<ClientToken>,
    /// Its zone.
    pub zone: String,
    /// Its type.
    pub instance_type: String,
    /// When EC2 launched it, or started it last.
    pub launched_at: Option<Timestamp>,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// Volumes attached to it, its own disks included.
    pub volumes: Vec<VolumeId>,
}

/// An instance's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceState {
    /// Being launched or started.
    Pending,
    /// Running.
    Running,
    /// Being terminated.
    ShuttingDown,
    /// Terminated. This state is final.
    Terminated,
    /// Being stopped.
    Stopping,
    /// Stopped.
    Stopped,
    /// A state that this release does not know.
    Unknown,
}

/// What `DescribeInstanceStatus` reports of an unhealthy instance: a check fails, or EC2 has scheduled an
/// event for it.
#[derive(Clone, Debug, PartialEq)]
pub struct InstanceHealth {
    /// The instance.
    pub id: InstanceId,
    /// The system or the instance check is impaired.
    pub impaired: bool,
    /// What EC2 has scheduled and not completed or canceled.
    pub events: Vec<ScheduledEvent>,
}

/// What EC2 is going to do to an instance: stop, retire or reboot it, or work on its host. Each interrupts
/// what runs there (EC2 user guide, "Scheduled events for your instances").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledEvent {
    /// `instance-retirement`, `instance-stop`, `instance-reboot`, `system-reboot` or `system-maintenance`.
    pub code: String,
    /// The earliest time.
    pub not_before: Option<Timestamp>,
}

/// The parameters of CreateVolume.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateVolumeRequest {
    /// The idempotency token.
    pub token: ClientToken,
    /// The zone.
    pub zone: String,
    /// GiB.
    pub size: i32,
    /// The volume type.
    pub volume_type: String,
    /// IOPS.
    pub iops: Option<i32>,
    /// MiB/s.
    pub throughput: Option<i32>,
    /// The snapshot to fill it from.
    pub snapshot_id: Option<SnapshotId>,
    /// How fast EC2 reads it from the snapshot, in MiB/s; `None` leaves it to EC2.
    pub initialization_rate: Option<i32>,
    /// The KMS key.
    pub kms_key_id: Option<String>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

/// The parameters of ModifyVolume.
#[derive(Clone, Debug, PartialEq)]
pub struct ModifyVolumeRequest {
    /// The volume.
    pub id: VolumeId,
    /// GiB.
    pub size: i32,
    /// The volume type.
    pub volume_type: String,
    /// IOPS; `None` leaves EC2's default for the type.
    pub iops: Option<i32>,
    /// MiB/s; `None` leaves EC2's default for the type.
    pub throughput: Option<i32>,
}

/// An EBS volume as one answer showed it.
#[derive(Clone, Debug, PartialEq)]
pub struct EbsVolume {
    /// Its id.
    pub id: VolumeId,
    /// Its state.
    pub state: VolumeState,
    /// Its zone.
    pub zone: String,
    /// GiB.
    pub size: i32,
    /// The volume type.
    pub volume_type: String,
    /// IOPS.
    pub iops: Option<i32>,
    /// MiB/s.
    pub throughput: Option<i32>,
    /// Whether it is encrypted.
    pub encrypted: bool,
    /// When EC2 created it.
    pub created_at: Option<Timestamp>,
    /// Whether several instances may have it attached at once.
    pub multi_attach: bool,
    /// What it is attached to, also while that begins or ends.
    pub attachments: Vec<Attachment>,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
}

/// One attachment of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The instance; empty if another service of AWS' holds the volume (API_VolumeAttachment).
    pub instance: InstanceId,
    /// The device name.
    pub device: String,
    /// Whether EC2 deletes the volume when the instance is terminated.
    pub delete_on_termination: bool,
}

/// A volume's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeState {
    /// Being created.
    Creating,
    /// Attached to nothing.
    Available,
    /// Attached.
    InUse,
    /// Being deleted.
    Deleting,
    /// Deleted.
    Deleted,
    /// Broken.
    Error,
    /// A state that this release does not know.
    Unknown,
}

/// How far EC2 has read a volume from its snapshot, as one answer showed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Initialization {
    /// The volume.
    pub volume: VolumeId,
    /// Per cent: 100 when it has ended.
    pub progress: i32,
    /// What is left of it, as EC2 estimates it; only at a rate that was requested.
    pub left: Option<Duration>,
}

/// The newest modification of a volume.
#[derive(Clone, Debug, PartialEq)]
pub struct Modification {
    /// The volume.
    pub volume: VolumeId,
    /// Its state.
    pub state: ModificationState,
    /// When it was requested.
    pub started_at: Option<Timestamp>,
}

/// The state of a modification. The new size can be used from `Optimizing` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModificationState {
    /// Not usable yet.
    Modifying,
    /// Usable; the next modification is not allowed yet.
    Optimizing,
    /// Completed.
    Completed,
    /// Failed.
    Failed,
}

/// A snapshot as one answer showed it.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Its id.
    pub id: SnapshotId,
    /// The volume it was taken of.
    pub volume: VolumeId,
    /// GiB of that volume.
    pub size: Option<i32>,
    /// Its state.
    pub state: SnapshotState,
    /// When it was started.
    pub started_at: Option<Timestamp>,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
}

/// The state of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotState {
    /// Being copied.
    Pending,
    /// Complete.
    Completed,
    /// Failed, or a state that this release does not know.
    Error,
}

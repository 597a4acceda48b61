//! What can be seen of the account's resources: the values that answers, the truth and the saved state share.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Tags by key.
pub type Tags = BTreeMap<String, String>;

/// The states of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceState {
    /// Starting.
    Pending,
    /// Running.
    Running,
    /// On its way to terminated.
    ShuttingDown,
    /// Gone for good, visible for an hour.
    Terminated,
    /// On its way to stopped.
    Stopping,
    /// Stopped, to be started again.
    Stopped,
}

impl InstanceState {
    /// EC2's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::ShuttingDown => "shutting-down",
            Self::Terminated => "terminated",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
        }
    }

    /// EC2's number (API reference, `InstanceState`).
    pub fn code(self) -> u8 {
        match self {
            Self::Pending => 0,
            Self::Running => 16,
            Self::ShuttingDown => 32,
            Self::Terminated => 48,
            Self::Stopping => 64,
            Self::Stopped => 80,
        }
    }
}

/// A status check's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Health {
    /// The instance does not run.
    NotApplicable,
    /// It runs, and the first check has not ended.
    Initializing,
    /// All is well.
    Ok,
    /// Something is wrong.
    Impaired,
}

impl Health {
    /// EC2's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotApplicable => "not-applicable",
            Self::Initializing => "initializing",
            Self::Ok => "ok",
            Self::Impaired => "impaired",
        }
    }

    /// EC2's word for the reachability detail.
    pub fn reachability(self) -> &'static str {
        match self {
            Self::NotApplicable => "insufficient-data",
            Self::Initializing => "initializing",
            Self::Ok => "passed",
            Self::Impaired => "failed",
        }
    }
}

/// Why an instance is in its state: `Client.UserInitiatedShutdown`, `Server.InternalError` …
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateReason {
    /// EC2's code.
    pub code: String,
    /// A sentence.
    pub message: String,
}

/// Something that AWS is going to do to an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledEvent {
    /// `instance-event-…`.
    pub id: String,
    /// `instance-reboot`, `system-reboot`, `system-maintenance`, `instance-retirement` or `instance-stop`.
    pub code: String,
    /// A sentence.
    pub description: String,
    /// When it comes at the earliest.
    pub not_before: Timestamp,
}

/// The metadata service's options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetadataOptions {
    /// `optional` or `required` (IMDSv2 only).
    pub http_tokens: String,
    /// How many hops an answer may take.
    pub hop_limit: u32,
    /// `enabled` or `disabled`.
    pub http_endpoint: String,
    /// `enabled` or `disabled`.
    pub instance_metadata_tags: String,
}

/// An instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceView {
    /// `i-…`.
    pub id: String,
    /// `r-…`: what one RunInstances made together.
    pub reservation_id: String,
    /// Its place in that launch.
    pub launch_index: u32,
    /// The token of its launch.
    pub client_token: Option<String>,
    /// `ami-…`.
    pub image_id: String,
    /// `x86_64` or `arm64`.
    pub architecture: String,
    /// Such as `r7i.large`.
    pub instance_type: String,
    /// The availability zone's name.
    pub zone: String,
    /// `subnet-…`.
    pub subnet_id: String,
    /// `vpc-…`.
    pub vpc_id: String,
    /// `sg-…`.
    pub security_groups: Vec<String>,
    /// The instance profile's ARN.
    pub instance_profile: Option<String>,
    /// The SSH key pair's name.
    pub key_name: Option<String>,
    /// Kept while stopped, free again once terminated.
    pub private_ip: String,
    /// `ip-a-b-c-d.ec2.internal`.
    pub private_dns: String,
    /// The user data, decoded; what is not UTF-8 is replaced.
    pub user_data: Option<String>,
    /// The metadata service's options.
    pub metadata: MetadataOptions,
    /// Whether it has dedicated bandwidth to its volumes.
    pub ebs_optimized: bool,
    /// Whether `TerminateInstances` is refused.
    pub termination_protected: bool,
    /// `stop` or `terminate`: what a shutdown from inside does.
    pub shutdown_behavior: String,
    /// The root volume's device.
    pub root_device: String,
    /// Tags by key.
    pub tags: Tags,
    /// The state.
    pub state: InstanceState,
    /// Why it is in this state.
    pub state_reason: Option<StateReason>,
    /// When it was launched, or last started.
    pub launched_at: Timestamp,
    /// When it last came to run.
    pub running_at: Option<Timestamp>,
    /// When it was terminated.
    pub terminated_at: Option<Timestamp>,
    /// How often it was rebooted.
    pub reboots: u32,
    /// The check of the machine beneath.
    pub system_status: Health,
    /// The check of the instance itself.
    pub instance_status: Health,
    /// What AWS has announced.
    pub events: Vec<ScheduledEvent>,
    /// What the console shows.
    pub console: String,
    /// Its volumes, the root volume included.
    pub attachments: Vec<AttachmentView>,
}

/// The states of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
        match self {
            Self::Attaching => "attaching",
            Self::Attached => "attached",
            Self::Detaching => "detaching",
            Self::Detached => "detached",
        }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
        match self {
            Self::Creating => "creating",
            Self::Available => "available",
            Self::InUse => "in-use",
            Self::Deleting => "deleting",
            Self::Error => "error",
        }
    }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
        match self {
            Self::Modifying => "modifying",
            Self::Optimizing => "optimizing",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
        match self {
            Self::Pending => "pending",
            Self::Completed => "completed",
            Self::Error => "error",
        }
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

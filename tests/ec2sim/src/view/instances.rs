//! What can be seen of instances.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{AttachmentView, Tags};

/// The states of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
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
        self.into()
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
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
        self.into()
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

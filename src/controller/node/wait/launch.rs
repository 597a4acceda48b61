//! Why a Node has no running instance yet. Pure.

use jiff::Timestamp;

use crate::api::creation::Refusal;
use crate::api::{InstanceId, Reason};
use crate::cloud::quota::Quota;
use crate::controller::creation::judge::Doubt;

/// What a launch waits for.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum LaunchWait {
    /// The NodeClass of this name does not exist.
    ClassNotFound(String),
    /// The NodeClass names something that prevents every launch.
    ClassNotReady {
        /// The NodeClass.
        class: String,
        /// What is wrong with it.
        faults: String,
    },
    /// Two disks of the NodeClass have the same device name.
    SharedDevice {
        /// The NodeClass.
        class: String,
        /// The device name.
        device: String,
    },
    /// The NodeClass has no subnet in an allowed zone.
    NoSubnet {
        /// The NodeClass.
        class: String,
        /// The allowed zones.
        zones: Vec<String>,
    },
    /// The NodeClass names a subnet in a zone, and EC2 launched an instance of it in another one.
    SubnetElsewhere {
        /// The NodeClass.
        class: String,
        /// The subnet.
        subnet: String,
        /// The zone that the NodeClass says.
        declared: String,
        /// The zone where it is.
        zone: String,
    },
    /// The NodeClass allows none of the instance types.
    NoAllowedType {
        /// The NodeClass.
        class: String,
        /// The types of the spec.
        wanted: Vec<String>,
        /// The patterns of the NodeClass.
        allowed: Vec<String>,
    },
    /// EC2 has no capacity for any of these types in these zones.
    NoCapacity {
        /// Type and zone.
        refused: Vec<(String, String)>,
        /// When the first of them is requested again.
        until: Timestamp,
    },
    /// An instance found no capacity while it started, for the reason that EC2 names.
    NoCapacityFor(InstanceId, Option<String>),
    /// This quota of the AWS account is reached, which these instance types count against.
    Quota(Quota, Vec<String>),
    /// An instance of this type is requested in this zone.
    Requested {
        /// The type.
        instance_type: String,
        /// The zone.
        zone: String,
    },
    /// An instance with the tags of this Node is adopted.
    Adopted(InstanceId),
    /// An instance of a later attempt than the status records is adopted.
    AdoptedLater(InstanceId),
    /// The instance of this attempt was found.
    Found(InstanceId),
    /// EC2 does not list the instance yet.
    NotListed(InstanceId),
    /// The instance is starting.
    Starting(InstanceId),
    /// EC2 reports a state of the instance that is not known here.
    UnknownState(InstanceId),
    /// The instance is terminated before it joined, since it is not wanted any more.
    Unwanted(InstanceId, Unwanted),
    /// The attempt of this number has no response, and is sent again.
    Resent(i32),
    /// EC2 throttled the launch and created nothing.
    Throttled,
    /// The status was lost: EC2 is searched for what was launched before.
    StatusLost,
    /// It is not known whether EC2 carried out the attempt of this number.
    InDoubt(i32, Doubt),
    /// EC2 does not allow the launch.
    Forbidden(Refusal),
    /// EC2 refuses the launch as invalid.
    Invalid {
        /// What EC2 answered.
        refusal: Refusal,
        /// The NodeClass.
        class: String,
    },
}

/// Why a machine that has not joined is not wanted any more.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum Unwanted {
    /// Its type has left the list.
    Type(String),
    /// The volume is in another zone.
    Zone {
        /// The zone of the instance.
        instance: String,
        /// The zone of the volume.
        volume: String,
    },
}

impl LaunchWait {
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::ClassNotFound(_) => Reason::NodeClassNotFound,
            Self::ClassNotReady { .. } => Reason::NodeClassNotReady,
            Self::SharedDevice { .. }
            | Self::NoSubnet { .. }
            | Self::SubnetElsewhere { .. }
            | Self::NoAllowedType { .. } => Reason::NodeClassMismatch,
            Self::NoCapacity { .. } | Self::NoCapacityFor(..) => Reason::InsufficientCapacity,
            Self::Quota(..) => Reason::QuotaExceeded,
            Self::Requested { .. }
            | Self::Adopted(_)
            | Self::AdoptedLater(_)
            | Self::Found(_)
            | Self::NotListed(_)
            | Self::Starting(_)
            | Self::UnknownState(_)
            | Self::Unwanted(..) => Reason::Launching,
            Self::Resent(_) | Self::StatusLost | Self::InDoubt(..) => Reason::InDoubt,
            Self::Throttled => Reason::Throttled,
            Self::Forbidden(_) => Reason::Forbidden,
            Self::Invalid { .. } => Reason::InvalidRequest,
        }
    }
}

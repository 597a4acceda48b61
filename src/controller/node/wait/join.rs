//! Why the machine of a Node is not ready for the database yet. Pure.

use std::time::Duration;

use crate::api::{InstanceId, Reason};
use crate::cloud::ScheduledEvent;

/// What an instance waits for until its Kubernetes node is ready for the database.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum JoinWait {
    /// The kubelet of the instance has to register.
    Registration(InstanceId),
    /// The kubelet of the instance did not register in time: it is terminated.
    NotRegistered(InstanceId),
    /// The instance ended before it joined, for the reason that EC2 names; another follows.
    Ended(InstanceId, Option<String>),
    /// Machine after machine ended before it joined.
    NeverJoins {
        /// How many.
        machines: usize,
        /// The NodeClass.
        class: String,
    },
    /// The Kubernetes node of this name has registered.
    Registered(String),
    /// Something is missing until the Kubernetes node is ready for the database.
    Initialization(Missing),
    /// It has been missing for too long.
    InitializationOverdue {
        /// What is missing.
        missing: Missing,
        /// How long it may take.
        limit: Duration,
        /// The Node.
        node: String,
    },
    /// The Kubernetes node of this name is not Ready.
    NotReady(String),
    /// The EBS CSI driver is not registered any more on the Kubernetes node of this name.
    DriverGone(String),
    /// The instance runs, and its Kubernetes node is gone.
    KubernetesNodeGone(InstanceId),
    /// The Kubernetes node of this name is being deleted and was not held yet.
    KubernetesNodeEnding(String),
    /// The Kubernetes node of this name is being deleted: EC2 is requested to say whether the machine has
    /// ended.
    KubernetesNodeEndingChecked(String),
    /// The Kubernetes node of this name is being deleted, and its machine runs: the machine must be replaced.
    KubernetesNodeDeleted(String),
    /// EC2 has scheduled an event that interrupts the machine, which must be replaced.
    EventScheduled {
        /// The instance.
        instance: InstanceId,
        /// The event that comes first.
        event: ScheduledEvent,
    },
    /// EC2 had scheduled an event, and does not answer now: what was reported of it.
    EventRecorded(String),
    /// The Kubernetes node was cordoned outside Freehold.
    Cordoned {
        /// The Kubernetes node.
        core_node: String,
        /// A database uses the machine, which must be replaced.
        in_use: bool,
    },
}

/// What is missing until a Kubernetes node is ready for the database.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum Missing {
    /// The Kubernetes node of this name lacks the label or the taint of a database's machine.
    Dedication(String),
    /// The EBS CSI driver has not registered on the Kubernetes node of this name.
    Driver(String),
    /// The Kubernetes node of this name is not Ready.
    Ready(String),
}

impl JoinWait {
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::Registration(_) => Reason::AwaitingRegistration,
            Self::NotRegistered(_) | Self::Ended(..) | Self::NeverJoins { .. } => Reason::NeverJoined,
            Self::Registered(_) | Self::Initialization(_) | Self::InitializationOverdue { .. } => {
                Reason::AwaitingInitialization
            }
            Self::NotReady(_)
            | Self::DriverGone(_)
            | Self::KubernetesNodeGone(_)
            | Self::KubernetesNodeEnding(_)
            | Self::KubernetesNodeEndingChecked(_) => Reason::NodeNotReady,
            Self::KubernetesNodeDeleted(_) => Reason::KubernetesNodeDeleted,
            Self::EventScheduled { .. } | Self::EventRecorded(_) => Reason::EventScheduled,
            Self::Cordoned { .. } => Reason::Cordoned,
        }
    }
}

//! What a Node waits for: one variant for each thing, with the reason that the conditions show. Pure.

use std::time::Duration;

use jiff::Timestamp;

use super::cause::{Cause, LossSigns};

use crate::api::node::Refusal;
use crate::api::{InstanceId, Reason};
use crate::controller::creation::judge::Doubt;
use crate::controller::safety::Blocker;
use crate::controller::waiting::HeldUp;

/// What a Node waits for.
#[derive(Clone, Debug, PartialEq, strum::EnumCount, strum::IntoStaticStr)]
pub enum NodeWait {
    /// The finalizer is being added.
    Finalizer,
    /// The first full EC2 inventory sync since the operator started.
    FirstSync,
    /// The launch of an instance.
    Launch(LaunchWait),
    /// The instance has to join the cluster and to become ready.
    Join(JoinWait),
    /// The machine is lost, or may be.
    Loss(LossWait),
    /// The Node is being deleted.
    Deletion(DeletionWait),
    /// Something destructive is not allowed yet.
    Blocked(Blocker),
    /// EC2 did not accept a request.
    CallBlocked(HeldUp),
}

/// What a launch waits for.
#[derive(Clone, Debug, PartialEq, strum::EnumCount, strum::IntoStaticStr)]
pub enum LaunchWait {
    /// The NodeClass of this name does not exist.
    ClassNotFound(String),
    /// The NodeClass has no subnet in an allowed zone.
    NoSubnet {
        /// The NodeClass.
        class: String,
        /// The allowed zones.
        zones: Vec<String>,
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
    /// A quota of the AWS account is reached.
    Quota,
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
#[derive(Clone, Debug, PartialEq, Eq, strum::EnumCount, strum::IntoStaticStr)]
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

/// What an instance waits for until its Kubernetes node is ready for the database.
#[derive(Clone, Debug, PartialEq, Eq, strum::EnumCount, strum::IntoStaticStr)]
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
    /// The instance runs, and its Kubernetes node is gone.
    KubernetesNodeGone(InstanceId),
    /// The Kubernetes node of this name is being deleted and was not held yet.
    KubernetesNodeEnding(String),
    /// The Kubernetes node of this name is being deleted: EC2 is requested to say whether the machine has ended.
    KubernetesNodeEndingChecked(String),
    /// The Kubernetes node of this name is being deleted, and its machine runs: the machine must be replaced.
    KubernetesNodeDeleted(String),
}

/// What is missing until a Kubernetes node is ready for the database.
#[derive(Clone, Debug, PartialEq, Eq, strum::EnumCount, strum::IntoStaticStr)]
pub enum Missing {
    /// The EBS CSI driver has not registered on the Kubernetes node of this name.
    Driver(String),
    /// The Kubernetes node of this name is not Ready.
    Ready(String),
}

/// What a machine that is lost, or may be, waits for. `loss` is the recorded message of the loss.
#[derive(Clone, Debug, PartialEq, Eq, strum::EnumCount, strum::IntoStaticStr)]
pub enum LossWait {
    /// There are signs of a loss that may pass; this one comes due first.
    Suspected(Cause, LossSigns),
    /// The machine would be declared lost, and may not be yet.
    RepairPostponed(LossSigns, Blocker),
    /// The machine is being fenced.
    Fencing {
        /// Why.
        loss: String,
        /// How.
        step: FenceStep,
    },
    /// The machine is fenced, and VolumeAttachments still exist.
    Attached {
        /// Why the machine is lost.
        loss: String,
        /// The VolumeAttachments.
        attached: Attached,
    },
    /// The machine is fenced, and another takes its place.
    Replaced {
        /// Why the machine is lost.
        loss: String,
    },
    /// The instance of a machine that had joined is terminated, for the reason that EC2 names.
    Terminated(InstanceId, Option<String>),
    /// EC2 is terminating the instance.
    ShuttingDown(InstanceId),
    /// The instance was stopped before it joined.
    StoppedBeforeJoin(InstanceId),
}

/// What is done to fence a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumCount, strum::IntoStaticStr)]
pub enum FenceStep {
    /// EC2 is requested to stop the instance.
    Stop,
    /// EC2 is requested to stop the instance by force.
    ForceStop,
    /// EC2 is requested to terminate the instance.
    Terminate,
    /// Both by turns.
    Alternate,
    /// Nothing is left to request.
    AwaitProof,
}

/// How EC2 shows that nothing on a machine can write any more.
#[derive(Clone, Debug, PartialEq, Eq, strum::EnumCount, strum::IntoStaticStr)]
pub enum Proof {
    /// EC2 reports the instance terminated.
    Terminated(InstanceId),
    /// EC2 reports the instance stopped.
    Stopped(InstanceId),
    /// EC2 reported an end before, and does not list the instance any more.
    Forgotten(InstanceId),
    /// The instance is proven absent.
    Absent(InstanceId),
}

/// VolumeAttachments that still exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Their names.
    pub names: Vec<String>,
    /// Since when, once that takes long.
    pub overdue_since: Option<Timestamp>,
}

/// What the deletion of a Node waits for.
#[derive(Clone, Debug, PartialEq, Eq, strum::EnumCount, strum::IntoStaticStr)]
pub enum DeletionWait {
    /// The finalizers of others.
    OtherFinalizers,
    /// EC2 does not list the instance; its absence is not proven yet.
    Absence(InstanceId),
    /// An instance with the tags of this Node is adopted, to be terminated.
    Adopted(InstanceId),
    /// The instance of the last attempt was found, and is to be terminated.
    Found(InstanceId),
    /// Nothing is launched any more.
    NotResent,
    /// The instance is terminated.
    Terminated(InstanceId),
    /// EC2 is terminating these instances.
    ShuttingDown(Vec<InstanceId>),
    /// The stopped instance of a lost machine is terminated.
    StoppedTerminated {
        /// Why the machine is lost.
        loss: String,
    },
    /// Other instances with the tags of this Node are left alone.
    Duplicates(Vec<Blocker>),
    /// VolumeAttachments still exist.
    Attached(Attached),
    /// The machine is gone.
    Gone,
}

impl NodeWait {
    /// The reason of the conditions.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Finalizer => Reason::Progressing,
            Self::FirstSync => Reason::AwaitingInventory,
            Self::Launch(wait) => wait.reason(),
            Self::Join(wait) => wait.reason(),
            Self::Loss(wait) => wait.reason(),
            Self::Deletion(wait) => wait.reason(),
            Self::Blocked(blocker) => blocker.reason,
            Self::CallBlocked(held_up) => held_up.reason,
        }
    }

    /// Whether nothing changes until a person does something.
    pub fn is_stalled(&self) -> bool {
        match self {
            Self::Launch(wait) => wait.is_stalled(),
            Self::Join(wait) => matches!(wait, JoinWait::NeverJoins { .. } | JoinWait::InitializationOverdue { .. }),
            Self::Finalizer | Self::FirstSync | Self::Loss(_) | Self::Deletion(_) | Self::Blocked(_) | Self::CallBlocked(_) => false,
        }
    }
}

impl LaunchWait {
    fn reason(&self) -> Reason {
        match self {
            Self::ClassNotFound(_) => Reason::NodeClassNotFound,
            Self::NoSubnet { .. } | Self::NoAllowedType { .. } => Reason::NodeClassMismatch,
            Self::NoCapacity { .. } | Self::NoCapacityFor(..) => Reason::InsufficientCapacity,
            Self::Quota => Reason::QuotaExceeded,
            Self::Requested { .. }
            | Self::Adopted(_)
            | Self::AdoptedLater(_)
            | Self::Found(_)
            | Self::NotListed(_)
            | Self::Starting(_)
            | Self::UnknownState(_)
            | Self::Unwanted(..) => Reason::Launching,
            Self::Resent(_) | Self::InDoubt(..) => Reason::InDoubt,
            Self::Throttled => Reason::Throttled,
            Self::Forbidden(_) => Reason::Forbidden,
            Self::Invalid { .. } => Reason::InvalidRequest,
        }
    }

    fn is_stalled(&self) -> bool {
        matches!(self, Self::ClassNotFound(_) | Self::NoSubnet { .. } | Self::NoAllowedType { .. } | Self::Invalid { .. })
    }
}

impl JoinWait {
    fn reason(&self) -> Reason {
        match self {
            Self::Registration(_) => Reason::AwaitingRegistration,
            Self::NotRegistered(_) | Self::Ended(..) | Self::NeverJoins { .. } => Reason::NeverJoined,
            Self::Registered(_) | Self::Initialization(_) | Self::InitializationOverdue { .. } => Reason::AwaitingInitialization,
            Self::NotReady(_) | Self::KubernetesNodeGone(_) | Self::KubernetesNodeEnding(_) | Self::KubernetesNodeEndingChecked(_) => {
                Reason::NodeNotReady
            }
            Self::KubernetesNodeDeleted(_) => Reason::KubernetesNodeDeleted,
        }
    }
}

impl LossWait {
    fn reason(&self) -> Reason {
        match self {
            Self::Suspected(cause, _) => cause.reason(),
            Self::RepairPostponed(_, blocker) => blocker.reason,
            Self::Fencing { .. }
            | Self::Attached { .. }
            | Self::Replaced { .. }
            | Self::Terminated(..)
            | Self::ShuttingDown(_)
            | Self::StoppedBeforeJoin(_) => Reason::InstanceLost,
        }
    }
}

impl DeletionWait {
    fn reason(&self) -> Reason {
        match self {
            Self::OtherFinalizers | Self::Adopted(_) | Self::Found(_) | Self::Gone => Reason::Deleting,
            Self::NotResent => Reason::InDoubt,
            Self::Absence(_) | Self::Terminated(_) | Self::ShuttingDown(_) | Self::StoppedTerminated { .. } | Self::Duplicates(_) => {
                Reason::AwaitingTermination
            }
            Self::Attached(_) => Reason::AwaitingDetach,
        }
    }
}

impl From<LaunchWait> for NodeWait {
    fn from(wait: LaunchWait) -> Self {
        Self::Launch(wait)
    }
}

impl From<JoinWait> for NodeWait {
    fn from(wait: JoinWait) -> Self {
        Self::Join(wait)
    }
}

impl From<LossWait> for NodeWait {
    fn from(wait: LossWait) -> Self {
        Self::Loss(wait)
    }
}

impl From<DeletionWait> for NodeWait {
    fn from(wait: DeletionWait) -> Self {
        Self::Deletion(wait)
    }
}

impl From<Blocker> for NodeWait {
    fn from(blocker: Blocker) -> Self {
        Self::Blocked(blocker)
    }
}

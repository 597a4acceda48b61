//! What a machine that is lost, or may be, waits for, and how it is fenced. Pure.

use jiff::Timestamp;

use crate::api::{InstanceId, Reason};
use crate::controller::blocker::Blocker;
use crate::controller::node::cause::{Cause, LossSigns};

/// What a machine that is lost, or may be, waits for. `loss` is the recorded message of the loss.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum LossWait {
    /// There are signs of a loss that may pass; this one comes due first.
    Suspected(Cause, LossSigns),
    /// The signs have not passed in time, and so many machines of the database were replaced before, one soon
    /// after the other, that this one is left as it is for long.
    Recurring {
        /// The signs.
        signs: LossSigns,
        /// The one that comes due first.
        cause: Cause,
        /// When the machine is declared lost.
        due: Timestamp,
        /// How many machines.
        before: i32,
        /// The Node.
        node: String,
    },
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum FenceStep {
    /// EC2 is requested to stop the instance.
    Stop,
    /// EC2 is requested to stop the instance by force.
    ForceStop,
    /// EC2 is requested to terminate the instance.
    Terminate,
    /// Both, alternately.
    Alternate,
    /// Nothing is left to request.
    AwaitProof,
}

/// How EC2 shows that nothing on a machine can write any more.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
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

impl LossWait {
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::Suspected(cause, _) | Self::Recurring { cause, .. } => cause.reason(),
            Self::RepairPostponed(_, blocker) => blocker.reason(),
            Self::Fencing { .. }
            | Self::Attached { .. }
            | Self::Replaced { .. }
            | Self::Terminated(..)
            | Self::ShuttingDown(_)
            | Self::StoppedBeforeJoin(_) => Reason::InstanceLost,
        }
    }
}

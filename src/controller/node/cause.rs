//! The signs that a machine is lost, what each of them is called, and how long it may last. Pure.

use jiff::Timestamp;
use strum::EnumIter;

use crate::api::{InstanceId, Reason};
use crate::settings::Timing;
use crate::time::later;

/// A fact that speaks against a machine that had joined; an earlier one is reported rather than a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, EnumIter)]
pub enum Cause {
    /// EC2 shows the instance terminated, or it is proven gone.
    Terminated,
    /// EC2 shows it stopped.
    Stopped,
    /// EC2 is terminating it.
    ShuttingDown,
    /// EC2 is stopping it.
    Stopping,
    /// It runs, and EC2's system or instance check fails.
    Impaired,
    /// It runs, and its kubelet is not Ready.
    NotReady,
    /// It runs, and its Kubernetes node is gone.
    NodeGone,
}

impl Cause {
    /// The reason of the condition Lost.
    pub fn reason(self) -> Reason {
        match self {
            Self::Terminated | Self::ShuttingDown => Reason::InstanceTerminated,
            Self::Stopped | Self::Stopping => Reason::InstanceStopped,
            Self::Impaired => Reason::InstanceImpaired,
            Self::NotReady => Reason::NodeNotReady,
            Self::NodeGone => Reason::NodeGone,
        }
    }

    /// Whether it may pass by itself, so that the machine is declared lost only after `loss_grace_period`.
    /// What EC2 ends or stops does not come back.
    pub fn has_grace(self) -> bool {
        match self {
            Self::Terminated | Self::Stopped | Self::ShuttingDown | Self::Stopping => false,
            Self::Impaired | Self::NotReady | Self::NodeGone => true,
        }
    }

    /// Whether it is itself the proof that nothing on the machine can write any more.
    pub fn is_proof(self) -> bool {
        matches!(self, Self::Terminated | Self::Stopped)
    }

    /// When the machine is declared lost for it, had it been there since then.
    pub fn due(self, since: Timestamp, timing: &Timing) -> Timestamp {
        if self.has_grace() { later(since, timing.loss_grace_period) } else { since }
    }
}

/// Every sign that a machine is lost, each with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LossSigns {
    /// The instance.
    pub instance: InstanceId,
    /// Its Kubernetes node.
    pub core_node: String,
    /// The signs, each with the moment since which it is there.
    pub causes: Vec<(Cause, Timestamp)>,
}

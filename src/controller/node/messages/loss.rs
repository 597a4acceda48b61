//! The sentences of a machine that is lost, or may be, and of its fencing. Pure.

use super::because;
use crate::controller::messages;
use crate::controller::node::cause::{Cause, LossSigns};
use crate::controller::node::wait::loss::{Attached, FenceStep, LossWait};
use crate::time::whole_second;

impl LossWait {
    pub(super) fn message(&self) -> String {
        match self {
            Self::Suspected(_, signs) => signs.message(),
            Self::Recurring { signs, due, before, node, cause: _ } => format!(
                "{}. {} replaced before this one, each within an hour of its launch, so that nothing is done \
                 to it before {}: find out what ends the machines; to replace this one at once, delete \
                 node.freehold.dev/{node}",
                signs.message(),
                messages::machines_were(*before),
                whole_second(*due)
            ),
            Self::RepairPostponed(signs, blocker) => format!("{}; {}", signs.message(), blocker.message()),
            Self::Fencing { loss, step } => format!("{loss}; {}", step.message()),
            Self::Attached { loss, attached } => format!("{loss}; {}", attached.message()),
            Self::Replaced { loss } => format!("{loss}; another machine takes its place"),
            Self::Terminated(id, why) => {
                format!("instance {id} is terminated{}: this machine is lost", because(why.as_deref()))
            }
            Self::ShuttingDown(id) => format!("EC2 is terminating instance {id}"),
            Self::StoppedBeforeJoin(id) => {
                format!("instance {id} was stopped before it joined the cluster, and is terminated")
            }
        }
    }
}

impl LossSigns {
    /// Every sign with its time.
    pub fn message(&self) -> String {
        let signs = self
            .causes
            .iter()
            .map(|(cause, since)| format!("{} since {}", self.sign(*cause), whole_second(*since)));
        signs.collect::<Vec<_>>().join(", and ")
    }

    fn sign(&self, cause: Cause) -> String {
        let Self { instance, core_node, .. } = self;
        match cause {
            Cause::Terminated => format!("EC2 reports instance {instance} terminated"),
            Cause::Stopped => format!("EC2 reports instance {instance} stopped"),
            Cause::ShuttingDown => format!("EC2 is terminating instance {instance}"),
            Cause::Stopping => format!("EC2 is stopping instance {instance}"),
            Cause::Impaired => format!("EC2's status checks of instance {instance} fail"),
            Cause::NotReady => format!("Kubernetes node {core_node} is not Ready"),
            Cause::NodeGone => format!("instance {instance} runs without its Kubernetes node {core_node}"),
        }
    }
}

impl FenceStep {
    /// What is done in it.
    pub fn message(self) -> &'static str {
        match self {
            Self::Stop => "requesting EC2 to stop the instance",
            Self::ForceStop => "requesting EC2 to force-stop the instance",
            Self::Terminate => "requesting EC2 to terminate the instance",
            Self::Alternate => "alternating forced stop and terminate requests",
            Self::AwaitProof => "waiting for EC2 to report the instance stopped or terminated",
        }
    }
}

impl Attached {
    pub(super) fn message(&self) -> String {
        let names = self.names.join(", ");
        match self.overdue_since {
            Some(since) => {
                format!(
                    "VolumeAttachments {names} still exist since {since}; check the ebs-csi-controller and \
                    csi-attacher logs"
                )
            }
            None => format!("waiting for Kubernetes to delete VolumeAttachments {names}"),
        }
    }
}

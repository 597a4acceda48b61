//! Why a Node that is being deleted is not gone yet. Pure.

use super::loss::Attached;
use crate::api::{InstanceId, Reason};
use crate::controller::blocker::Blocker;

/// What the deletion of a Node waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
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
    /// What Freehold has put on an instance is taken off.
    Releasing(InstanceId),
    /// The instance goes on running without Freehold.
    Released(InstanceId),
    /// The machine is gone.
    Gone,
}

impl DeletionWait {
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::OtherFinalizers
            | Self::Adopted(_)
            | Self::Found(_)
            | Self::Releasing(_)
            | Self::Released(_)
            | Self::Gone => Reason::Deleting,
            Self::NotResent => Reason::InDoubt,
            Self::Absence(_)
            | Self::Terminated(_)
            | Self::ShuttingDown(_)
            | Self::StoppedTerminated { .. }
            | Self::Duplicates(_) => Reason::AwaitingTermination,
            Self::Attached(_) => Reason::AwaitingDetach,
        }
    }
}

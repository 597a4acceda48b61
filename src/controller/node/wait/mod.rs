//! What a Node waits for: a value with the data of the wait, its reason, and whether a person must act.
//! Pure.
//!
//! The sentences are in `messages`.

pub mod adoption;
pub mod deletion;
pub mod join;
pub mod launch;
pub mod loss;

use self::adoption::AdoptionWait;
use self::deletion::DeletionWait;
use self::join::JoinWait;
use self::launch::LaunchWait;
use self::loss::LossWait;
use crate::api::Reason;
use crate::controller::blocker::Blocker;
use crate::controller::call_blocked::CallBlocked;

/// What a Node waits for.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum NodeWait {
    /// The finalizer is being added.
    Finalizer,
    /// The first full EC2 inventory sync since the operator started.
    FirstSync,
    /// The launch of an instance.
    Launch(LaunchWait),
    /// The adoption of an instance that ran before.
    Adoption(AdoptionWait),
    /// The instance has to join the cluster and to become ready.
    Join(JoinWait),
    /// The machine is lost, or may be.
    Loss(LossWait),
    /// The Node is being deleted.
    Deletion(DeletionWait),
    /// Something destructive is not allowed yet.
    Blocked(Blocker),
    /// EC2 did not accept a request.
    CallBlocked(CallBlocked),
}

impl NodeWait {
    /// The reason of the conditions.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Finalizer => Reason::Progressing,
            Self::FirstSync => Reason::AwaitingInventory,
            Self::Launch(wait) => wait.reason(),
            Self::Adoption(wait) => wait.reason(),
            Self::Join(wait) => wait.reason(),
            Self::Loss(wait) => wait.reason(),
            Self::Deletion(wait) => wait.reason(),
            Self::Blocked(blocker) => blocker.reason(),
            Self::CallBlocked(call_blocked) => call_blocked.reason(),
        }
    }

    /// Whether nothing changes until a person does something.
    pub fn is_stalled(&self) -> bool {
        match self {
            Self::Launch(wait) => matches!(
                wait,
                LaunchWait::ClassNotFound(_)
                    | LaunchWait::ClassNotReady { .. }
                    | LaunchWait::SharedDevice { .. }
                    | LaunchWait::NoSubnet { .. }
                    | LaunchWait::SubnetElsewhere { .. }
                    | LaunchWait::NoAllowedType { .. }
                    | LaunchWait::Invalid { .. }
            ),
            Self::Adoption(wait) => {
                matches!(wait, AdoptionWait::Refused { .. } | AdoptionWait::NotRunning(_))
            }
            Self::Join(wait) => {
                matches!(wait, JoinWait::NeverJoins { .. } | JoinWait::InitializationOverdue { .. })
            }
            Self::Loss(wait) => matches!(wait, LossWait::Recurring { .. }),
            Self::Finalizer
            | Self::FirstSync
            | Self::Deletion(_)
            | Self::Blocked(_)
            | Self::CallBlocked(_) => false,
        }
    }

    /// Whether it may last for days, or ends only when a person acts: what EC2 shows of it is then read once
    /// a minute, and not every few seconds.
    pub fn takes_long(&self) -> bool {
        matches!(self, Self::Launch(LaunchWait::Quota(..)) | Self::Deletion(DeletionWait::Duplicates(_)))
    }
}

impl From<LaunchWait> for NodeWait {
    fn from(wait: LaunchWait) -> Self {
        Self::Launch(wait)
    }
}

impl From<AdoptionWait> for NodeWait {
    fn from(wait: AdoptionWait) -> Self {
        Self::Adoption(wait)
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

//! What makes a pass follow for each wait of a Node: `docs/development/waking.md` as data, which `check.rs`
//! holds every plan to. Pure.

use super::action::{Action, Plan};
use super::facts::is_known;
use crate::controller::node::observe::Observed;
use crate::controller::node::wait::NodeWait;
use crate::controller::node::wait::adoption::AdoptionWait;
use crate::controller::node::wait::deletion::DeletionWait;
use crate::controller::node::wait::join::{JoinWait, Missing};
use crate::controller::node::wait::launch::LaunchWait;
use crate::controller::node::wait::loss::LossWait;

/// What makes the next pass over a Node follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// The Node's own watch: its spec changes, it is deleted, or a finalizer is removed.
    Itself,
    /// The Node's own watch: this plan writes to the Node.
    OwnWrite,
    /// The watch of NodeClasses.
    NodeClass,
    /// The watch of Kubernetes nodes, which finds the Node by the instance that its status names.
    KubernetesNode,
    /// The first full EC2 inventory sync; until then passes follow each other anyway.
    FirstSync,
    /// A full EC2 inventory sync that shows a change, however late it is.
    Sync,
    /// Frequent EC2 inventory syncs, and the look-ups of a proof: the plan is pending.
    Interest,
    /// The time that the plan gives.
    Time,
}

/// Everything that may end this wait: each of it must be able to make a pass follow.
pub(super) fn wakes(wait: &NodeWait) -> &'static [Wake] {
    match wait {
        NodeWait::Finalizer => &[Wake::OwnWrite],
        NodeWait::FirstSync => &[Wake::FirstSync],
        NodeWait::Launch(wait) => of_launch(wait),
        NodeWait::Adoption(wait) => of_adoption(wait),
        NodeWait::Join(wait) => of_join(wait),
        NodeWait::Loss(wait) => of_loss(wait),
        NodeWait::Deletion(wait) => of_deletion(wait),
        NodeWait::Blocked(_) | NodeWait::CallBlocked(_) => &[Wake::Time],
    }
}

fn of_launch(wait: &LaunchWait) -> &'static [Wake] {
    match wait {
        LaunchWait::ClassNotFound(_)
        | LaunchWait::ClassNotReady { .. }
        | LaunchWait::SharedDevice { .. }
        | LaunchWait::NoSubnet { .. }
        | LaunchWait::NoAllowedType { .. } => &[Wake::Itself, Wake::NodeClass],
        LaunchWait::Invalid { .. } | LaunchWait::SubnetElsewhere { .. } => {
            &[Wake::Itself, Wake::NodeClass, Wake::Time]
        }
        LaunchWait::NoCapacity { .. }
        | LaunchWait::NoCapacityFor(..)
        | LaunchWait::Quota(..)
        | LaunchWait::Throttled
        | LaunchWait::Forbidden(_) => &[Wake::Time],
        LaunchWait::Adopted(_) | LaunchWait::AdoptedLater(_) | LaunchWait::Found(_) => &[Wake::OwnWrite],
        LaunchWait::Requested { .. }
        | LaunchWait::NotListed(_)
        | LaunchWait::Starting(_)
        | LaunchWait::Unwanted(..)
        | LaunchWait::Resent(_)
        | LaunchWait::StatusLost
        | LaunchWait::InDoubt(..) => &[Wake::Interest],
        LaunchWait::UnknownState(_) => &[Wake::Sync],
    }
}

fn of_adoption(wait: &AdoptionWait) -> &'static [Wake] {
    match wait {
        // What is not in the inventory wakes nothing.
        AdoptionWait::NotRead(_)
        | AdoptionWait::Refused { .. }
        | AdoptionWait::NotRunning(_)
        | AdoptionWait::NoKubernetesNode { .. } => &[Wake::Time],
        AdoptionWait::Adopting(_) => &[Wake::OwnWrite, Wake::Interest],
        AdoptionWait::Tagging(_) | AdoptionWait::TagsNotShown(_) => &[Wake::Interest],
    }
}

fn of_join(wait: &JoinWait) -> &'static [Wake] {
    match wait {
        JoinWait::Registration(_) => &[Wake::KubernetesNode, Wake::Time],
        JoinWait::NotRegistered(_) => &[Wake::Interest],
        JoinWait::NeverJoins { .. } => &[Wake::Itself, Wake::NodeClass, Wake::Time],
        // A CSINode may come before the status has its name: only the time is certain.
        JoinWait::Ended(..)
        | JoinWait::DriverGone(_)
        | JoinWait::KubernetesNodeEndingChecked(_)
        | JoinWait::Initialization(Missing::Driver(_))
        | JoinWait::InitializationOverdue { missing: Missing::Driver(_), .. } => &[Wake::Time],
        JoinWait::Registered(_)
        | JoinWait::Initialization(Missing::Dedication(_) | Missing::Ready(_))
        | JoinWait::InitializationOverdue { missing: Missing::Dedication(_) | Missing::Ready(_), .. }
        | JoinWait::NotReady(_)
        | JoinWait::KubernetesNodeGone(_)
        | JoinWait::KubernetesNodeEnding(_) => &[Wake::KubernetesNode],
        // The Database deletes the Node.
        JoinWait::KubernetesNodeDeleted(_) => &[Wake::Itself],
        JoinWait::EventScheduled { .. } => &[Wake::Itself, Wake::Sync],
        JoinWait::EventRecorded(_) => &[Wake::Itself, Wake::Time],
        JoinWait::Cordoned { .. } => &[Wake::Itself, Wake::KubernetesNode],
    }
}

fn of_loss(wait: &LossWait) -> &'static [Wake] {
    match wait {
        LossWait::Suspected(..)
        | LossWait::Recurring { .. }
        | LossWait::RepairPostponed(..)
        | LossWait::Attached { .. } => &[Wake::Time],
        LossWait::Fencing { .. } => &[Wake::Interest, Wake::Time],
        // The Database deletes the Node.
        LossWait::Replaced { .. } | LossWait::Terminated(..) => &[Wake::Itself],
        LossWait::ShuttingDown(_) | LossWait::StoppedBeforeJoin(_) => &[Wake::Interest],
    }
}

fn of_deletion(wait: &DeletionWait) -> &'static [Wake] {
    match wait {
        DeletionWait::OtherFinalizers => &[Wake::Itself],
        DeletionWait::Adopted(_)
        | DeletionWait::Found(_)
        | DeletionWait::Released(_)
        | DeletionWait::Gone => &[Wake::OwnWrite],
        DeletionWait::Absence(_)
        | DeletionWait::NotResent
        | DeletionWait::Terminated(_)
        | DeletionWait::ShuttingDown(_)
        | DeletionWait::StoppedTerminated { .. }
        | DeletionWait::Releasing(_)
        | DeletionWait::Duplicates(_) => &[Wake::Interest],
        DeletionWait::Attached(_) => &[Wake::Time],
    }
}

/// Whether this can make a pass follow after this plan.
pub(super) fn is_registered(wake: Wake, observed: &Observed, plan: &Plan) -> bool {
    let status = observed.node.status.as_ref();
    match wake {
        Wake::Itself | Wake::NodeClass => true,
        Wake::OwnWrite => plan.actions.iter().any(writes_the_node),
        Wake::KubernetesNode => status.is_some_and(|status| status.instance_id.is_some()),
        Wake::FirstSync => observed.instances.swept_at.is_none(),
        Wake::Sync => is_known(observed),
        Wake::Interest => plan.pending,
        Wake::Time => plan.requeue.is_some(),
    }
}

fn writes_the_node(action: &Action) -> bool {
    match action {
        Action::AddFinalizer
        | Action::Launch(..)
        | Action::Resend(_)
        | Action::RecordInstance(_)
        | Action::Adopt(..)
        | Action::DeclareLost(_)
        | Action::RemoveFinalizer => true,
        Action::Tag(..)
        | Action::Untag(..)
        | Action::MarkUnavailable(..)
        | Action::LogConsole(_)
        | Action::Terminate(..)
        | Action::Stop(..)
        | Action::OutOfService(_)
        | Action::Dedicate(_)
        | Action::HoldCoreNode(_)
        | Action::Cordon(..)
        | Action::EvictPod { .. }
        | Action::EvictForeignPod { .. }
        | Action::ReleaseCoreNode(_)
        | Action::RestoreCoreNode(_) => false,
    }
}

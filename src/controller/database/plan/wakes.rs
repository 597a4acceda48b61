//! What makes a pass follow for each wait of a Database: `docs/development/waking.md` as data, which
//! `check.rs` holds every plan to. Pure.

use super::action::{Action, Plan};
use crate::controller::database::wait::{DatabaseWait, ReloadWait, ReplaceStep, RestartStep, UpgradeWait};

/// What makes the next pass over a Database follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// The Database's own watch, or that of its NodeClass, Nodes, Volume, StatefulSet and pod.
    Watch,
    /// The Database's own watch: this plan writes to the Database.
    OwnWrite,
    /// The time that the plan gives: namespaces, Secrets, retention records, Kubernetes nodes,
    /// VolumeAttachments and the objects of others are not watched.
    Time,
}

/// What ends this wait, and must be able to make a pass follow; `None` for what only a status shows.
pub(super) fn wake(wait: &DatabaseWait) -> Option<Wake> {
    match wait {
        DatabaseWait::AddingFinalizer | DatabaseWait::ResourcesDeleted => Some(Wake::OwnWrite),
        DatabaseWait::Replacing { step: ReplaceStep::AwaitingSuccessor { wait, .. }, .. } => wake(wait),
        DatabaseWait::Replacing {
            step: ReplaceStep::Recurring { .. } | ReplaceStep::NoRoom { .. }, ..
        }
        | DatabaseWait::RestartPending { step: RestartStep::NoRoom(_), .. }
        | DatabaseWait::PodAltered { step: RestartStep::Unsettled(Some(_)), .. }
        | DatabaseWait::RestartPending { step: RestartStep::Unsettled(Some(_)), .. }
        | DatabaseWait::NotPermitted(_)
        | DatabaseWait::NameConflict { .. }
        | DatabaseWait::CredentialsUnusable { .. }
        | DatabaseWait::AdoptionRefused(_)
        | DatabaseWait::Restore(_)
        | DatabaseWait::Rotation(_)
        | DatabaseWait::Tls(_)
        | DatabaseWait::Upgrade(
            UpgradeWait::AwaitingBackup(_)
            | UpgradeWait::BackupFailed(_)
            | UpgradeWait::Recording
            | UpgradeWait::Opening
            | UpgradeWait::BackingUp(..)
            | UpgradeWait::GoingBack(_)
            | UpgradeWait::AwaitingSnapshot(_)
            | UpgradeWait::NoWayBack(..),
        )
        | DatabaseWait::Reload(ReloadWait::Asking | ReloadWait::Unanswered(_) | ReloadWait::Loading)
        | DatabaseWait::DataRetained { .. }
        | DatabaseWait::NotAdoptable(_)
        | DatabaseWait::AdoptingStatefulSet(_)
        | DatabaseWait::Releasing { .. }
        | DatabaseWait::NotReleasable(_)
        | DatabaseWait::ClaimUnusable(..)
        | DatabaseWait::FormerVolumeExists(_)
        | DatabaseWait::Adopting { .. }
        | DatabaseWait::KubernetesNodeGone { .. }
        | DatabaseWait::MovingPod(_)
        | DatabaseWait::Attaching(_)
        | DatabaseWait::Flushing { .. }
        | DatabaseWait::StoppingEngine(_)
        | DatabaseWait::ApplicationUser { state: None, .. }
        | DatabaseWait::RetainedSecretConflict(_) => Some(Wake::Time),
        DatabaseWait::InvalidSpec(_)
        | DatabaseWait::VolumeLost { .. }
        | DatabaseWait::CreatingNode(_)
        | DatabaseWait::NodeUnusable { .. }
        | DatabaseWait::NodeNotInitialized(_)
        | DatabaseWait::ZoneNotChosen
        | DatabaseWait::CreatingVolume { .. }
        | DatabaseWait::VolumeNotBound(_)
        | DatabaseWait::UpdatingChild(_)
        | DatabaseWait::Child { .. }
        | DatabaseWait::ApplicationUser { state: Some(_), .. }
        | DatabaseWait::Replacing { .. }
        | DatabaseWait::RestartPending { .. }
        | DatabaseWait::PodAltered { .. }
        | DatabaseWait::StartingEngine
        | DatabaseWait::Engine(_)
        | DatabaseWait::Reload(ReloadWait::Rejected(_))
        | DatabaseWait::WentBack(..)
        | DatabaseWait::EngineWentBack(..)
        | DatabaseWait::Upgrade(UpgradeWait::NothingServed(_) | UpgradeWait::WentBack { .. })
        | DatabaseWait::NotGoingBack { .. }
        | DatabaseWait::DeletingNode { .. }
        | DatabaseWait::Paused
        | DatabaseWait::DeletingVolume { .. }
        | DatabaseWait::ReleasingVolume(_)
        | DatabaseWait::OtherFinalizers => Some(Wake::Watch),
        DatabaseWait::EngineOutdated
        | DatabaseWait::EngineMachineLost(_)
        | DatabaseWait::NoEngine(_)
        | DatabaseWait::NoMachine(_)
        | DatabaseWait::MachineLost { .. }
        | DatabaseWait::NoVolume
        | DatabaseWait::ChildRefused { .. }
        | DatabaseWait::NotRecreatable(..)
        | DatabaseWait::StepFailed { .. } => None,
    }
}

/// Whether this can make a pass follow after this plan.
pub(super) fn is_registered(wake: Wake, plan: &Plan) -> bool {
    match wake {
        Wake::Watch => true,
        Wake::OwnWrite => {
            plan.actions.iter().any(|action| matches!(action, Action::AddFinalizer | Action::RemoveFinalizer))
        }
        Wake::Time => plan.requeue.is_some(),
    }
}

//! The reason of each wait of a Database for its conditions, and whether a person must act. Pure.

use super::cause::{LostReason, ReplaceCause};
use super::pod::EngineWait;
use super::tls_wait::TlsWait;
use super::unreleasable::Unreleasable;
use super::wait::{ChildState, DatabaseWait, ReplaceStep, RestartStep, RotationWait};
use crate::api::Reason;

impl DatabaseWait {
    /// Why, for the conditions.
    pub fn reason(&self) -> Reason {
        match self {
            Self::AddingFinalizer | Self::UpdatingChild(_) | Self::StepFailed { .. } => Reason::Progressing,
            Self::InvalidSpec(_) => Reason::InvalidSpec,
            Self::NotPermitted(refusal) => refusal.reason(),
            Self::NameConflict { .. }
            | Self::RetainedSecretConflict(_)
            | Self::ApplicationUser { state: None, .. } => Reason::NameConflict,
            Self::CredentialsUnusable { .. } => Reason::CredentialsUnreadable,
            Self::AdoptionRefused(_) | Self::NotAdoptable(_) => Reason::AdoptionRefused,
            Self::Restore(wait) => wait.reason(),
            Self::Rotation(wait) => wait.reason(),
            Self::Reload(wait) => wait.reason(),
            Self::Tls(wait) => wait.reason(),
            Self::Upgrade(wait) => wait.reason(),
            Self::FormerVolumeExists(_) | Self::Adopting { .. } | Self::AdoptingStatefulSet(_) => {
                Reason::Adopting
            }
            Self::DataRetained { .. } => Reason::RetainedVolumeFound,
            Self::VolumeLost { .. } => Reason::VolumeLost,
            Self::CreatingNode(_)
            | Self::NodeUnusable { .. }
            | Self::NodeNotInitialized(_)
            | Self::ZoneNotChosen
            | Self::DeletingNode { .. } => Reason::AwaitingNode,
            Self::KubernetesNodeGone { .. } => Reason::NodeNotReady,
            Self::CreatingVolume { .. }
            | Self::VolumeNotBound(_)
            | Self::NoVolume
            | Self::DeletingVolume { .. } => Reason::AwaitingVolume,
            Self::Child { object, state } => state.reason().unwrap_or_else(|| object.kind.awaited()),
            Self::ApplicationUser { state: Some(state), .. } => state.reason().unwrap_or(Reason::Progressing),
            Self::Replacing { cause, step, .. } => step.reason(cause),
            Self::MovingPod(_) => Reason::Moving,
            Self::ClaimUnusable(..) => Reason::AwaitingBinding,
            Self::RestartPending { .. } | Self::EngineOutdated => Reason::RestartPending,
            Self::PodAltered { .. } => Reason::Altered,
            Self::StartingEngine => Reason::AwaitingPod,
            Self::Attaching(_) => Reason::AwaitingAttach,
            Self::Engine(wait) | Self::NotGoingBack { wait, .. } => wait.reason(),
            Self::WentBack(..) | Self::EngineWentBack(..) => Reason::WentBack,
            Self::EngineMachineLost(LostReason(reason))
            | Self::MachineLost { reason: LostReason(reason), .. } => *reason,
            Self::NoEngine(idle) => idle.reason(Reason::AwaitingPod),
            Self::NoMachine(idle) => idle.reason(Reason::AwaitingNode),
            Self::Flushing { stop, .. } => stop.reason(),
            Self::StoppingEngine(blocker) => blocker.reason(),
            Self::Paused => Reason::Paused,
            Self::ResourcesDeleted
            | Self::OtherFinalizers
            | Self::Releasing { .. }
            | Self::ReleasingVolume(_)
            | Self::NotReleasable(_) => Reason::Deleting,
            Self::ChildRefused { .. } | Self::NotRecreatable(..) => Reason::ChildRefused,
        }
    }

    /// Whether nothing changes until a person acts.
    pub fn is_stalled(&self) -> bool {
        match self {
            Self::NotPermitted(refusal) => refusal.is_final(),
            Self::Restore(wait) => wait.is_stalled(),
            Self::Rotation(wait) => wait.is_stalled(),
            Self::Reload(wait) => wait.is_stalled(),
            Self::Tls(wait) => wait.is_stalled(),
            Self::Upgrade(wait) => wait.is_stalled(),
            Self::NotAdoptable(refusal) => refusal.is_final(),
            Self::ClaimUnusable(_, fault) => fault.is_final(),
            Self::InvalidSpec(_)
            | Self::NameConflict { .. }
            | Self::CredentialsUnusable { .. }
            | Self::AdoptionRefused(_)
            | Self::DataRetained { .. }
            | Self::VolumeLost { .. }
            | Self::NotReleasable(Unreleasable::Paused)
            | Self::NotRecreatable(..)
            | Self::WentBack(..)
            | Self::EngineWentBack(..)
            | Self::NotGoingBack { .. }
            | Self::RetainedSecretConflict(_)
            | Self::Replacing {
                step: ReplaceStep::NoRoom { .. } | ReplaceStep::Recurring { is_stalled: true, .. },
                ..
            }
            | Self::RestartPending { step: RestartStep::NoRoom(_), .. }
            | Self::ApplicationUser { state: None | Some(ChildState::Stalled { .. }), .. }
            | Self::Child { state: ChildState::Stalled { .. }, .. } => true,
            Self::Replacing { step: ReplaceStep::AwaitingSuccessor { wait, .. }, .. } => wait.is_stalled(),
            Self::AddingFinalizer
            | Self::FormerVolumeExists(_)
            | Self::Adopting { .. }
            | Self::AdoptingStatefulSet(_)
            | Self::Releasing { .. }
            | Self::ReleasingVolume(_)
            | Self::NotReleasable(_)
            | Self::CreatingNode(_)
            | Self::NodeUnusable { .. }
            | Self::NodeNotInitialized(_)
            | Self::KubernetesNodeGone { .. }
            | Self::ZoneNotChosen
            | Self::CreatingVolume { .. }
            | Self::VolumeNotBound(_)
            | Self::UpdatingChild(_)
            | Self::Child { .. }
            | Self::ApplicationUser { .. }
            | Self::Replacing { .. }
            | Self::MovingPod(_)
            | Self::RestartPending { .. }
            | Self::PodAltered { .. }
            | Self::StartingEngine
            | Self::Attaching(_)
            | Self::Engine(_)
            | Self::EngineOutdated
            | Self::EngineMachineLost(_)
            | Self::NoEngine(_)
            | Self::NoMachine(_)
            | Self::MachineLost { .. }
            | Self::NoVolume
            | Self::Flushing { .. }
            | Self::StoppingEngine(_)
            | Self::DeletingNode { .. }
            | Self::Paused
            | Self::DeletingVolume { .. }
            | Self::ResourcesDeleted
            | Self::OtherFinalizers
            | Self::ChildRefused { .. }
            | Self::StepFailed { .. } => false,
        }
    }

    /// Whether it is what a running engine does, which no watch shows.
    pub fn is_of_running_engine(&self) -> bool {
        matches!(self, Self::Rotation(_) | Self::Reload(_) | Self::Tls(TlsWait::Loading(_)))
    }

    /// Whether it is of the end of an engine that Freehold stops.
    pub fn is_of_stop(&self) -> bool {
        matches!(
            self,
            Self::MovingPod(_)
                | Self::RestartPending { .. }
                | Self::StoppingEngine(_)
                | Self::Rotation(RotationWait::Stopping)
        )
    }

    /// Whether a machine has too little room for the pod.
    pub fn is_for_room(&self) -> bool {
        matches!(self, Self::RestartPending { step: RestartStep::NoRoom(_), .. })
    }

    /// Whether the engine fails by itself.
    pub fn is_engine_failing(&self) -> bool {
        matches!(self, Self::Engine(EngineWait::Failing { .. }))
    }
}

impl ReplaceStep {
    /// A lost machine keeps its own reason until the database can move.
    fn reason(&self, cause: &ReplaceCause) -> Reason {
        match self {
            Self::AfterFormer(_) | Self::DeletedFirst | Self::SuccessorUnfit { .. } | Self::NoRoom { .. } => {
                Reason::AwaitingNode
            }
            Self::MovingBack(_) => Reason::Moving,
            Self::Creating(_) | Self::Recurring { .. } => cause.lost_reason().unwrap_or(Reason::AwaitingNode),
            Self::AwaitingSuccessor { wait, .. } => cause.lost_reason().unwrap_or_else(|| wait.reason()),
            Self::Unfenced { blocker, .. } => blocker.reason(),
        }
    }
}

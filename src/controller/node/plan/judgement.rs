//! What a pass judges of a machine: the plan decides by it, and the status shows it. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::node::Fence;
use crate::controller::node::cause::{Cause, LossSigns};
use crate::controller::node::wait::loss::{FenceStep, Proof};
use crate::settings::Timing;
use crate::time::{later, whole_second};

/// What a pass judges of a machine, once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    /// Whether it is lost.
    pub loss: Judgement,
    /// The proof that nothing on it can write any more, if EC2 shows one.
    pub proof: Option<Proof>,
}

/// What the facts say of a machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Judgement {
    /// Nothing speaks against it; or it has not joined, and its attempt is judged by the create protocol.
    #[default]
    Well,
    /// Something does, and may pass by itself.
    Suspected(Loss),
    /// It is to be declared lost, and that is not written down yet.
    Due(Loss, Lost),
    /// It is declared lost. Nothing takes that back: a machine that comes back would find its database
    /// elsewhere.
    Lost(Lost),
}

/// What speaks against a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The cause that comes due first.
    pub cause: Cause,
    /// Since when it is there.
    pub since: Timestamp,
    /// When the machine is declared lost for it.
    pub due: Timestamp,
    /// How many machines of its database were replaced before it, one soon after the other.
    pub before: i32,
    /// Every cause, with its time.
    pub signs: LossSigns,
}

impl Loss {
    /// The decision to declare the machine lost for it, made now.
    pub fn declared_lost(&self, now: Timestamp) -> Fence {
        Fence {
            started_at: Time(whole_second(now)),
            cause: self.cause.reason().as_str().to_owned(),
            since: Time(whole_second(self.since)),
            message: self.signs.message(),
        }
    }
}

/// A machine that is declared lost, and how far its fence is.
#[derive(Clone, Debug, PartialEq)]
pub struct Lost {
    /// The decision.
    pub fence: Fence,
    /// The stage now.
    pub stage: Stage,
    /// Since when.
    pub begun: Timestamp,
    /// Until when; `None` for the last stage.
    pub ends: Option<Timestamp>,
}

impl Lost {
    /// By this decision, as of now.
    pub fn by(fence: Fence, timing: &Timing, now: Timestamp) -> Self {
        let mut begun = fence.started_at.0;
        for stage in [Stage::Stop, Stage::ForceStop, Stage::Terminate] {
            let ends = later(begun, timing.fence_step_timeout);
            if now < ends {
                return Self { fence, stage, begun, ends: Some(ends) };
            }
            begun = ends;
        }
        Self { fence, stage: Stage::Failed, begun, ends: None }
    }
}

/// How far the fence is; each stage lasts `fence_step_timeout`, and EC2's proof ends any of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// EC2 is requested to stop the instance.
    Stop,
    /// EC2 is requested to stop it by force.
    ForceStop,
    /// EC2 is requested to terminate it.
    Terminate,
    /// All of that is over, or its time went by while the operator was down; EC2 is requested to stop it by
    /// force and to terminate it, alternately and slowly. Both, since EC2 may refuse either: an instance can
    /// be protected from being stopped, and from its end.
    Failed,
}

impl Stage {
    /// What is done in it.
    pub fn step(self) -> FenceStep {
        match self {
            Self::Stop => FenceStep::Stop,
            Self::ForceStop => FenceStep::ForceStop,
            Self::Terminate => FenceStep::Terminate,
            Self::Failed => FenceStep::Alternate,
        }
    }
}

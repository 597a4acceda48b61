//! The sentences of a Node's waits and conditions. Pure.

mod adoption;
mod deletion;
pub mod events;
mod join;
mod launch;
mod loss;

use jiff::Timestamp;

use super::cause::LossSigns;
use super::wait::NodeWait;
use super::wait::join::JoinWait;
use super::wait::loss::{FenceStep, Proof};
use crate::api::InstanceId;
use crate::api::keys::NODE_UID_TAG;
use crate::controller::messages::FIRST_SYNC;
use crate::time::whole_second;

/// Ready, true.
pub const READY: &str = "the machine is ready for the database";
/// Initialized, true.
pub const INITIALIZED: &str = "the Kubernetes node was made ready for the database";
/// Drifted, while there is nothing to compare.
pub const NOT_COMPARED: &str = "no machine was launched yet, or its NodeClass does not exist";
/// Drifted, false.
pub const UP_TO_DATE: &str = "the machine is as its NodeClass says";
/// Lost, false.
pub const NOT_LOST: &str = "there is no sign that the machine is lost";
/// Fenced, false, without a decision to declare the machine lost.
pub const FENCED_BY_TERMINATION: &str = "the kubelet of the machine does not report; requesting EC2 to \
    terminate the instance";
/// Orphaned, true.
pub const ORPHANED: &str = "no Database owns this Node any more: its Database was deleted with the \
    propagation policy Orphan. The machine goes on running, and none takes its place if it is lost. To \
    release it, delete this Node";
/// Drained, true.
pub const DRAINED: &str = "no pod of the database is left on the machine";
/// `VolumeDetached`, true.
pub const DETACHED: &str = "no volume is attached to the machine";
/// `InstanceTerminated`, true.
pub const TERMINATED: &str = "the instance is gone";

impl NodeWait {
    /// What is waited for, in words. The same as long as the situation is the same.
    pub fn message(&self) -> String {
        match self {
            Self::Finalizer => "adding the Freehold finalizer".to_owned(),
            Self::FirstSync => FIRST_SYNC.to_owned(),
            Self::Launch(wait) => wait.message(),
            Self::Adoption(wait) => wait.message(),
            Self::Join(wait) => wait.message(),
            Self::Loss(wait) => wait.message(),
            Self::Deletion(wait) => wait.message(),
            Self::Blocked(blocker) => blocker.message(),
            Self::CallBlocked(call_blocked) => call_blocked.message(),
        }
    }
}

/// Launched, true.
pub fn launched(id: &InstanceId) -> String {
    format!("instance {id} runs")
}

/// Registered, true.
pub fn registered(core_node: &str) -> String {
    JoinWait::Registered(core_node.to_owned()).message()
}

/// Drifted, true.
pub fn drifted(class: &str, fields: &[&str]) -> String {
    format!(
        "NodeClass {class} has changed since ({}); the next machine is made as it says now",
        fields.join(", ")
    )
}

/// Lost, false: there are signs, and they may pass.
pub fn suspected(signs: &LossSigns, due: Timestamp) -> String {
    format!("{}; the machine is declared lost at {} if that stays so", signs.message(), whole_second(due))
}

/// Fenced, true.
pub fn fenced(proof: &Proof) -> String {
    let shown = match proof {
        Proof::Terminated(id) => format!("EC2 reports instance {id} terminated"),
        Proof::Stopped(id) => format!("EC2 reports instance {id} stopped"),
        Proof::Forgotten(id) => format!("EC2 does not list instance {id} any more"),
        Proof::Absent(id) => format!("instance {id} is proven absent"),
    };
    format!("{shown}: nothing on it can write any more")
}

/// Fenced, false: this step is done since then.
pub fn not_fenced(step: FenceStep, since: Timestamp) -> String {
    format!(
        "EC2 has not confirmed that the instance stopped; the volume is not moved. Current step since \
        {since}: {}",
        step.message()
    )
}

/// `ForeignInstance`, true.
pub fn foreign_instances(ids: &[&str]) -> String {
    format!(
        "EC2 lists {} with the tags of this Node and another client token, so it was launched outside \
        Freehold and is left alone: check it in EC2, then terminate it by hand or remove its tag \
        {NODE_UID_TAG}",
        ids.join(", ")
    )
}

fn because(why: Option<&str>) -> String {
    why.map(|why| format!(" ({why})")).unwrap_or_default()
}

//! Every sentence about a Node that a person can read: what it waits for, its conditions, and the notes of its events. Pure.

use std::fmt::Display;
use std::time::Duration;

use jiff::Timestamp;

use super::cause::{Cause, LossSigns};
use super::wait::{Attached, DeletionWait, FenceStep, JoinWait, LaunchWait, LossWait, Missing, NodeWait, Proof, Unwanted};

use crate::api::InstanceId;
use crate::api::node::{NodeLaunch, Refusal};
use crate::controller::conditions::whole_second;
use crate::controller::safety;

impl NodeWait {
    /// What is waited for, in words. The same as long as the situation is the same.
    pub fn message(&self) -> String {
        match self {
            Self::Finalizer => "adding the Freehold finalizer".to_owned(),
            Self::FirstSync => "waiting for the first full EC2 inventory sync since the operator started".to_owned(),
            Self::Launch(wait) => wait.message(),
            Self::Join(wait) => wait.message(),
            Self::Loss(wait) => wait.message(),
            Self::Deletion(wait) => wait.message(),
            Self::Blocked(blocker) => blocker.message.clone(),
            Self::CallBlocked(held_up) => held_up.message.clone(),
        }
    }
}

impl LaunchWait {
    fn message(&self) -> String {
        match self {
            Self::ClassNotFound(class) => format!("NodeClass {class} does not exist: create it, or name another one in spec.nodeClassName"),
            Self::NoSubnet { class, zones } => {
                format!("NodeClass {class} has no subnet in the zone {}: add one to its spec.subnets", zones.join(", "))
            }
            Self::NoAllowedType { class, wanted, allowed } => {
                format!("NodeClass {class} allows none of the instance types {}; it allows {}", wanted.join(", "), allowed.join(", "))
            }
            Self::NoCapacity { refused, until } => {
                let refused: Vec<String> = refused.iter().map(|(instance_type, zone)| format!("{instance_type} in {zone}")).collect();
                let until = whole_second(*until);
                format!("EC2 has no capacity for {}; the first of them is requested again at {until}", refused.join(", "))
            }
            Self::NoCapacityFor(id, why) => {
                format!("EC2 had no capacity for instance {id}{}; the next type or zone is requested", because(why.as_deref()))
            }
            Self::Quota => "AWS account quota reached: request an increase from AWS; the launch is retried every few minutes".to_owned(),
            Self::Requested { instance_type, zone } => format!("requesting an instance of type {instance_type} in {zone}"),
            Self::Adopted(id) => format!("instance {id} has this Node's tags; adopting it"),
            Self::AdoptedLater(id) => format!("instance {id} is of a later launch attempt than the status records; adopting it"),
            Self::Found(id) => format!("instance {id} was launched by this attempt; recording it"),
            Self::NotListed(id) => format!("EC2 does not list instance {id} yet"),
            Self::Starting(id) => format!("instance {id} is starting"),
            Self::UnknownState(id) => format!("EC2 reports instance {id} in a state that this version of Freehold does not know"),
            Self::Unwanted(id, unwanted) => {
                format!("instance {id} is terminated before it joined the cluster, since {}", unwanted.message())
            }
            Self::Resent(attempt) => {
                format!("launch attempt {attempt} is unconfirmed (no response); retrying with the same client token")
            }
            Self::Throttled => "EC2 throttled the launch and created nothing; retrying with the same client token".to_owned(),
            Self::InDoubt(attempt, doubt) => {
                format!("it is not known whether EC2 carried out launch attempt {attempt}: {}", doubt.as_words())
            }
            Self::Forbidden(refusal) => format!("EC2 does not allow the launch: {}; the launch is retried automatically", answer(refusal)),
            Self::Invalid { refusal, class } => {
                format!("EC2 refuses the launch as invalid: {}; change NodeClass {class} or the spec", answer(refusal))
            }
        }
    }
}

impl Unwanted {
    /// Why, as the end of a sentence about the instance.
    pub fn message(&self) -> String {
        match self {
            Self::Type(instance_type) => format!("its type {instance_type} is no longer in instanceTypes"),
            Self::Zone { instance, volume } => format!("it is in {instance} and the volume is in {volume}"),
        }
    }
}

impl JoinWait {
    fn message(&self) -> String {
        match self {
            Self::Registration(id) => format!("instance {id} runs; waiting for its kubelet to register"),
            Self::NotRegistered(id) => {
                format!("instance {id} never joined the cluster and is terminated; its console output is in the operator's log")
            }
            Self::Ended(id, why) => {
                format!("instance {id} ended{} before it joined the cluster; another instance follows", because(why.as_deref()))
            }
            Self::NeverJoins { machines, class } => format!(
                "{machines} machines ended before they joined the cluster: read their console output in the operator's log, and change \
                 NodeClass {class} or instanceTypes"
            ),
            Self::Registered(core_node) => format!("Kubernetes node {core_node} has registered"),
            Self::Initialization(missing) => format!("{} yet", missing.message()),
            Self::InitializationOverdue { missing, limit, node } => format!(
                "{}, {limit:?} after its kubelet registered: inspect the machine; to replace it, delete node.freehold.dev/{node}",
                missing.message()
            ),
            Self::NotReady(core_node) => format!("Kubernetes node {core_node} is not Ready"),
            Self::KubernetesNodeGone(id) => format!("instance {id} runs, but its Kubernetes node is gone: its kubelet must register again"),
            Self::KubernetesNodeEnding(core_node) => {
                format!("Kubernetes node {core_node} is being deleted: its kubelet must register again")
            }
            Self::KubernetesNodeEndingChecked(core_node) => {
                format!("Kubernetes node {core_node} is being deleted; checking in EC2 whether its machine has ended")
            }
            Self::KubernetesNodeDeleted(core_node) => format!(
                "Kubernetes node {core_node} is being deleted outside Freehold, which cannot be undone: the machine must be replaced"
            ),
        }
    }
}

impl Missing {
    fn message(&self) -> String {
        match self {
            Self::Driver(core_node) => format!("the EBS CSI driver has not registered on Kubernetes node {core_node}"),
            Self::Ready(core_node) => format!("Kubernetes node {core_node} is not Ready"),
        }
    }
}

impl LossWait {
    fn message(&self) -> String {
        match self {
            Self::Suspected(_, signs) => signs.message(),
            Self::RepairPostponed(signs, blocker) => format!("{}; {}", signs.message(), blocker.message),
            Self::Fencing { loss, step } => format!("{loss}; {}", step.message()),
            Self::Attached { loss, attached } => format!("{loss}; {}", attached.message()),
            Self::Replaced { loss } => format!("{loss}; another machine takes its place"),
            Self::Terminated(id, why) => format!("instance {id} is terminated{}: this machine is lost", because(why.as_deref())),
            Self::ShuttingDown(id) => format!("EC2 is terminating instance {id}"),
            Self::StoppedBeforeJoin(id) => format!("instance {id} was stopped before it joined the cluster, and is terminated"),
        }
    }
}

impl LossSigns {
    /// Every sign with its time.
    pub fn message(&self) -> String {
        let signs = self.causes.iter().map(|(cause, since)| format!("{} since {}", self.sign(*cause), whole_second(*since)));
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
    fn message(&self) -> String {
        let names = self.names.join(", ");
        match self.overdue_since {
            Some(since) => {
                format!("VolumeAttachments {names} still exist since {since}; check the ebs-csi-controller and csi-attacher logs")
            }
            None => format!("waiting for Kubernetes to delete VolumeAttachments {names}"),
        }
    }
}

impl DeletionWait {
    fn message(&self) -> String {
        match self {
            Self::OtherFinalizers => "waiting for other controllers to remove their finalizers".to_owned(),
            Self::Absence(id) => format!("EC2 does not list instance {id}; waiting until its absence is proven"),
            Self::Adopted(id) => format!("instance {id} has this Node's tags; adopting it to terminate it"),
            Self::Found(id) => format!("instance {id} was launched for this Node; recording it to terminate it"),
            Self::NotResent => "nothing is launched for a Node that is being deleted".to_owned(),
            Self::Terminated(id) => format!("instance {id} is being terminated"),
            Self::ShuttingDown(ids) => match ids.as_slice() {
                [id] => format!("EC2 is terminating instance {id}"),
                ids => format!("EC2 is terminating instances {}", joined(ids)),
            },
            Self::StoppedTerminated { loss } => format!("{loss}; the stopped instance is being terminated"),
            Self::Duplicates(blockers) => blockers.iter().map(|blocker| blocker.message.as_str()).collect::<Vec<_>>().join("; "),
            Self::Attached(attached) => attached.message(),
            Self::Gone => "the machine is gone".to_owned(),
        }
    }
}

/// Why an instance is terminated: its Node is deleted.
pub const NODE_DELETED: &str = "its Node is deleted";
/// Why an instance is terminated: it did not join.
pub const STOPPED_BEFORE_JOIN: &str = "it was stopped before it joined the cluster";

/// Why an instance is terminated: its kubelet has not registered in this time.
pub fn not_registered_within(limit: Duration) -> String {
    format!("its kubelet did not register within {limit:?}")
}

/// Why an instance is terminated: it is not the one that the status names.
pub fn second_instance(kept: &InstanceId) -> String {
    format!("a second instance of this Node beside {kept}, which its status names")
}

/// Ready, true.
pub const READY: &str = "the machine is ready for the database";
/// Initialized, true.
pub const INITIALIZED: &str = "the Kubernetes node was made ready for the database";
/// Stalled, false.
pub const NOT_STALLED: &str = "no manual action required";
/// Drifted, while there is nothing to compare.
pub const NOT_COMPARED: &str = "no machine was launched yet, or its NodeClass does not exist";
/// Drifted, false.
pub const UP_TO_DATE: &str = "the machine is as its NodeClass says";
/// A condition after the first that does not hold.
pub const EARLIER_STEP: &str = "waiting for an earlier step";
/// Lost, false.
pub const NOT_LOST: &str = "there is no sign that the machine is lost";
/// Fenced, false, without a decision to declare the machine lost.
pub const FENCED_BY_TERMINATION: &str = "the kubelet of the machine does not report; requesting EC2 to terminate the instance";
/// Drained, true.
pub const DRAINED: &str = "no pod is left on the machine";
/// `VolumeDetached`, true.
pub const DETACHED: &str = "no volume is attached to the machine";
/// `InstanceTerminated`, true.
pub const TERMINATED: &str = "the instance is gone";

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
    format!("NodeClass {class} has changed since ({}); the next machine is made as it says now", fields.join(", "))
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
    format!("EC2 has not confirmed that the instance stopped; the volume is not moved. Current step since {since}: {}", step.message())
}

/// The event of a machine that is released with its Node.
pub const RELEASED: &str = "the machine is gone";

/// The event of a Kubernetes node that has become ready for the database.
pub fn node_ready(core_node: &str) -> String {
    format!("Kubernetes node {core_node} is ready for the database")
}

/// The event of an instance that a look-up has found.
pub fn recorded(id: &InstanceId) -> String {
    format!("instance {id} was found by its client token and tags, and belongs to this Node")
}

/// The event of the taint that frees what a fenced machine held.
pub fn out_of_service(core_node: &str) -> String {
    format!("Kubernetes node {core_node} is out of service: nothing on its machine can write any more")
}

/// The event of a Kubernetes node that is cordoned.
pub fn cordoned(core_node: &str) -> String {
    format!("Kubernetes node {core_node} takes no more pods: its Node is deleted")
}

/// The event of a machine that is declared lost.
pub fn declared_lost(loss: &str) -> String {
    format!("{loss}: machine declared lost; starting a replacement")
}

/// The machine would be declared lost, and as many repairs as may be are running already.
pub fn repair_postponed(loss: &str, running: usize, limit: usize) -> String {
    format!("{loss}; {}", safety::repairs_underway(running, limit))
}

/// The event of an instance that is terminated.
pub fn terminating(id: &InstanceId, why: &str) -> String {
    format!("instance {id} is terminated: {why}")
}

/// The event of an instance that is stopped.
pub fn stopping(id: &InstanceId, force: bool) -> String {
    let stopping = if force { "force-stopping" } else { "stopping" };
    format!("{stopping} instance {id} to fence it")
}

/// The event of an instance that is launched.
pub fn instance_launched(id: &InstanceId, launch: &NodeLaunch) -> String {
    format!("instance {id} ({} in {}) is launched", launch.instance_type, launch.zone)
}

/// The event of a launch that EC2 refused.
pub fn launch_refused(launch: &NodeLaunch, error: &impl Display) -> String {
    format!("EC2 refused {} in {}: {error}", launch.instance_type, launch.zone)
}

fn answer(refusal: &Refusal) -> String {
    format!("{} ({})", refusal.code, refusal.message)
}

fn because(why: Option<&str>) -> String {
    why.map(|why| format!(" ({why})")).unwrap_or_default()
}

fn joined(ids: &[InstanceId]) -> String {
    ids.iter().map(|id| id.0.as_str()).collect::<Vec<_>>().join(", ")
}

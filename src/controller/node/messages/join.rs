//! The sentences of a machine that is not ready for the database yet. Pure.

use super::because;
use crate::cloud::ScheduledEvent;
use crate::controller::node::wait::join::{JoinWait, Missing};

impl JoinWait {
    pub(super) fn message(&self) -> String {
        match self {
            Self::Registration(id) => format!("instance {id} runs; waiting for its kubelet to register"),
            Self::NotRegistered(id) => {
                format!(
                    "instance {id} never joined the cluster and is terminated; its console output is in the \
                    operator's log"
                )
            }
            Self::Ended(id, why) => {
                format!(
                    "instance {id} ended{} before it joined the cluster; another instance follows",
                    because(why.as_deref())
                )
            }
            Self::NeverJoins { machines, class } => format!(
                "{machines} machines ended before they joined the cluster: read their console output in the \
                operator's log, and change NodeClass {class} or instanceTypes; another one is launched about \
                once an hour"
            ),
            Self::Registered(core_node) => format!("Kubernetes node {core_node} has registered"),
            Self::Initialization(missing) => format!("{} yet", missing.message()),
            Self::InitializationOverdue { missing, limit, node } => format!(
                "{}, {limit:?} after its kubelet registered: inspect the machine; to replace it, delete \
                node.freehold.dev/{node}",
                missing.message()
            ),
            Self::NotReady(core_node) => format!("Kubernetes node {core_node} is not Ready"),
            Self::DriverGone(core_node) => format!(
                "the EBS CSI driver is not registered on Kubernetes node {core_node} at the moment, as during \
                its update: the database goes on, and its pod could not be started again there"
            ),
            Self::KubernetesNodeGone(id) => format!(
                "instance {id} runs, but its Kubernetes node is gone: its kubelet must register again"
            ),
            Self::KubernetesNodeEnding(core_node) => {
                format!("Kubernetes node {core_node} is being deleted: its kubelet must register again")
            }
            Self::KubernetesNodeEndingChecked(core_node) => {
                format!(
                    "Kubernetes node {core_node} is being deleted; checking in EC2 whether its machine has \
                    ended"
                )
            }
            Self::EventScheduled { instance, event: ScheduledEvent { code, not_before } } => format!(
                "EC2 has scheduled {code} for instance {instance}{}: the database moves to another machine \
                before that, if one can be launched",
                not_before.map_or_else(String::new, |time| format!(", not before {time}"))
            ),
            Self::EventRecorded(message) => message.clone(),
            Self::Cordoned { core_node, in_use: true } => format!(
                "Kubernetes node {core_node} was cordoned outside Freehold: the database moves to another \
                machine. To keep it here, run: kubectl uncordon {core_node}"
            ),
            Self::Cordoned { core_node, in_use: false } => format!(
                "Kubernetes node {core_node} was cordoned outside Freehold, so that no database can move \
                there; to use it, run: kubectl uncordon {core_node}"
            ),
            Self::KubernetesNodeDeleted(core_node) => format!(
                "Kubernetes node {core_node} is being deleted outside Freehold, which cannot be undone: the \
                machine must be replaced"
            ),
        }
    }
}

impl Missing {
    pub(super) fn message(&self) -> String {
        match self {
            Self::Dedication(core_node) => {
                format!(
                    "Kubernetes node {core_node} does not have both the label and the taint of a database's \
                    machine"
                )
            }
            Self::Driver(core_node) => {
                format!("the EBS CSI driver has not registered on Kubernetes node {core_node}")
            }
            Self::Ready(core_node) => format!("Kubernetes node {core_node} is not Ready"),
        }
    }
}

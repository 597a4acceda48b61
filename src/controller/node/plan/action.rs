//! What a plan of the Node controller is made of: the actions, and what is waited for.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node as CoreNode;

use crate::api::InstanceId;
use crate::api::node::{Fence, NodeLaunch};
use crate::controller::node::wait::NodeWait;
use crate::time::until;

/// What one pass does and what it waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// In this order.
    pub actions: Vec<Action>,
    /// What the Node waits for; `None` when it is as it should be.
    pub waiting: Option<NodeWait>,
    /// Look again at the latest then, though nothing woke us.
    pub requeue: Option<Duration>,
    /// EC2 is about to change: look often.
    pub pending: bool,
}

impl Plan {
    pub(in crate::controller::node) fn act(actions: Vec<Action>, wait: impl Into<NodeWait>) -> Self {
        Self { actions, ..Self::wait(wait) }
    }

    pub(in crate::controller::node) fn wait(wait: impl Into<NodeWait>) -> Self {
        Self { actions: Vec::new(), waiting: Some(wait.into()), requeue: None, pending: false }
    }

    pub(in crate::controller::node) fn pending(self) -> Self {
        Self { pending: true, ..self }
    }

    /// Whether the machine is given up by it.
    pub(in crate::controller::node) fn gives_up(&self) -> bool {
        self.actions.iter().any(|action| matches!(action, Action::GiveUp(_)))
    }

    pub(in crate::controller::node) fn until(self, when: Timestamp, now: Timestamp) -> Self {
        Self { requeue: Some(until(when, now)), ..self }
    }
}

/// What became of the decision to declare a machine lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// It was written down, if the plan says so.
    AsPlanned,
    /// Other passes have begun as many repairs as may be meanwhile: it was not written down.
    Postponed,
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Put our finalizer on the Node.
    AddFinalizer,
    /// Intent, RunInstances, id: one compound action.
    Launch(Box<NodeLaunch>, String),
    /// RunInstances again, identical, with the user data of the recorded hash.
    Resend(String),
    /// Record the instance that a look-up found.
    RecordInstance(InstanceId),
    /// Note that EC2 has no capacity for this type in this zone.
    MarkUnavailable(String, String),
    /// Write the console's tail to the operator's log.
    LogConsole(InstanceId),
    /// Terminate an instance, for this reason.
    Terminate(InstanceId, String),
    /// Write down that the machine is given up: before anything is done to it.
    GiveUp(Box<Fence>),
    /// Stop an instance; by force if so.
    Stop(InstanceId, bool),
    /// Taint the core Node as out of service: the machine is proven stopped.
    OutOfService(Box<CoreNode>),
    /// Put our finalizer on the core Node.
    HoldCoreNode(Box<CoreNode>),
    /// Mark the core Node unschedulable: name, UID.
    Cordon(String, String),
    /// Ask a pod to end: namespace, name, UID; at once when nothing can run it any more.
    EvictPod {
        /// Namespace.
        namespace: String,
        /// Name.
        name: String,
        /// UID.
        uid: String,
        /// Grace 0: the machine is proven stopped or gone.
        at_once: bool,
    },
    /// Delete the core Node and take our finalizer off it.
    ReleaseCoreNode(Box<CoreNode>),
    /// Take our finalizer off the Node: its machine is gone.
    RemoveFinalizer,
}

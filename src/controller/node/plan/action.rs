//! What a plan of the Node controller is made of: the actions, and what is waited for.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node as CoreNode;

use super::judgement::Judged;
use crate::api::InstanceId;
use crate::api::node::{Fence, NodeCreation};
use crate::cloud::turns::Priority;
use crate::controller::node::wait::NodeWait;
use crate::time::until;

/// What one pass does and what it waits for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// In this order.
    pub actions: Vec<Action>,
    /// What the Node waits for; `None` when it is as it should be.
    pub waiting: Option<NodeWait>,
    /// Look again at the latest then, though nothing woke us.
    pub requeue: Option<Duration>,
    /// EC2 is about to change: look often.
    pub pending: bool,
    /// What it was decided by, for the status: nothing is judged a second time.
    pub judged: Judged,
    /// How urgent its calls to EC2 are.
    pub priority: Priority,
}

impl Plan {
    /// Whether anything is done but what concerns this object alone, and is refused if that has changed.
    pub(in crate::controller::node) fn acts(&self) -> bool {
        self.actions.iter().any(|action| *action != Action::AddFinalizer)
    }

    /// Everything is as wanted: nothing is done, and nothing waited for.
    pub(in crate::controller::node) fn done() -> Self {
        Self::default()
    }

    pub(in crate::controller::node) fn act(actions: Vec<Action>, wait: impl Into<NodeWait>) -> Self {
        Self { actions, ..Self::wait(wait) }
    }

    pub(in crate::controller::node) fn wait(wait: impl Into<NodeWait>) -> Self {
        Self { waiting: Some(wait.into()), ..Self::default() }
    }

    pub(in crate::controller::node) fn pending(self) -> Self {
        Self { pending: true, ..self }
    }

    /// Whether it declares the machine lost.
    pub(in crate::controller::node) fn declares_lost(&self) -> bool {
        self.actions.iter().any(|action| matches!(action, Action::DeclareLost(_)))
    }

    pub(in crate::controller::node) fn until(self, when: Timestamp, now: Timestamp) -> Self {
        Self { requeue: Some(until(when, now)), ..self }
    }
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Put our finalizer on the Node.
    AddFinalizer,
    /// Intent, RunInstances, id: one compound action.
    Launch(Box<NodeCreation>, String),
    /// RunInstances again, identical, with the user data of the recorded hash.
    Resend(String),
    /// Record the instance that a look-up found.
    RecordInstance(InstanceId),
    /// Record the instance that the spec names, then tag it with these tags.
    Adopt(InstanceId, BTreeMap<String, String>),
    /// CreateTags again, identical.
    Tag(InstanceId, BTreeMap<String, String>),
    /// Take off an instance that is released, and off these resources that were made with it, these tags.
    Untag(InstanceId, Vec<String>, BTreeMap<String, String>),
    /// Note that EC2 has no capacity for this type in this zone.
    MarkUnavailable(String, String),
    /// Write the console's tail to the operator's log.
    LogConsole(InstanceId),
    /// Terminate an instance, for this reason.
    Terminate(InstanceId, String),
    /// Record that the machine is lost: before anything is done to it.
    DeclareLost(Box<Fence>),
    /// Stop an instance; by force if so.
    Stop(InstanceId, bool),
    /// Taint the core Node as out of service: the machine is proven stopped.
    OutOfService(Box<CoreNode>),
    /// Put the label and the taint of a database's machine on the core Node.
    Dedicate(Box<CoreNode>),
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
    /// Delete a pod that has no business on the machine.
    EvictForeignPod {
        /// Namespace.
        namespace: String,
        /// Name.
        name: String,
        /// UID.
        uid: String,
        /// Its grace.
        grace_seconds: u32,
    },
    /// Delete the core Node and take our finalizer off it.
    ReleaseCoreNode(Box<CoreNode>),
    /// Take our finalizer off the core Node of an instance that is released and goes on running; label and
    /// taint only where no database is placed there by them.
    RestoreCoreNode(Box<CoreNode>),
    /// Take our finalizer off the Node: its machine is gone, or released.
    RemoveFinalizer,
}

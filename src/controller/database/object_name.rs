//! How an object of a Database is named in what it waits for: by its kind and its name. Pure.

use crate::api::Reason;

/// The kinds of objects that a wait names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// The Secret of the credentials.
    Secret,
    /// The engine's settings.
    ConfigMap,
    /// The Service.
    Service,
    /// The ServiceAccount.
    ServiceAccount,
    /// The NetworkPolicy.
    NetworkPolicy,
    /// The StatefulSet.
    StatefulSet,
    /// The pod.
    Pod,
    /// The Volume.
    Volume,
    /// A Node.
    Node,
}

/// An object by its kind and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    /// The kind.
    pub kind: ObjectKind,
    /// The name.
    pub name: String,
}

impl ObjectName {
    /// The object of this kind and name.
    pub fn new(kind: ObjectKind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into() }
    }
}

impl ObjectKind {
    /// The reason for a child that says nothing of itself.
    pub(super) fn awaited(self) -> Reason {
        match self {
            Self::Node => Reason::AwaitingNode,
            Self::Volume => Reason::AwaitingVolume,
            Self::Secret
            | Self::ConfigMap
            | Self::Service
            | Self::ServiceAccount
            | Self::NetworkPolicy
            | Self::StatefulSet
            | Self::Pod => Reason::Progressing,
        }
    }
}

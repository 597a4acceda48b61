//! What a plan of the Database controller is made of: the actions, and what is waited for.

use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use serde_json::Value;

use crate::api::database::Replacement;
use crate::api::{Node, Volume};
use crate::controller::database::observe::child::HeldSecret;
use crate::controller::waiting::Waiting;
use crate::engine::Profile;

/// What one pass does and what it waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// In this order.
    pub actions: Vec<Action>,
    /// What the Database waits for; `None` when it is as it should be.
    pub waiting: Option<Waiting>,
    /// Look again at the latest then, though nothing woke us.
    pub again: Option<Duration>,
}

impl Plan {
    pub(in crate::controller::database) fn new(actions: Vec<Action>, waiting: Waiting) -> Self {
        Self { actions, waiting: Some(waiting), again: None }
    }

    pub(in crate::controller::database) fn again(self, again: Duration) -> Self {
        Self { again: Some(again), ..self }
    }
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Put our finalizer on the Database.
    AddFinalizer,
    /// Make a password and the Secret that holds it.
    CreateCredentials(Box<Profile>),
    /// Hold the record of a kept volume for this Database.
    TakeRecord(Box<PersistentVolume>),
    /// Give it back.
    ReleaseRecord(Box<PersistentVolume>),
    /// Make the Secret from the one that was kept with a volume.
    TakeCredentials(Box<Profile>, Box<HeldSecret>),
    /// Delete the Secret that was kept with a volume which this Database has taken over: name, UID.
    DeleteKept(String, String),
    /// Apply the ConfigMap; one that names a UID changes that very object, one without is new.
    ApplyConfigMap(Box<ConfigMap>),
    /// The same for the Service.
    ApplyService(Box<Service>),
    /// The same for the NetworkPolicy.
    ApplyNetworkPolicy(Box<NetworkPolicy>),
    /// The same for the StatefulSet.
    ApplyStatefulSet(Box<StatefulSet>),
    /// Set the number of pods: UID, replicas.
    Scale(String, i32),
    /// Write the ordinal down, and whose place the Node is to take, then create it: one compound action.
    CreateNode(i32, Box<Node>, Option<Replacement>),
    /// Change a Node's spec: name, UID, JSON merge patch of the spec.
    UpdateNode(String, String, Value),
    /// Delete a Node: name, UID, why.
    DeleteNode(String, String, String),
    /// Write down the zone that capacity has chosen.
    RecordZone(String),
    /// Create the Volume.
    CreateVolume(Box<Volume>),
    /// Change the Volume's spec: UID, JSON merge patch of the spec.
    UpdateVolume(String, Value),
    /// Delete the Volume: UID.
    DeleteVolume(String),
    /// Put the Database's label on a core Node: name, UID; what is told of it when the database moves there from another machine.
    Label(String, String, Option<String>),
    /// Take the Database's label off a core Node: name, UID.
    Unlabel(String, String),
    /// Delete the pod so that it comes back from the new template: name, UID, why.
    ReplacePod(String, String, String),
    /// Keep the credentials with the disk, under the name of what is retained.
    KeepCredentials(Box<HeldSecret>),
    /// Delete the Secret of the credentials: UID.
    DeleteCredentials(String),
    /// Delete a child that the API server's garbage collector would take its time for: kind, name, UID.
    DeleteChild(ChildKind, String, String),
    /// Take our finalizer off the Database: its house is down.
    RemoveFinalizer,
}

/// The kinds of a Database's children that are neither Node, Volume nor Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildKind {
    /// The StatefulSet.
    StatefulSet,
    /// The Service.
    Service,
    /// The ConfigMap.
    ConfigMap,
    /// The NetworkPolicy.
    NetworkPolicy,
}

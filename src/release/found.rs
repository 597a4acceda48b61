//! What a Database has, and what is read out of it. Pure.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolume, Pod};
use kube::ResourceExt;

use crate::api::database::Adoption;
use crate::api::names::Names;
use crate::api::{Database, Node, Volume};

/// A Database with its objects.
#[derive(Clone, Debug)]
pub struct Found {
    /// The Database.
    pub database: Database,
    /// The names of its objects.
    pub names: Names,
    /// Its Nodes.
    pub nodes: Vec<Node>,
    /// Its Volume.
    pub volume: Option<Volume>,
    /// The PersistentVolume of the data.
    pub persistent_volume: Option<PersistentVolume>,
    /// The StatefulSet.
    pub stateful_set: Option<StatefulSet>,
    /// Its pod.
    pub pod: Option<Pod>,
}

impl Found {
    /// `<namespace>/<name>`.
    pub fn subject(&self) -> String {
        format!("{}/{}", self.names.namespace, self.names.database)
    }

    /// Whether the database was made without Freehold.
    pub fn is_adopted(&self) -> bool {
        self.database.spec.adopt.is_some()
    }

    /// How it was found when it was adopted.
    pub fn adoption(&self) -> Option<&Adoption> {
        self.database.status.as_ref()?.adoption.as_ref()
    }

    /// Whether it becomes what it was before it was adopted: the operator decides by the same facts.
    pub fn is_as_found(&self) -> bool {
        let pod = self.pod.as_ref().and_then(ResourceExt::uid);
        let found = self.adoption().map(|adoption| adoption.pod_uid.clone());
        let has_its_pod = found.is_none() || pod == found;
        self.is_adopted() && has_its_pod && self.nodes.iter().all(|node| node.spec.instance_id.is_some())
    }

    /// The StatefulSet as it was found.
    pub fn found_set(&self) -> Option<StatefulSet> {
        serde_json::from_value(self.adoption()?.stateful_set.clone()).ok()
    }
}

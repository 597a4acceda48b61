//! What a Database has, and what is read out of it. Pure.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolume, Pod};

use crate::api::database::Adoption;
use crate::api::names::Names;
use crate::api::{Database, Node, Volume};
use crate::cluster::controller_of;
use crate::controller::database::plan::leaving::{is_on_found, runs_as_found};

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
    /// Whether the person may set `spec.release` of this Database: has the verb `release`, or works where no
    /// policy requires it.
    pub may_release: bool,
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

    /// Whether it becomes what it was before it was adopted, as the operator decides it.
    pub fn is_as_found(&self) -> bool {
        let has_what_was_found = match self.adoption() {
            Some(adoption) => runs_as_found(adoption, self.pod.as_ref(), &self.nodes),
            None => is_on_found(&self.nodes),
        };
        self.is_adopted() && has_what_was_found
    }

    /// Whether the release has begun, and is completed whatever the spec says: it was written down, and the
    /// StatefulSet is not the Database's any more.
    pub fn is_begun(&self) -> bool {
        let uid = self.database.metadata.uid.as_ref();
        let is_ours = |set: &StatefulSet| controller_of(set).map(|owner| &owner.uid) == uid;
        let is_recorded = self.database.status.as_ref().is_some_and(|status| status.release.is_some());
        let is_deleted = self.database.metadata.deletion_timestamp.is_some();
        is_deleted && is_recorded && !self.stateful_set.as_ref().is_some_and(is_ours)
    }

    /// The StatefulSet as it was found.
    pub fn found_set(&self) -> Option<StatefulSet> {
        self.adoption()?.found_set()
    }
}

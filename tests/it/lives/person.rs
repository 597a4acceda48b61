//! What a person does in a house, and waits for.

use std::time::Duration;

use freehold::api::{Database, NodeClass};
use freehold_box::account::site::node_class;
use freehold_rig::{Hand, Server};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::house::{House, NAMESPACE};
use crate::kit::objects::database;

/// The database's name.
pub const NAME: &str = "orders";

/// How often a person looks.
const LOOK: Duration = Duration::from_secs(5);

const DATABASES: &str = "databases.freehold.dev";

impl House {
    /// What an administrator sets up.
    pub async fn furnish(&self) {
        self.namespace(NAMESPACE).await;
        self.make::<StorageClass>(&json!({"metadata": {"name": "freehold"},
            "provisioner": "ebs.csi.aws.com", "allowVolumeExpansion": true, "reclaimPolicy": "Retain",
            "volumeBindingMode": "WaitForFirstConsumer"}))
            .await;
        self.make::<NodeClass>(&node_class("default", &self.ec2.world())).await;
    }

    /// Makes a namespace.
    pub async fn namespace(&self, name: &str) {
        self.make::<Namespace>(&json!({"metadata": {"name": name}})).await;
    }

    async fn make<K>(&self, object: &Value)
    where
        K: Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
    {
        let object: K = serde_json::from_value(object.clone()).unwrap();
        Api::all(self.person.clone()).create(&PostParams::default(), &object).await.unwrap();
    }

    fn databases(&self) -> Api<Database> {
        self.databases_of(NAMESPACE)
    }

    fn databases_of(&self, namespace: &str) -> Api<Database> {
        Api::namespaced(self.person.clone(), namespace)
    }

    /// Creates the database, a QuestDB of 100 GiB, with these changes of its spec.
    pub async fn create(&self, changes: &Value) {
        self.create_in(NAMESPACE, NAME, changes).await;
    }

    /// The same, with this name in this namespace.
    pub async fn create_in(&self, namespace: &str, name: &str, changes: &Value) {
        let object = serde_json::from_value(database(namespace, "default", name, changes)).unwrap();
        self.databases_of(namespace).create(&PostParams::default(), &object).await.unwrap();
    }

    /// Cordons the Kubernetes nodes that are there; the names of these.
    pub fn cordon(&self) -> Vec<String> {
        let all = self.server.objects("nodes");
        for node in &all {
            set_cordon(&self.server, node, true);
        }
        all.iter().filter_map(|node| node["metadata"]["name"].as_str().map(str::to_owned)).collect()
    }

    /// Changes the database's spec.
    pub async fn patch(&self, spec: &Value) {
        let patch = json!({"spec": spec});
        self.databases().patch(NAME, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        // The API server drops a field that it does not know, and the person would change nothing.
        let is = self.server.object("databases.freehold.dev", NAMESPACE, NAME).unwrap_or_default();
        for (field, _) in spec.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
            assert!(is.is_null() || !is["spec"][field].is_null(), "a Database has no field {field}");
        }
    }

    /// The same, if the database is still there.
    pub async fn patch_if_there(&self, spec: &Value) {
        if self.database().is_some() {
            self.patch(spec).await;
        }
    }

    /// Deletes the database.
    pub async fn delete(&self) {
        self.delete_in(NAMESPACE, NAME).await;
    }

    /// Deletes the database of this name in this namespace.
    pub async fn delete_in(&self, namespace: &str, name: &str) {
        self.databases_of(namespace).delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Takes the status off every object of a kind.
    pub fn wipe(&self, resource: &str) {
        for object in self.server.objects(resource) {
            Hand::of(&self.server, "person").merge(resource, &object, "/status", &json!({"status": null}));
        }
    }

    /// The database as it is.
    pub fn database(&self) -> Option<Value> {
        self.server.object(DATABASES, NAMESPACE, NAME)
    }

    /// Whether the database is ready, for the spec as it is now.
    pub fn is_ready(&self) -> bool {
        self.is_ready_in(NAMESPACE, NAME)
    }

    /// The same for the database of this name in this namespace.
    pub fn is_ready_in(&self, namespace: &str, name: &str) -> bool {
        let Some(database) = self.server.object(DATABASES, namespace, name) else { return false };
        let conditions = database["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|it| {
            it["type"] == "Ready"
                && it["status"] == "True"
                && it["observedGeneration"] == database["metadata"]["generation"]
        })
    }

    /// The conditions of the database.
    pub fn conditions(&self) -> Vec<Value> {
        let database = self.database().unwrap_or_default();
        database["status"]["conditions"].as_array().cloned().unwrap_or_default()
    }

    /// Whether the database waits for this reason.
    pub fn waits_for(&self, reason: &str) -> bool {
        self.conditions().iter().any(|it| it["type"] == "Ready" && it["reason"] == reason)
    }

    /// Waits until the database is ready.
    pub async fn until_ready(&self, limit: Duration) {
        self.until("the database is ready", limit, Self::is_ready).await;
    }

    /// Waits until the database is ready, or for this virtual time.
    pub async fn until_ready_or(&self, limit: Duration) {
        self.looks(limit, Self::is_ready).await;
    }

    /// Waits until the database is gone.
    pub async fn until_gone(&self, limit: Duration) {
        self.until("the database is gone", limit, |house| house.database().is_none()).await;
    }

    /// Waits until something is so, looking every few seconds, for at most this virtual time.
    pub async fn until(&self, what: &str, limit: Duration, is_so: impl Fn(&Self) -> bool) {
        assert!(self.looks(limit, is_so).await, "not within {limit:?}: {what}");
    }

    /// Looks every few seconds whether something is so; false if it is not within this virtual time.
    async fn looks(&self, limit: Duration, is_so: impl Fn(&Self) -> bool) -> bool {
        let end = Instant::now() + limit;
        while !is_so(self) {
            if Instant::now() >= end {
                return false;
            }
            tokio::time::sleep(LOOK).await;
        }
        true
    }
}

/// A person uncordons the Kubernetes nodes of these names that are still there.
pub fn uncordon(server: &Server, names: &[String]) {
    let is_named = |it: &Value| names.iter().any(|name| it["metadata"]["name"] == *name);
    server.objects("nodes").iter().filter(|it| is_named(it)).for_each(|it| set_cordon(server, it, false));
}

fn set_cordon(server: &Server, node: &Value, is_cordoned: bool) {
    let changes = json!({"spec": {"unschedulable": is_cordoned}});
    Hand::of(server, "person").merge("nodes", node, "", &changes);
}

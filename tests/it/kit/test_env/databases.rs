//! The Databases of a test environment: created, edited, deleted, and awaited.

use std::time::Duration;

use freehold::api::keys::FINALIZER;
use freehold::api::{Database, Node, NodeClass, Volume};
use k8s_openapi::api::core::v1::Node as CoreNode;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::TestEnv;
use crate::kit::objects::{self, Told as _};
use crate::kit::wait::{LIMIT, seen, until, within};

impl TestEnv {
    /// Creates a Database; `changes` go into its spec.
    pub async fn create(&self, name: &str, changes: &Value) -> Database {
        let object =
            serde_json::from_value(objects::database(&self.name, &self.name, name, changes)).unwrap();
        self.api::<Database>().create(&PostParams::default(), &object).await.unwrap()
    }

    /// Edits a Database's spec.
    pub async fn edit(&self, name: &str, changes: &Value) {
        self.api::<Database>()
            .patch(name, &PatchParams::default(), &Patch::Merge(json!({"spec": changes})))
            .await
            .unwrap();
    }

    /// Edits the NodeClass' spec.
    pub async fn edit_class(&self, changes: &Value) {
        let classes = Api::<NodeClass>::all(self.client.clone());
        classes
            .patch(&self.name, &PatchParams::default(), &Patch::Merge(json!({"spec": changes})))
            .await
            .unwrap();
    }

    /// Waits until this generation of the Database is Ready.
    pub async fn ready(&self, name: &str) -> Database {
        self.ready_within(LIMIT, name).await
    }

    /// The same with another bound.
    pub async fn ready_within(&self, limit: Duration, name: &str) -> Database {
        within(limit, &format!("Database {name} being Ready"), || async {
            let database = self.api::<Database>().get(name).await.map_err(|error| error.to_string())?;
            seen(is_ready(&database).then(|| database.clone()), || {
                format!("{:?}", database.condition("Ready"))
            })
        })
        .await
    }

    /// Waits until the Database's condition has this status and reason; gives its message.
    pub async fn until_condition(&self, name: &str, kind: &str, status: &str, reason: &str) -> String {
        self.until_condition_within(LIMIT, name, kind, status, reason).await
    }

    /// The same with another bound.
    pub async fn until_condition_within(
        &self,
        limit: Duration,
        name: &str,
        kind: &str,
        status: &str,
        reason: &str,
    ) -> String {
        within(limit, &format!("Database {name} having {kind}={status} for {reason}"), || async {
            let database = self.api::<Database>().get(name).await.map_err(|error| error.to_string())?;
            let condition = database.condition(kind);
            let is_so = condition.0 == status && condition.1 == reason;
            seen(is_so.then(|| condition.2.clone()), || format!("{condition:?}"))
        })
        .await
    }

    /// Deletes a Database. From here on nothing may be launched for those of its Nodes that have their
    /// machine; another one may be on its way where that has ended.
    pub async fn delete(&mut self, name: &str) {
        let nodes: Vec<Node> = self.list().await;
        self.api::<Database>().delete(name, &DeleteParams::default()).await.unwrap();
        let last = self.ec2().journal().last().map_or(0, |entry| entry.seq);
        let live: Vec<String> = self.live_instances().into_iter().map(|instance| instance.id).collect();
        let launched = |node: &&Node| {
            let id = node.status.as_ref().and_then(|status| status.instance_id.as_ref());
            id.is_some_and(|id| live.contains(&id.0))
        };
        self.deleted.extend(nodes.iter().filter(launched).filter_map(|node| Some((node.uid()?, last))));
    }

    /// Waits until a Database and its children are gone.
    pub async fn gone(&self, name: &str) {
        until(&format!("Database {name} being gone"), || async {
            let left = self.api::<Database>().get_opt(name).await.map_err(|error| error.to_string())?;
            match left {
                Some(database) => Err(format!("{:?}", database.condition("Ready"))),
                None => Ok(()),
            }
        })
        .await;
        assert!(
            self.list::<Node>().await.is_empty() && self.list::<Volume>().await.is_empty(),
            "a child outlives its Database"
        );
        let machines: Vec<String> = self
            .ec2()
            .instances()
            .iter()
            .map(|machine| format!("aws:///{}/{}", machine.zone, machine.id))
            .collect();
        let core_nodes =
            Api::<CoreNode>::all(self.client.clone()).list(&ListParams::default()).await.unwrap();
        let is_held = |node: &&CoreNode| {
            let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_ref());
            provider_id.is_some_and(|id| machines.contains(id))
                && node.finalizers().iter().any(|it| it == FINALIZER)
        };
        let held: Vec<String> =
            core_nodes.items.iter().filter(is_held).map(kube::ResourceExt::name_any).collect();
        assert!(
            held.is_empty(),
            "the machines are gone, and our finalizer still holds the core Nodes {held:?}"
        );
    }
}

/// Whether this generation of the Database is Ready.
fn is_ready(database: &Database) -> bool {
    database.conditions().iter().any(|condition| {
        condition.type_ == "Ready"
            && condition.status == "True"
            && condition.observed_generation == database.metadata.generation
    })
}

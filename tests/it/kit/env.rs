//! What every scenario does to its Databases and sees of its account, whatever they are on: a real control
//! plane (`test_env`), or the API server in memory and virtual time (`rig_env`).

use std::collections::BTreeMap;
use std::time::Duration;

use ec2sim::{Fate, InstanceState, InstanceView, JournalEntry, Simulator, VolumeView};
use freehold::api::{Database, NodeClass};
use freehold_box::legacy::{Legacy, Order};
use k8s_openapi::NamespaceResourceScope;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::objects::{self, Told as _};
use super::wait::{seen, within};
use crate::world::OPERATOR;

/// An environment of a scenario: a namespace, an account, a NodeClass and an operator.
pub trait Env {
    /// A client of the test's own.
    fn client(&self) -> Client;

    /// The namespace of its Databases.
    fn namespace(&self) -> &str;

    /// Its NodeClass.
    fn class(&self) -> &str;

    /// The id of its cluster in tags.
    fn cluster(&self) -> &str;

    /// The simulated EC2.
    fn ec2(&self) -> &Simulator;

    /// How long one fact may take to come.
    fn limit(&self) -> Duration;

    /// Makes a database that Freehold never made: its machine and its objects.
    async fn legacy(&self, order: Order<'_>) -> Legacy;

    /// The API of one kind in the namespace.
    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client(), self.namespace())
    }

    /// The objects of one kind in the namespace.
    async fn list<K>(&self) -> Vec<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        self.api::<K>().list(&ListParams::default()).await.unwrap().items
    }

    /// The operator's calls to EC2 since this entry of the journal.
    fn calls_since(&self, entry: u64) -> Vec<JournalEntry> {
        self.ec2().journal_since(entry).into_iter().filter(|entry| entry.caller == OPERATOR).collect()
    }

    /// The Database's tag by which a person permits the adoption of an instance or an EBS volume.
    fn proof(&self, database: &str) -> String {
        format!("{}/{}/{database}", self.cluster(), self.namespace())
    }

    /// The last entry of the journal.
    fn mark(&self) -> u64 {
        self.ec2().journal().last().map_or(0, |entry| entry.seq)
    }

    /// The operator's mutating calls that EC2 carried out, by action.
    fn mutations(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for entry in self.calls_since(0) {
            if matches!(entry.fate, Fate::Committed | Fate::Lost) {
                *counts.entry(entry.action).or_default() += 1;
            }
        }
        counts
    }

    /// The instances that are not terminated or about to be.
    fn live_instances(&self) -> Vec<InstanceView> {
        live_instances(self.ec2())
    }

    /// The EBS volumes that are no instance's root.
    fn data_volumes(&self) -> Vec<VolumeView> {
        let volumes = self.ec2().volumes();
        volumes.into_iter().filter(|volume| volume.tags.contains_key("freehold.dev/volume-uid")).collect()
    }

    /// Creates a Database; `changes` go into its spec.
    async fn create(&self, name: &str, changes: &Value) -> Database {
        let object = objects::database(self.namespace(), self.class(), name, changes);
        let object = serde_json::from_value(object).unwrap();
        self.api::<Database>().create(&PostParams::default(), &object).await.unwrap()
    }

    /// Edits a Database's spec.
    async fn edit(&self, name: &str, changes: &Value) {
        let patch = Patch::Merge(json!({"spec": changes}));
        self.api::<Database>().patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Edits the NodeClass' spec.
    async fn edit_class(&self, changes: &Value) {
        let patch = Patch::Merge(json!({"spec": changes}));
        let classes = Api::<NodeClass>::all(self.client());
        classes.patch(self.class(), &PatchParams::default(), &patch).await.unwrap();
    }

    /// Waits until this generation of the Database is Ready.
    async fn ready(&self, name: &str) -> Database {
        self.ready_within(self.limit(), name).await
    }

    /// The same with another bound.
    async fn ready_within(&self, limit: Duration, name: &str) -> Database {
        within(limit, &format!("Database {name} being Ready"), || async {
            let database = self.api::<Database>().get(name).await.map_err(|error| error.to_string())?;
            seen(is_ready(&database).then(|| database.clone()), || {
                format!("{:?}", database.condition("Ready"))
            })
        })
        .await
    }

    /// Waits until the Database's condition has this status and reason; gives its message.
    async fn until_condition(&self, name: &str, kind: &str, status: &str, reason: &str) -> String {
        self.until_condition_within(self.limit(), name, kind, status, reason).await
    }

    /// The same with another bound.
    async fn until_condition_within(
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
}

/// The instances of an account that are not terminated or about to be.
pub fn live_instances(ec2: &Simulator) -> Vec<InstanceView> {
    let ended = [InstanceState::ShuttingDown, InstanceState::Terminated];
    ec2.instances().into_iter().filter(|instance| !ended.contains(&instance.state)).collect()
}

/// Whether this generation of the Database is Ready.
fn is_ready(database: &Database) -> bool {
    database.conditions().iter().any(|condition| {
        condition.type_ == "Ready"
            && condition.status == "True"
            && condition.observed_generation == database.metadata.generation
    })
}

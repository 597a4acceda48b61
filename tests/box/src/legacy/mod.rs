//! Databases that Freehold never made, as a platform's own provisioner of 2021 left them on EKS: a machine
//! that was launched by hand, a StatefulSet that selects it by a label, a volume that its claim asked for,
//! and credentials in the provisioner's own words. No object, tag or taint of them has a key of Freehold's.
//!
//! ```text
//!   instance (tag Name) ── Node (label example.com/database) ◄── pod NAME-0 ──► claim data-NAME-0 (gp3)
//!                              Secret NAME-credentials ──► pod NAME-0 ◄── Service NAME
//! ```
//!
//! On real machines an ext4 file system cannot grow while it is mounted: the host may lack the capability
//! that the kernel asks for (`CAP_SYS_RESOURCE`).

mod objects;

use std::fmt::Debug;
use std::time::Duration;

use ec2sim::ApiError;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Secret, Service};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use kube_runtime::wait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use objects::{LABEL, Order, STORAGE_CLASS};

use crate::account::Site;
use crate::machines::user_data::BOOTSTRAP;
use crate::writer::{Dialect, Source};

/// The access key id of the provisioner: its name in EC2's journal.
pub const CALLER: &str = "legacy-provisioner";

/// Who writes the `StorageClass`.
const PLATFORM: &str = "platform";

/// The instance type of its machines.
const INSTANCE_TYPE: &str = "r7i.large";

/// A database that Freehold never made.
#[derive(Clone)]
pub struct Legacy {
    /// The engine.
    pub engine: Dialect,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The id of the instance that was launched for it.
    pub instance: String,
    client: Client,
}

/// Why a legacy database was not made, or does not serve.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine.
    #[error("failed to launch the machine of {name}")]
    Launch {
        /// The database.
        name: String,
        /// What EC2 said.
        #[source]
        source: ApiError,
    },

    /// EC2 launched nothing and refused nothing.
    #[error("failed to launch the machine of {0}: EC2 answered without an instance")]
    NoInstance(String),

    /// The API server.
    #[error("failed to write {what}")]
    Write {
        /// The object.
        what: String,
        /// What the API server said.
        #[source]
        source: kube::Error,
    },

    /// The StatefulSet could not be watched.
    #[error("failed to watch the StatefulSet {name}")]
    Watch {
        /// Its name.
        name: String,
        /// What was said.
        #[source]
        source: wait::Error,
    },

    /// Its pod is not ready.
    #[error("the StatefulSet {name} has no ready pod after {} s: see the events of its pod and claim",
    limit.as_secs())]
    NotReady {
        /// Its name.
        name: String,
        /// How long was waited.
        limit: Duration,
    },
}

impl Legacy {
    /// Makes the database: its `StorageClass` unless the cluster has it, its machine, then its objects. It
    /// serves some time later.
    pub async fn create(client: &Client, site: &Site, order: Order<'_>) -> Result<Self, Error> {
        let Order { engine, namespace, name } = order;
        let classes = Api::<StorageClass>::all(client.clone());
        let platform = PatchParams::apply(PLATFORM).force();
        let class = Patch::Apply(objects::storage_class());
        let written = classes.patch(STORAGE_CLASS, &platform, &class).await;
        written.map_err(|source| Error::Write { what: format!("StorageClass {STORAGE_CLASS}"), source })?;
        let instance = launch(site, name)?;
        let legacy = Self {
            engine,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            instance,
            client: client.clone(),
        };
        legacy.write::<Secret>(objects::secret(order)).await?;
        legacy.write::<Service>(objects::service(order)).await?;
        legacy.write::<StatefulSet>(objects::stateful_set(order)).await?;
        Ok(legacy)
    }

    /// Waits until Kubernetes calls its pod ready. On virtual machines that says nothing about an engine.
    pub async fn serves(&self, limit: Duration) -> Result<(), Error> {
        let sets = Api::<StatefulSet>::namespaced(self.client.clone(), &self.namespace);
        let is_ready = |set: Option<&StatefulSet>| {
            let ready = set.and_then(|set| set.status.as_ref()?.ready_replicas);
            ready.is_some_and(|ready| ready > 0)
        };
        let name = self.name.clone();
        match tokio::time::timeout(limit, wait::await_condition(sets, &self.name, is_ready)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(source)) => Err(Error::Watch { name, source }),
            Err(_) => Err(Error::NotReady { name, limit }),
        }
    }

    /// Where a writer finds it: behind its Service, with the credentials that it was made with.
    pub fn source(&self) -> Source {
        let login = objects::login(self.engine, &self.name);
        Source::Service {
            client: self.client.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            port: objects::port(self.engine),
            username: login.username,
            password: login.password,
            database: login.database,
        }
    }

    /// The name of its claim.
    pub fn claim(&self) -> String {
        format!("{}-{}-0", objects::VOLUME, self.name)
    }

    async fn write<K>(&self, object: Value) -> Result<(), Error>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + Serialize
            + DeserializeOwned,
    {
        let what = format!("{} {}", K::kind(&()), object["metadata"]["name"]);
        let api = Api::<K>::namespaced(self.client.clone(), &self.namespace);
        let written = match serde_json::from_value(object) {
            Ok(object) => api.create(&PostParams::default(), &object).await,
            Err(error) => Err(kube::Error::SerdeError(error)),
        };
        written.map(drop).map_err(|source| Error::Write { what, source })
    }
}

/// Launches the machine as a person does: no token, and no tag but its name. Its user data gives the Node the
/// label by which the pod finds it; the kubelet reports as often as on the machines of tests.
fn launch(site: &Site, name: &str) -> Result<String, Error> {
    let script =
        format!("#!/bin/sh\n{BOOTSTRAP} --node-labels {LABEL}={name} --node-status-update-frequency 1s\n");
    let user_data = data_encoding::BASE64.encode(script.as_bytes());
    let world = site.world();
    let mut params = vec![
        ("Action", "RunInstances"),
        ("InstanceType", INSTANCE_TYPE),
        ("MinCount", "1"),
        ("MaxCount", "1"),
        ("UserData", &user_data),
        ("TagSpecification.1.ResourceType", "instance"),
        ("TagSpecification.1.Tag.1.Key", "Name"),
        ("TagSpecification.1.Tag.1.Value", name),
    ];
    params.extend(world.images.first().map(|image| ("ImageId", image.id.as_str())));
    params.extend(world.subnets.first().map(|subnet| ("SubnetId", subnet.id.as_str())));
    params.extend(world.security_groups.first().map(|group| ("SecurityGroupId.1", group.id.as_str())));
    let launched = site.simulator().call(CALLER, &params);
    let launched = launched.map_err(|source| Error::Launch { name: name.to_owned(), source })?;
    launched.resource_ids().into_iter().next().ok_or_else(|| Error::NoInstance(name.to_owned()))
}

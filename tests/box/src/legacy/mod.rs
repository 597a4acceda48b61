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
//! that the kernel asks for (`CAP_SYS_RESOURCE`). One that is to grow there has xfs.

mod manifests;
mod objects;

use std::fmt::Debug;
use std::time::Duration;

use ec2sim::World;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Secret, Service};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use kube_runtime::wait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use manifests::Manifests;
pub use objects::{Disk, FileSystem, LABEL, Order, SIZE_GIB};

use crate::account::{Site, cloud};
use crate::machines::user_data::BOOTSTRAP;
use crate::writer::{Dialect, Source};

/// The access key id of the provisioner: its name in EC2's journal.
pub const CALLER: &str = "legacy-provisioner";

/// Who writes the `StorageClass`.
const PLATFORM: &str = "platform";

/// The instance type of its machines.
pub const INSTANCE_TYPE: &str = "r7i.large";

/// The account that the machine is launched in.
#[derive(Clone, Debug)]
pub struct Account {
    /// EC2's URL.
    pub endpoint: String,
    /// What the account has: the machine gets the first image, subnet and security group.
    pub world: World,
}

impl Account {
    /// The account of a site of this process.
    pub fn of(site: &Site) -> Self {
        Self { endpoint: site.endpoint(), world: site.world().clone() }
    }
}

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
    #[error(transparent)]
    Launch(#[from] cloud::Error),

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

    /// The API server, when its objects were read.
    #[error("failed to read {what}")]
    Read {
        /// The object.
        what: String,
        /// What the API server said.
        #[source]
        source: kube::Error,
    },

    /// Something of it is gone.
    #[error("{0} is not there")]
    Missing(String),

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
    /// The same database, on another instance.
    #[must_use]
    pub fn on(self, instance: String) -> Self {
        Self { instance, ..self }
    }

    /// Makes the database: its machine, its EBS volume unless its claim asks for one, then its objects. It
    /// serves some time later.
    pub async fn create(client: &Client, account: &Account, order: Order<'_>) -> Result<Self, Error> {
        let instance = launch(account, order.name).await?;
        let mut disk = None;
        if order.disk != Disk::Claimed {
            let zone = account.world.subnets.first().map(|subnet| subnet.zone.clone()).unwrap_or_default();
            let ec2 = cloud::client_of(CALLER, &account.endpoint, &account.world.region);
            disk = Some((cloud::create_volume(&ec2, &zone, SIZE_GIB).await?, zone));
        }
        Self::create_on(client, order, instance, disk).await
    }

    /// The same on an instance that was launched for it, whose Kubernetes node has the label; `disk` is the
    /// EBS volume and its zone, unless its claim asks for one. Its `StorageClass` is made unless the cluster
    /// has it.
    pub async fn create_on(
        client: &Client,
        order: Order<'_>,
        instance: String,
        disk: Option<(String, String)>,
    ) -> Result<Self, Error> {
        let Order { engine, namespace, name, .. } = order;
        if let Some((class_name, class)) = objects::storage_class(order) {
            let classes = Api::<StorageClass>::all(client.clone());
            let platform = PatchParams::apply(PLATFORM).force();
            let written = classes.patch(class_name, &platform, &Patch::Apply(class)).await;
            written.map_err(|source| Error::Write { what: format!("StorageClass {class_name}"), source })?;
        }
        let legacy = Self {
            engine,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            instance,
            client: client.clone(),
        };
        write(Api::<Secret>::namespaced(client.clone(), namespace), objects::secret(order)).await?;
        write(Api::<Service>::namespaced(client.clone(), namespace), objects::service(order)).await?;
        if let Some((id, zone)) = disk {
            write(Api::<PersistentVolume>::all(client.clone()), objects::record(order, &id, &zone)).await?;
            let claims = Api::<PersistentVolumeClaim>::namespaced(client.clone(), namespace);
            write(claims, objects::claim(order)).await?;
        }
        let sets = Api::<StatefulSet>::namespaced(client.clone(), namespace);
        write(sets, objects::stateful_set(order)).await?;
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

    /// The name of its Secret.
    pub fn secret(&self) -> String {
        objects::secret_name(&self.name)
    }

    /// The name of its claim.
    pub fn claim(&self) -> String {
        objects::claim_name(&self.name)
    }
}

async fn write<K>(api: Api<K>, object: Value) -> Result<(), Error>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
{
    let what = format!("{} {}", K::kind(&()), object["metadata"]["name"]);
    let written = match serde_json::from_value(object) {
        Ok(object) => api.create(&PostParams::default(), &object).await,
        Err(error) => Err(kube::Error::SerdeError(error)),
    };
    written.map(drop).map_err(|source| Error::Write { what, source })
}

/// The user data of its machine, which gives its Kubernetes node the label by which the pod finds it; the
/// kubelet reports as often as on the machines of tests.
pub fn user_data(name: &str) -> String {
    format!("#!/bin/sh\n{BOOTSTRAP} --node-labels {LABEL}={name} --node-status-update-frequency 1s\n")
}

/// Launches the machine as a person does: no tag but its name.
async fn launch(account: &Account, name: &str) -> Result<String, Error> {
    let user_data = user_data(name);
    let world = &account.world;
    let machine = cloud::Launch {
        name,
        image: world.images.first().map(|image| image.id.as_str()).unwrap_or_default(),
        instance_type: INSTANCE_TYPE,
        subnet: world.subnets.first().map(|subnet| subnet.id.as_str()).unwrap_or_default(),
        security_group: world.security_groups.first().map(|group| group.id.as_str()),
        user_data: &user_data,
    };
    let launched =
        cloud::launch(&cloud::client_of(CALLER, &account.endpoint, &world.region), machine).await?;
    launched.ok_or_else(|| Error::NoInstance(name.to_owned()))
}

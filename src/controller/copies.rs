//! The copies of what passes read most, each kept by one watch, which wakes the objects, too.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, Stream, StreamExt};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    ConfigMap, Node as CoreNode, NodeStatus, PersistentVolumeClaim, Pod, Service, ServiceAccount,
};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::Config;
use kube::{Api, Client, Resource, ResourceExt};
use tokio_util::sync::CancellationToken;

use crate::api::keys::{self, MANAGED_BY_FREEHOLD, MANAGED_BY_LABEL};
use crate::api::{Backup, BackupSchedule, Database, DatabaseUser, Node, Volume};
use crate::cluster::controller_of;
use crate::cluster::mirror::Mirror;
use crate::cluster::own_writes::OwnWrites;

/// What is read for each of them: the objects of one namespace, or of all.
pub struct CopiedApis {
    /// The Databases.
    pub databases: Api<Database>,
    /// The Nodes.
    pub nodes: Api<Node>,
    /// The Volumes.
    pub volumes: Api<Volume>,
    /// The Backups.
    pub backups: Api<Backup>,
    /// The BackupSchedules.
    pub schedules: Api<BackupSchedule>,
    /// The DatabaseUsers.
    pub users: Api<DatabaseUser>,
    /// The claims.
    pub claims: Api<PersistentVolumeClaim>,
    /// The StatefulSets.
    pub stateful_sets: Api<StatefulSet>,
    /// The ConfigMaps.
    pub config_maps: Api<ConfigMap>,
    /// The Kubernetes nodes.
    pub core_nodes: Api<CoreNode>,
    /// The pods.
    pub pods: Api<Pod>,
    /// The Services.
    pub services: Api<Service>,
    /// The ServiceAccounts.
    pub service_accounts: Api<ServiceAccount>,
    /// The NetworkPolicies.
    pub network_policies: Api<NetworkPolicy>,
    /// The PodDisruptionBudgets.
    pub disruption_budgets: Api<PodDisruptionBudget>,
}

impl CopiedApis {
    /// Those of one namespace, or of all.
    pub fn of(client: &Client, namespace: Option<&str>) -> Self {
        Self {
            databases: within(client, namespace),
            nodes: within(client, namespace),
            volumes: within(client, namespace),
            backups: within(client, namespace),
            schedules: within(client, namespace),
            users: within(client, namespace),
            claims: within(client, namespace),
            stateful_sets: within(client, namespace),
            config_maps: within(client, namespace),
            core_nodes: Api::all(client.clone()),
            pods: within(client, namespace),
            services: within(client, namespace),
            service_accounts: within(client, namespace),
            network_policies: within(client, namespace),
            disruption_budgets: within(client, namespace),
        }
    }
}

/// The objects of one namespace, or of all.
pub fn within<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// The copies.
pub struct Copies {
    /// The Databases.
    pub databases: Arc<Mirror<Database>>,
    /// The Nodes.
    pub nodes: Arc<Mirror<Node>>,
    /// The Volumes.
    pub volumes: Arc<Mirror<Volume>>,
    /// The Backups: what wakes them and their BackupSchedules. They are read from the API server.
    pub backups: Arc<Mirror<Backup>>,
    /// The BackupSchedules, which are read so, too.
    pub schedules: Arc<Mirror<BackupSchedule>>,
    /// The DatabaseUsers. Their controller reads them from the API server, that of the Databases from here.
    pub users: Arc<Mirror<DatabaseUser>>,
    /// The claims with our label.
    pub claims: Arc<Mirror<PersistentVolumeClaim>>,
    /// The StatefulSets.
    pub stateful_sets: Arc<Mirror<StatefulSet>>,
    /// The ConfigMaps.
    pub config_maps: Arc<Mirror<ConfigMap>>,
    /// The Kubernetes nodes that carry a Database's label; of their status what they can allocate.
    pub labelled: Arc<Mirror<CoreNode>>,
    /// The pods that have our label.
    pub pods: Arc<Mirror<Pod>>,
    /// The Services.
    pub services: Arc<Mirror<Service>>,
    /// The ServiceAccounts.
    pub service_accounts: Arc<Mirror<ServiceAccount>>,
    /// The NetworkPolicies.
    pub network_policies: Arc<Mirror<NetworkPolicy>>,
    /// The PodDisruptionBudgets.
    pub disruption_budgets: Arc<Mirror<PodDisruptionBudget>>,
}

impl Copies {
    /// Copies that hold nothing yet, of one namespace or of all.
    pub fn empty(own_writes: &Arc<OwnWrites>, namespace: Option<&str>) -> Self {
        Self {
            databases: Arc::new(Mirror::empty(own_writes, namespace)),
            nodes: Arc::new(Mirror::indexed(own_writes, namespace, databases_of)),
            volumes: Arc::new(Mirror::empty(own_writes, namespace)),
            backups: Arc::new(Mirror::empty(own_writes, namespace)),
            schedules: Arc::new(Mirror::empty(own_writes, namespace)),
            users: Arc::new(Mirror::indexed(own_writes, namespace, |user| {
                vec![database_of_user(&user.namespace().unwrap_or_default(), &user.spec.database_name)]
            })),
            claims: Arc::new(Mirror::empty(own_writes, namespace)),
            stateful_sets: Arc::new(Mirror::empty(own_writes, namespace)),
            config_maps: Arc::new(Mirror::empty(own_writes, namespace)),
            labelled: Arc::new(Mirror::indexed(own_writes, None, |core_node| {
                core_node.labels().get(keys::DATABASE_NODE_LABEL).cloned().into_iter().collect()
            })),
            pods: Arc::new(Mirror::empty(own_writes, namespace)),
            services: Arc::new(Mirror::empty(own_writes, namespace)),
            service_accounts: Arc::new(Mirror::empty(own_writes, namespace)),
            network_policies: Arc::new(Mirror::empty(own_writes, namespace)),
            disruption_budgets: Arc::new(Mirror::empty(own_writes, namespace)),
        }
    }

    /// The Databases of pods that appear, change or go.
    pub fn of_changed_pod(&self) -> impl Stream<Item = ObjectRef<Database>> + Send + use<> {
        self.pods.changes().filter_map(|pod| async move {
            let name = pod.labels().get(keys::DATABASE_NAME_LABEL)?;
            Some(ObjectRef::new(name).within(&pod.namespace()?))
        })
    }

    /// Keeps them until `stop`.
    pub async fn run(self: Arc<Self>, apis: CopiedApis, stop: CancellationToken) {
        // Every object of ours carries it; others need not be watched. All of our own kinds are ours.
        let all = Config::default;
        let ours = || all().labels(&format!("{MANAGED_BY_LABEL}={MANAGED_BY_FREEHOLD}"));
        let labelled = all().labels(keys::DATABASE_NODE_LABEL);
        let claims = all().labels(keys::DATABASE_UID_LABEL);
        let until = || stop.clone();
        // Each is polled once it is woken itself: `join!` polls all of them for each event of one.
        let all: [BoxFuture<'static, ()>; 15] = [
            Arc::clone(&self.databases).run(apis.databases, all(), |_| (), until()).boxed(),
            Arc::clone(&self.nodes).run(apis.nodes, all(), |_| (), until()).boxed(),
            Arc::clone(&self.volumes).run(apis.volumes, all(), |_| (), until()).boxed(),
            Arc::clone(&self.backups).run(apis.backups, all(), |_| (), until()).boxed(),
            Arc::clone(&self.schedules).run(apis.schedules, all(), |_| (), until()).boxed(),
            Arc::clone(&self.users).run(apis.users, all(), |_| (), until()).boxed(),
            Arc::clone(&self.claims).run(apis.claims, claims, |_| (), until()).boxed(),
            Arc::clone(&self.stateful_sets).run(apis.stateful_sets, ours(), |_| (), until()).boxed(),
            Arc::clone(&self.config_maps).run(apis.config_maps, ours(), |_| (), until()).boxed(),
            Arc::clone(&self.labelled).run(apis.core_nodes, labelled, keep_allocatable, until()).boxed(),
            Arc::clone(&self.pods).run(apis.pods, ours(), |_| (), until()).boxed(),
            Arc::clone(&self.services).run(apis.services, ours(), |it| it.status = None, until()).boxed(),
            Arc::clone(&self.service_accounts).run(apis.service_accounts, ours(), |_| (), until()).boxed(),
            Arc::clone(&self.network_policies).run(apis.network_policies, ours(), |_| (), until()).boxed(),
            Arc::clone(&self.disruption_budgets)
                .run(apis.disruption_budgets, ours(), |it| it.status = None, until())
                .boxed(),
        ];
        FuturesUnordered::from_iter(all).collect::<()>().await;
    }
}

/// By what DatabaseUsers are indexed: the namespace and name of their Database.
pub fn database_of_user(namespace: &str, database: &str) -> String {
    format!("{namespace}/{database}")
}

/// The UIDs of the Database that owns a Node, or owned it.
fn databases_of(node: &Node) -> Vec<String> {
    let owner = controller_of(node).map(|owner| owner.uid.clone());
    owner.into_iter().chain(node.labels().get(keys::DATABASE_UID_LABEL).cloned()).collect()
}

/// The rest of what a kubelet reports changes often, and no plan reads it from this copy.
fn keep_allocatable(core_node: &mut CoreNode) {
    let allocatable = core_node.status.take().and_then(|status| status.allocatable);
    core_node.status = allocatable.map(|it| NodeStatus { allocatable: Some(it), ..NodeStatus::default() });
}

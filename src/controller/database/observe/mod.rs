//! The observe step of the Database controller: reads everything that the plan depends on. Only reads.

pub mod child;
mod children;
mod class;
mod credentials;
pub mod engine_answers;
pub mod legacy;
mod machines;
pub mod restore;
pub mod retained;
mod stage;
pub mod tls;
pub mod torn_down;
pub mod usage;

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    ConfigMap, Node as CoreNode, PersistentVolumeClaim, Pod, Service, ServiceAccount,
};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::ResourceExt;
use kube::api::Api;
use sha2::{Digest, Sha256};

use self::child::{Child, Credentials, HeldSecret, child};
use self::children::Children;
use self::credentials::{held, is_as_reported};
use self::engine_answers::EngineAnswers;
use self::legacy::Legacy;
use self::retained::Kept;
use self::stage::{Stage, stage};
use self::tls::TlsSecret;
use self::torn_down::TornDown;
use self::usage::Usage;
use super::ordinal::ordinal;
use super::pod;
use crate::api::keys::{self, EBS_CSI_DRIVER};
use crate::api::names::{Names, VolumeNames};
use crate::api::{Database, DatabaseUser, Node, NodeClass, Volume};
use crate::cluster::mirror::{Mirror, Reads};
use crate::cluster::ownership::{is_orphaning, is_unowned};
use crate::cluster::{controller_of, finalizer, if_served, is_not_found};
use crate::controller::copies::Copies;
use crate::controller::memory::disk_usage::Reading;
use crate::controller::memory::flushes::FlushView;
use crate::controller::pass::context::Context;
use crate::engine::{EngineError, Profile};
use crate::settings::{Network, Timing};

/// Everything that a Database's plan depends on.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The Database.
    pub database: Database,
    /// Its NodeClass, unless there is none of this name.
    pub class: Option<NodeClass>,
    /// The labels of its namespace; read only where the NodeClass admits namespaces by them.
    pub namespace_labels: BTreeMap<String, String>,
    /// What its namespace already has of what the NodeClass limits.
    pub usage: Usage,
    /// The names of its objects.
    pub names: Names,
    /// What its engine needs.
    pub profile: Result<Profile, EngineError>,
    /// Every Node of it, whatever its ordinal.
    pub nodes: Vec<Node>,
    /// The name of the next Node belongs to a foreign object.
    pub node_name_taken: Option<String>,
    /// The name of the pod belongs to a foreign pod: the StatefulSet creates none beside it.
    pub is_pod_foreign: bool,
    /// The Volume.
    pub volume: Child<Volume>,
    /// The claim of its data; read only while a database that Freehold made is to be released.
    pub claim: Option<PersistentVolumeClaim>,
    /// The Secret.
    pub credentials: Credentials,
    /// The Secret was not read, and was there when the status said that the database is Ready.
    pub credentials_as_reported: bool,
    /// The Secret with the certificate of `spec.tls`.
    pub tls: TlsSecret,
    /// The Secret that is kept with the disk; read only while the Database is being deleted.
    pub retained: Child<HeldSecret>,
    /// What was kept of former databases and concerns this one.
    pub kept: Kept,
    /// The engine's settings.
    pub config_map: Child<ConfigMap>,
    /// The Service.
    pub service: Child<Service>,
    /// The ServiceAccount.
    pub service_account: Child<ServiceAccount>,
    /// The NetworkPolicy.
    pub network_policy: Child<NetworkPolicy>,
    /// The PodDisruptionBudget.
    pub disruption_budget: Child<PodDisruptionBudget>,
    /// The database that it adopts; `None` for a Database that adopts nothing.
    pub legacy: Option<Legacy>,
    /// The DatabaseUser of the application.
    pub application_user: Child<DatabaseUser>,
    /// The StatefulSet.
    pub stateful_set: Child<StatefulSet>,
    /// Its pod.
    pub pod: Option<Pod>,
    /// What is known of a flush of its engine.
    pub flush: FlushView,
    /// The attachment of the volume to the machine of the pod; read only while the pod is scheduled and not
    /// started.
    pub attachment: Option<VolumeAttachment>,
    /// The core Nodes of our Nodes, matched by providerID.
    pub core_nodes: Vec<CoreNode>,
    /// Every core Node that carries this Database's label.
    pub labelled: Vec<CoreNode>,
    /// What its engine says.
    pub answers: EngineAnswers,
    /// How much of its file system is used, as its kubelet said last.
    pub disk: Option<Reading>,
    /// What is being torn down around it.
    pub torn_down: TornDown,
    /// The PriorityClass of databases' pods.
    pub priority_class: Option<String>,
    /// Who scrapes metrics, and where the DNS is.
    pub network: Network,
    /// The durations.
    pub timing: Timing,
}

impl Observed {
    /// Whether the Database was deleted, and is not protected from it. In a namespace that is being deleted
    /// nothing can be created any more, so that protection ends there, and with our definitions.
    pub fn is_deleted(&self) -> bool {
        self.database.metadata.deletion_timestamp.is_some() && !self.is_protected()
    }

    /// Whether the Database was deleted, and is kept.
    pub fn is_protected(&self) -> bool {
        let Database { metadata, spec, .. } = &self.database;
        metadata.deletion_timestamp.is_some()
            && spec.deletion_protection
            && finalizer::has(&self.database)
            && !self.torn_down.any()
    }

    /// Whether it is deleted, and nothing keeps or releases what it has.
    pub fn is_plainly_deleted(&self) -> bool {
        stage::is_plain(&self.database)
    }

    /// Whether it is deleted with the propagation policy Orphan: Kubernetes is about to remove the owner
    /// references of its objects, or has removed some.
    pub fn is_orphaning(&self) -> bool {
        is_orphaning(&self.database)
            || self.nodes.iter().any(is_unowned)
            || self.volume.ours().is_some_and(is_unowned)
            || self.stateful_set.ours().is_some_and(is_unowned)
            || self.service.ours().is_some_and(is_unowned)
            || self.config_map.ours().is_some_and(is_unowned)
            || self.service_account.ours().is_some_and(is_unowned)
            || self.network_policy.ours().is_some_and(is_unowned)
            || self.disruption_budget.ours().is_some_and(is_unowned)
            || self.application_user.ours().is_some_and(is_unowned)
    }

    /// The name of the engine's container, if the spec gives it one.
    pub fn engine(&self) -> Option<&str> {
        self.names.container.as_deref()
    }

    /// Our Nodes, the oldest first.
    pub fn by_ordinal(&self) -> Vec<&Node> {
        let mut nodes: Vec<(i32, &Node)> = self
            .nodes
            .iter()
            .filter_map(|node| Some((ordinal(&self.names, &node.name_any())?, node)))
            .collect();
        nodes.sort_by_key(|(ordinal, _)| *ordinal);
        nodes.into_iter().map(|(_, node)| node).collect()
    }

    /// The core Node that this Node's machine registered as.
    pub fn core_node_of(&self, node: &Node) -> Option<&CoreNode> {
        let name = node.status.as_ref()?.core_node_name.as_deref()?;
        self.core_nodes.iter().find(|core_node| core_node.metadata.name.as_deref() == Some(name))
    }

    /// Whether this Node's machine carries the label that the pod selects.
    pub fn carries_label(&self, node: &Node) -> bool {
        let core_node = self.core_node_of(node);
        core_node.is_some_and(|core_node| {
            self.labelled.iter().any(|labelled| labelled.metadata.uid == core_node.metadata.uid)
        })
    }

    /// The name of the core Node that the pod was put on.
    pub fn runs_on(&self) -> Option<&str> {
        self.pod.as_ref().and_then(pod::machine)
    }
}

/// Reads; `None` when the object is gone, or is another of its name. What is seen has many KiB: it stays in
/// one place, else each future that hands it on copies it.
pub async fn observe(
    database: &Database,
    copies: &Copies,
    reads: Reads,
    ctx: &Context,
) -> Result<Option<Box<Observed>>, kube::Error> {
    let Some(database) = current(database, copies, reads, ctx).await? else { return Ok(None) };
    let names = Names::of(&database);
    let deleting = database.metadata.deletion_timestamp.is_some();
    let class = class::of(&database, ctx).await?;
    let Owned { torn_down, nodes, name_taken, volume } = owned(&database, &names, copies, reads, ctx).await?;
    let stateful_set = stateful_set(&names, &database, &copies.stateful_sets, reads, ctx).await?;
    let legacy = legacy::observe(&database, &names, &stateful_set, &volume, ctx).await?;
    let children = Children { derives: legacy.is_none(), database: &database, reads, ctx };
    let stage = stage(&database, &nodes, &volume);
    let needs = stage.needs_secrets();
    let retained = held(deleting && needs, &names.retained_secret, &names, reads, ctx).await?;
    let as_reported = reads == Reads::Cached && is_as_reported(&database, &names, ctx);
    let is_read = children.derives && needs && !as_reported;
    let credentials = held(is_read, &names.credentials_secret, &names, reads, ctx).await?;
    let (pod, is_foreign) = pod(&names, &database, &stateful_set, &copies.pods, stage, reads, ctx).await?;
    Ok(Some(Box::new(Observed {
        profile: class::profile(&database, class.as_ref()),
        namespace_labels: class::namespace_labels(&names.namespace, class.as_ref(), ctx).await?,
        usage: usage::observe(&database, class.as_ref(), &volume, ctx).await?,
        class,
        claim: claim(&database, volume.ours().filter(|_| children.derives && deleting), ctx).await?,
        kept: retained::observe(&database, &names, &credentials, &volume, reads, ctx).await?,
        attachment: attachment(pod.as_ref(), volume.ours(), &names, reads, ctx).await?,
        core_nodes: machines::core_nodes(&nodes, stage, reads, ctx).await?,
        labelled: machines::labelled(&database, &names, &nodes, &copies.labelled, stage, reads, ctx).await?,
        nodes,
        node_name_taken: name_taken,
        is_pod_foreign: is_foreign,
        volume,
        credentials,
        credentials_as_reported: as_reported,
        tls: tls::observe(&database, &names, is_read, reads, ctx).await?,
        // Where it is unreadable, the original is, too, and says so.
        retained: retained.read().unwrap_or(Child::Absent),
        config_map: children.copied(&names.config_map, &copies.config_maps).await?,
        service: children.copied(&names.service, &copies.services).await?,
        service_account: children.copied(&names.service_account, &copies.service_accounts).await?,
        network_policy: children.copied(&names.network_policy, &copies.network_policies).await?,
        disruption_budget: children.copied(&names.disruption_budget, &copies.disruption_budgets).await?,
        application_user: children.application_user(&names, copies).await?,
        stateful_set,
        legacy,
        flush: pod.as_ref().and_then(ResourceExt::uid).map(|uid| ctx.flushes.of(&uid)).unwrap_or_default(),
        pod,
        answers: EngineAnswers::default(),
        disk: ctx.disk_readings.of(&names.uid),
        torn_down,
        priority_class: ctx.priority_class.clone(),
        network: ctx.network.clone(),
        timing: ctx.timing.clone(),
        names,
        database,
    })))
}

/// The Nodes and the Volume, which go with their kinds when those are torn down, and what is torn down.
struct Owned {
    torn_down: TornDown,
    nodes: Vec<Node>,
    name_taken: Option<String>,
    volume: Child<Volume>,
}

async fn owned(
    database: &Database,
    names: &Names,
    copies: &Copies,
    reads: Reads,
    ctx: &Context,
) -> Result<Owned, kube::Error> {
    let nodes = machines::nodes(database, names, &copies.nodes, reads, ctx).await;
    let volumes = Api::namespaced(ctx.client.clone(), &names.namespace);
    // Without machines the data is next: whatever the Volume shows then decides what becomes of it.
    let ends = database.metadata.deletion_timestamp.is_some()
        && nodes.as_ref().is_ok_and(|(nodes, _)| nodes.is_empty());
    let volume = if ends {
        copies.volumes.read(&volumes, &names.volume, reads).await
    } else {
        copies.volumes.current(&volumes, &names.volume, reads).await
    };
    let is_served =
        [nodes.as_ref().err(), volume.as_ref().err()].into_iter().flatten().all(|it| !is_not_found(it));
    let torn_down = match (database.metadata.deletion_timestamp.is_some(), is_served) {
        (false, _) => TornDown::default(),
        (true, true) => torn_down::recently(database, ctx).await?,
        (true, false) => torn_down::now(&names.namespace, ctx).await?,
    };
    let (nodes, name_taken) = with_their_kind(nodes, torn_down)?;
    let volume = child(with_their_kind(volume, torn_down)?, database);
    Ok(Owned { torn_down, nodes, name_taken, volume })
}

/// The Database as this process' last write left it, or newer; `None` when it is gone, or is another of its
/// name. A live read is from the API server where it is being deleted.
async fn current(
    woken: &Database,
    copies: &Copies,
    reads: Reads,
    ctx: &Context,
) -> Result<Option<Database>, kube::Error> {
    let is_kept = woken.metadata.deletion_timestamp.is_none();
    let reads = if is_kept { Reads::Cached } else { reads };
    copies.databases.woken(woken, &ctx.client, reads).await
}

/// The claim of the Volume, if the database is to be released.
async fn claim(
    database: &Database,
    volume: Option<&Volume>,
    ctx: &Context,
) -> Result<Option<PersistentVolumeClaim>, kube::Error> {
    let Some(volume) = volume.filter(|_| database.spec.release) else { return Ok(None) };
    let namespace = database.namespace().unwrap_or_default();
    let claims = Api::<PersistentVolumeClaim>::namespaced(ctx.client.clone(), &namespace);
    claims.get_opt(&VolumeNames::of(volume).claim).await
}

/// The StatefulSet. One that is to be adopted is none of the Database's before it is adopted.
async fn stateful_set(
    names: &Names,
    database: &Database,
    copy: &Mirror<StatefulSet>,
    reads: Reads,
    ctx: &Context,
) -> Result<Child<StatefulSet>, kube::Error> {
    let child = Children { derives: true, database, reads, ctx }.copied(&names.stateful_set, copy).await?;
    Ok(if database.spec.adopt.is_some() && child == Child::Foreign { Child::Absent } else { child })
}

/// The pod: by its label, or by its StatefulSet where it was adopted and has no such label; and whether
/// another has its name.
async fn pod(
    names: &Names,
    database: &Database,
    stateful_set: &Child<StatefulSet>,
    copy: &Mirror<Pod>,
    stage: Stage,
    reads: Reads,
    ctx: &Context,
) -> Result<(Option<Pod>, bool), kube::Error> {
    let set = stateful_set.ours().and_then(|set| set.metadata.uid.as_ref());
    let pods = Api::namespaced(ctx.client.clone(), &names.namespace);
    // The copy has no pod without our label, and no foreign one of the name: where one should be, an absence
    // is read from the API server. Where none should be, something is done once it is gone, and read before.
    let reads = if stage == Stage::NotLeaving && set.is_some() {
        Reads::Live
    } else if stage.needs_pod() {
        reads
    } else {
        Reads::Cached
    };
    let pod = copy.current(&pods, &names.pod(), reads).await?;
    let is_ours = |pod: &Pod| {
        let is_of_set = set.is_some() && controller_of(pod).map(|owner| &owner.uid) == set;
        is_of_set || pod.labels().get(keys::DATABASE_UID_LABEL) == Some(&names.uid)
    };
    let stays = |pod: &Pod| pod.metadata.deletion_timestamp.is_none();
    let is_foreign = pod.as_ref().is_some_and(|pod| !is_ours(pod) && stays(pod));
    // The pod of a database that is to be adopted is of a StatefulSet that is not the Database's yet.
    Ok((pod.filter(is_ours), is_foreign && database.spec.adopt.is_none()))
}

/// The VolumeAttachment that Kubernetes makes for the pod's volume: its name follows from volume, driver and
/// node (`GetAttachmentName` in pkg/volume/csi/csi_attacher.go), so that it is read without a list.
async fn attachment(
    pod: Option<&Pod>,
    volume: Option<&Volume>,
    names: &Names,
    reads: Reads,
    ctx: &Context,
) -> Result<Option<VolumeAttachment>, kube::Error> {
    let pod = pod.filter(|pod| !pod::has_started(pod, names.container.as_deref()));
    let Some(node) = pod.and_then(pod::machine) else { return Ok(None) };
    let volume =
        volume.and_then(|volume| volume.status.as_ref()).and_then(|status| status.volume_id.as_ref());
    let Some(volume) = volume else { return Ok(None) };
    let digest = Sha256::digest(format!("{}{EBS_CSI_DRIVER}{node}", volume.0));
    let name = format!("csi-{}", HEXLOWER.encode(&digest));
    ctx.attachments.read(&Api::all(ctx.client.clone()), &name, reads).await
}

/// Children that went with their very kind: definitions that are deleted together go one by one, each with
/// the last of its objects.
fn with_their_kind<T: Default>(read: Result<T, kube::Error>, torn_down: TornDown) -> Result<T, kube::Error> {
    if torn_down.definitions { if_served(read) } else { read }
}

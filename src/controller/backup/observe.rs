//! Observe, Backup: reads everything that the plan depends on. Only reads.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, ListParams};
use kube::{CustomResourceExt, ResourceExt};

use super::mounted::Mounted;
use super::root;
use crate::api::backup::{CheckpointEngine, OwedCheckpoint};
use crate::api::names::VolumeNames;
use crate::api::{Backup, BackupStatus, Database, NodeClass, SnapshotId, Volume};
use crate::cloud::call::Call;
use crate::cloud::inventory::{SnapshotView, VolumeView};
use crate::cloud::turns::Priority;
use crate::cloud::{CloudError, EbsVolume, Snapshot};
use crate::cluster::kubelet::DiskUsage;
use crate::cluster::{self, if_served, teardown};
use crate::controller::database::in_place::underway;
use crate::controller::database::{pod, upgrade};
use crate::controller::engine_access::{Address, EnginePod, access, engine, engine_pod, is_of};
use crate::controller::memory::issued_requests::IssuedRequest;
use crate::controller::pass::context::Context;
use crate::controller::restoring::is_ending;
use crate::engine::checkpoint::{self, CheckpointStatus};
use crate::settings::Timing;

/// What the engine says of its checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineView {
    /// It was not asked: no plan needs it, or it does not run.
    NotRead,
    /// It could not be asked; why.
    Unreadable(String),
    /// It says this.
    Shown(CheckpointStatus),
}

/// What EC2 answers to a read of the snapshot by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ById {
    /// It was not read: no plan needed it yet, or the rate limit does not allow the call.
    NotRead,
    /// This account has no such snapshot.
    NotShown,
    /// EC2 shows it.
    Shown,
}

/// Everything that a Backup's plan depends on.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The Backup, read fresh.
    pub backup: Backup,
    /// Its Database.
    pub database: Option<Database>,
    /// The Volume of the Database.
    pub volume: Option<Volume>,
    /// What EC2 has under the UID of that Volume.
    pub volumes: VolumeView,
    /// The EBS volume by its id; read only when a plan needs it.
    pub ebs_now: Option<EbsVolume>,
    /// The NodeClass of that Volume; read only where Freehold has not created its EBS volume.
    pub class: Option<NodeClass>,
    /// The engine's process.
    pub pod: EnginePod,
    /// What the engine says: read after the Backup.
    pub engine: EngineView,
    /// The engine's root is not on the EBS volume, as its pod mounts that.
    pub is_root_elsewhere: bool,
    /// How much of the file system of its data is free, as its kubelet says: asked only where a checkpoint
    /// may follow, and none where it gives no answer.
    pub disk: Option<DiskUsage>,
    /// The Backup of the same Database that goes first; read only before this one has begun.
    pub first: Option<String>,
    /// The UID of the Backup that has the turn of the Database, and is gone.
    pub ended_turn: Option<String>,
    /// Its snapshots.
    pub snapshots: SnapshotView,
    /// The snapshot of the status, by its id; read only when a plan needs it.
    pub by_id: ById,
    /// When this process last requested of EC2 to create, tag or delete the snapshot.
    pub issued: BTreeMap<Call, IssuedRequest>,
    /// The UID of its namespace; read only before a snapshot is requested.
    pub namespace_uid: Option<String>,
    /// The namespace or one of our resource definitions is being deleted; read only while the Backup is being
    /// deleted.
    pub teardown: bool,
    /// The Databases that are restored from it and were never ready yet; read only while it is being deleted.
    pub users: Vec<String>,
    /// This cluster's identity.
    pub cluster_id: String,
    /// Since when this operator leads.
    pub leading_since: Timestamp,
    /// The durations.
    pub timing: Timing,
}

/// Reads; `None` when the object is gone, or is another of its name.
pub async fn observe(backup: &Backup, ctx: &Context) -> Result<Option<Observed>, kube::Error> {
    let namespace = backup.namespace().unwrap_or_default();
    let backups = Api::<Backup>::namespaced(ctx.client.clone(), &namespace);
    let fresh = backups.get_opt(&backup.name_any()).await?;
    let Some(backup) = fresh.filter(|fresh| fresh.metadata.uid == backup.metadata.uid) else {
        return Ok(None);
    };
    let status = backup.status.clone().unwrap_or_default();
    let uid = backup.uid().unwrap_or_default();
    let is_deleting = backup.metadata.deletion_timestamp.is_some();
    let snapshots = ctx.inventory.backups_of(&uid);
    let mut observed = Observed {
        database: None,
        volume: None,
        volumes: ctx.inventory.volumes_of(""),
        ebs_now: None,
        class: None,
        pod: EnginePod::Absent,
        engine: EngineView::NotRead,
        is_root_elsewhere: false,
        disk: None,
        first: None,
        ended_turn: None,
        issued: issued(&status, snapshots.snapshots.first(), ctx),
        snapshots,
        by_id: ById::NotRead,
        namespace_uid: None,
        teardown: false,
        users: Vec::new(),
        cluster_id: ctx.cluster_id.clone(),
        leading_since: ctx.leading_since,
        timing: ctx.timing.clone(),
        backup,
    };
    let is_awaiting = !is_deleting && !status.is_final() && status.snapshot_id.is_none();
    let mut mounted = None;
    if is_awaiting || status.checkpoint.is_some() {
        mounted = source(&mut observed, &namespace, ctx).await?;
    }
    if is_awaiting {
        let read = Api::<Namespace>::all(ctx.client.clone()).get_opt(&namespace).await?;
        observed.namespace_uid = read.and_then(|read| read.uid());
        if status.checkpoint.is_none() && status.creation.is_none() {
            turn(&mut observed, &backups, &namespace, ctx).await?;
        }
        if let Some(mounted) = mounted.filter(|_| may_begin(&observed)) {
            observed.disk = mounted.disk(&namespace, ctx).await;
        }
    }
    if is_deleting {
        let read = Api::<Namespace>::all(ctx.client.clone()).get_opt(&namespace).await?;
        let definitions = [Database::crd_name(), Backup::crd_name()];
        observed.teardown = teardown::is_torn_down(&ctx.client, read.as_ref(), &definitions).await?;
        let databases = Api::<Database>::namespaced(ctx.client.clone(), &namespace);
        let all = if_served(databases.list(&ListParams::default()).await.map(|list| list.items))?;
        let users = all.iter().filter(|database| uses(database, &observed.backup));
        observed.users = users.map(ResourceExt::name_any).collect();
    }
    Ok(Some(observed))
}

/// Which Backup of the Database goes first, and which has the turn and is gone.
async fn turn(
    observed: &mut Observed,
    backups: &Api<Backup>,
    namespace: &str,
    ctx: &Context,
) -> Result<(), kube::Error> {
    // Before the list: one that takes the turn meanwhile is not in it.
    let holder = ctx.backup_turns.holder(namespace, &observed.backup.spec.database_name);
    let all = backups.list(&ListParams::default()).await?.items;
    observed.first = first(&observed.backup, &all).map(ResourceExt::name_any);
    observed.ended_turn = holder.filter(|uid| all.iter().all(|it| it.metadata.uid.as_ref() != Some(uid)));
    Ok(())
}

/// Whether the engine is free for a checkpoint of this Backup.
fn may_begin(observed: &Observed) -> bool {
    let is_owed = observed.backup.status.as_ref().is_some_and(|status| status.checkpoint.is_some());
    let is_free = matches!(observed.engine, EngineView::Shown(CheckpointStatus { held_since: None, .. }));
    is_free && !is_owed && observed.first.is_none()
}

/// Reads the snapshot by its id, unless the rate limit does not allow the call.
pub async fn by_id(backup: &Backup, id: &SnapshotId, ctx: &Context) -> Result<ById, CloudError> {
    if ctx.try_take(Call::DescribeSnapshots, backup, Priority::Existing).is_err() {
        return Ok(ById::NotRead);
    }
    Ok(ctx.cloud.describe_snapshot(id).await?.map_or(ById::NotShown, |_| ById::Shown))
}

/// The Backup of the same Database that goes first: one that has begun, or that was created earlier.
pub fn first<'a>(backup: &Backup, all: &'a [Backup]) -> Option<&'a Backup> {
    let age = |it: &Backup| (it.metadata.creation_timestamp.clone().map(|at| at.0), it.name_any());
    let goes_first = |it: &&Backup| {
        let is_of = it.spec.database_name == backup.spec.database_name
            && it.metadata.uid != backup.metadata.uid
            && !it.is_over();
        let is_waiting = it.metadata.deletion_timestamp.is_none() && age(it) < age(backup);
        is_of && (it.has_begun() || is_waiting)
    };
    all.iter().filter(goes_first).min_by_key(|it| (!it.has_begun(), age(it)))
}

/// Whether a Database is being restored from this Backup: EBS reads the snapshot until the volume is whole.
pub fn uses(database: &Database, backup: &Backup) -> bool {
    let status = database.status.as_ref();
    let snapshot = backup.status.as_ref().and_then(|status| status.snapshot_id.as_ref());
    if upgrade::goes_back_to(database, snapshot) {
        return true;
    }
    if let Some(record) = underway(database) {
        return Some(&record.backup.snapshot_id) == snapshot;
    }
    if status.is_some_and(|status| status.first_ready_at.is_some()) {
        return false;
    }
    if let Some(restored) = status.and_then(|status| status.restored.as_ref()) {
        return Some(&restored.snapshot_id) == snapshot;
    }
    let names_it = database.spec.restore.as_ref().is_some_and(|it| match &it.snapshot_id {
        Some(id) => Some(id) == snapshot,
        None => it.backup_name == backup.metadata.name,
    });
    names_it && !is_ending(backup, database)
}

/// What this process has requested of EC2. The first snapshot that EC2 shows is the next one to be deleted,
/// also where no status names it.
fn issued(status: &BackupStatus, shown: Option<&Snapshot>, ctx: &Context) -> BTreeMap<Call, IssuedRequest> {
    let volume = status.creation.as_ref().map(|creation| creation.volume_id.0.as_str());
    let snapshot = status.snapshot_id.as_ref().map(|id| id.0.as_str());
    let deleted = shown.map(|snapshot| snapshot.id.0.as_str());
    let calls =
        [(Call::CreateSnapshot, volume), (Call::CreateTags, snapshot), (Call::DeleteSnapshot, deleted)];
    calls.into_iter().filter_map(|(call, id)| Some((call, ctx.issued.of(call, id?)?))).collect()
}

/// The Database, its volume, and its engine; where its data is mounted. The engine that may hold a checkpoint
/// of this Backup is the one that was noted with it, whatever has become of the Database.
async fn source(
    observed: &mut Observed,
    namespace: &str,
    ctx: &Context,
) -> Result<Option<Mounted>, kube::Error> {
    let owed = observed.backup.status.as_ref().and_then(|status| status.checkpoint.clone());
    let databases = Api::<Database>::namespaced(ctx.client.clone(), namespace);
    observed.database = if_served(databases.get_opt(&observed.backup.spec.database_name).await)?;
    let claim = volume(observed, namespace, ctx).await?;
    let Some(of) = engine_in_question(owed.as_ref(), observed.database.as_ref()) else { return Ok(None) };
    let pods = Api::<Pod>::namespaced(ctx.client.clone(), namespace);
    let pod = pods.get_opt(&of.pod_name).await?;
    let holds = |pod: &Pod| pod.uid().as_ref() == owed.as_ref().map(|owed| &owed.pod_uid);
    let is_its = |pod: &Pod| observed.database.as_ref().is_some_and(|database| is_of(pod, database));
    let pod = pod.filter(|pod| holds(pod) || is_its(pod));
    let container = of.container_name.as_deref();
    observed.pod = engine_pod(pod.as_ref(), container);
    observed.is_root_elsewhere = pod
        .as_ref()
        .zip(claim.as_ref())
        .is_some_and(|(pod, claim)| !root::is_on_volume(pod, container, claim));
    let is_needed = |it: &Database| checkpoint::is_needed(it.spec.engine.kind);
    if let EnginePod::Running { address, .. } = observed.pod
        && (owed.is_some() || observed.database.as_ref().is_some_and(is_needed))
    {
        observed.engine = asked(&of, namespace, address, ctx).await?;
    }
    let core_node = pod.as_ref().and_then(pod::machine).map(str::to_owned);
    Ok(core_node.zip(claim).map(|(core_node, claim)| Mounted { core_node, claim }))
}

/// The engine that may hold a checkpoint of this Backup; else that of the Database.
pub fn engine_in_question(
    owed: Option<&OwedCheckpoint>,
    database: Option<&Database>,
) -> Option<CheckpointEngine> {
    owed.and_then(|owed| owed.engine.clone()).or_else(|| database.map(engine))
}

/// Reads the Volume of the Database; gives its claim.
async fn volume(
    observed: &mut Observed,
    namespace: &str,
    ctx: &Context,
) -> Result<Option<String>, kube::Error> {
    let status = observed.database.as_ref().and_then(|database| database.status.as_ref());
    let Some(name) = status.and_then(|status| status.volume_name.clone()) else { return Ok(None) };
    let volumes = Api::<Volume>::namespaced(ctx.client.clone(), namespace);
    observed.volume = if_served(volumes.get_opt(&name).await)?;
    let uid = observed.volume.as_ref().and_then(ResourceExt::uid).unwrap_or_default();
    observed.volumes = ctx.inventory.volumes_of(&uid);
    let is_created = |it: &Volume| it.status.as_ref().is_some_and(|status| status.creation.is_some());
    if let Some(volume) = observed.volume.as_ref().filter(|volume| !is_created(volume)) {
        let name = &volume.spec.node_class_name;
        observed.class = cluster::node_class(&ctx.node_classes, &ctx.client, name).await?;
    }
    Ok(observed.volume.as_ref().map(|volume| VolumeNames::of(volume).claim))
}

async fn asked(
    engine: &CheckpointEngine,
    namespace: &str,
    address: Option<Address>,
    ctx: &Context,
) -> Result<EngineView, kube::Error> {
    let access = match access(engine, namespace, address, ctx).await? {
        Ok(access) => access,
        Err(why) => return Ok(EngineView::Unreadable(why)),
    };
    Ok(match ctx.engines.checkpoint(&access).await {
        Ok(status) => EngineView::Shown(status),
        Err(error) => EngineView::Unreadable(error.to_string()),
    })
}

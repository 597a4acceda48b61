//! What no object claims, and what a person can do about it. Pure.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolume;
use kube::ResourceExt;
use serde::Serialize;
use strum::{EnumIter, IntoStaticStr};

use crate::api::keys::{BACKUP_UID_TAG, CLUSTER_ID_TAG, DATABASE_TAG, NODE_UID_TAG, VOLUME_UID_TAG};
use crate::api::{Backup, Database, InstanceId, Node, Volume, VolumeId};
use crate::cloud::identity::{self, Kind};
use crate::cloud::{EbsVolume, Instance, InstanceState, Snapshot, SnapshotState, VolumeState};
use crate::cluster::persistent_volume;
use crate::controller::retention;

/// What there is.
pub struct Found {
    /// The instances with this cluster's tag.
    pub instances: Vec<Instance>,
    /// The EBS volumes with this cluster's tag.
    pub ebs_volumes: Vec<EbsVolume>,
    /// The snapshots with this cluster's tag.
    pub snapshots: Vec<Snapshot>,
    /// The namespace that the objects are of; of all, if none.
    pub namespace: Option<String>,
    /// The Databases.
    pub databases: Vec<Database>,
    /// The Nodes.
    pub nodes: Vec<Node>,
    /// The Volumes.
    pub volumes: Vec<Volume>,
    /// The Backups.
    pub backups: Vec<Backup>,
    /// The PersistentVolumes of the cluster.
    pub persistent_volumes: Vec<PersistentVolume>,
}

/// What a resource in EC2 is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, IntoStaticStr, EnumIter)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Type {
    /// An instance.
    Instance,
    /// An EBS volume.
    Volume,
    /// A snapshot.
    Snapshot,
}

/// A resource in EC2 that no object claims.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Orphan {
    /// What it is.
    pub kind: Type,
    /// Its id.
    pub id: String,
    /// The Database that its tags name, as `namespace/name`.
    pub database: Option<String>,
    /// The UID of the Node or Volume that its tags name.
    #[serde(rename = "ownerUID")]
    pub owner_uid: Option<String>,
    /// Its state, as EC2 names it.
    pub state: String,
    /// When it was created, or started last.
    pub created_at: Option<Timestamp>,
    /// The instance type, or GiB.
    pub size: String,
    /// Its zone; a snapshot has none.
    pub zone: Option<String>,
    /// What depends on it, or must be known of it.
    pub holds: Vec<String>,
    /// What a person can do, as commands.
    pub way_out: Vec<String>,
}

/// Everything that no object claims.
pub fn orphans(found: &Found) -> Vec<Orphan> {
    let claimed = Claimed::of(found);
    let instances = found.instances.iter().filter(|it| is_live(it.state) && !claimed.instance(it));
    let instances: Vec<&Instance> = instances.collect();
    let with_instance: BTreeSet<&InstanceId> = instances.iter().map(|it| &it.id).collect();
    let volumes = found.ebs_volumes.iter().filter(|it| {
        let is_there = !matches!(it.state, VolumeState::Deleting | VolumeState::Deleted);
        // A machine's own disk goes with its instance.
        let goes_with = it.attachments.iter().any(|held| {
            held.delete_on_termination
                && it.tags.contains_key(NODE_UID_TAG)
                && (with_instance.contains(&held.instance) || claimed.has_instance(found, &held.instance))
        });
        is_there && !goes_with && !claimed.ebs_volume(it)
    });
    let snapshots = found.snapshots.iter().filter(|it| !claimed.snapshot(it));
    let all = instances
        .iter()
        .map(|it| instance(found, &claimed, it))
        .chain(volumes.map(|it| ebs_volume(found, it)))
        .chain(snapshots.map(|it| snapshot(found, it)));
    all.filter(|orphan| is_of(found.namespace.as_deref(), orphan)).collect()
}

fn is_of(namespace: Option<&str>, orphan: &Orphan) -> bool {
    let own = orphan.database.as_ref().and_then(|database| database.split('/').next());
    namespace.is_none_or(|namespace| own == Some(namespace))
}

fn is_live(state: InstanceState) -> bool {
    !matches!(state, InstanceState::ShuttingDown | InstanceState::Terminated)
}

/// What the objects claim.
struct Claimed {
    nodes: BTreeSet<String>,
    instances: BTreeSet<InstanceId>,
    volumes: BTreeSet<String>,
    ebs_volumes: BTreeSet<VolumeId>,
    backups: BTreeSet<String>,
    snapshots: BTreeSet<String>,
}

impl Claimed {
    fn of(found: &Found) -> Self {
        let of_volumes = found.volumes.iter().filter_map(|it| it.status.as_ref());
        let of_backups = found.backups.iter().filter_map(|it| it.status.as_ref());
        let kept = found.persistent_volumes.iter().filter_map(retention::read);
        Self {
            nodes: found.nodes.iter().filter_map(ResourceExt::uid).collect(),
            instances: found.nodes.iter().filter_map(|it| it.status.as_ref()?.instance_id.clone()).collect(),
            volumes: found.volumes.iter().flat_map(retention::claims).collect(),
            ebs_volumes: of_volumes
                .clone()
                .filter_map(|status| status.volume_id.clone())
                .chain(kept.map(|kept| kept.volume_id))
                .collect(),
            snapshots: of_volumes
                .filter_map(|status| Some(status.final_snapshot.as_ref()?.snapshot_id.as_ref()?.0.clone()))
                .chain(of_backups.filter_map(|status| Some(status.snapshot_id.as_ref()?.0.clone())))
                .collect(),
            backups: found.backups.iter().filter_map(ResourceExt::uid).collect(),
        }
    }

    fn instance(&self, instance: &Instance) -> bool {
        let owner = identity::owner_uid(Kind::Node, &instance.tags);
        self.instances.contains(&instance.id) || owner.is_some_and(|uid| self.nodes.contains(uid))
    }

    fn has_instance(&self, found: &Found, id: &InstanceId) -> bool {
        found.instances.iter().any(|it| it.id == *id && self.instance(it))
    }

    fn ebs_volume(&self, volume: &EbsVolume) -> bool {
        let of_volume = identity::owner_uid(Kind::Volume, &volume.tags);
        let of_node = identity::owner_uid(Kind::Node, &volume.tags);
        self.ebs_volumes.contains(&volume.id)
            || of_volume.is_some_and(|uid| self.volumes.contains(uid))
            || of_volume.is_none() && of_node.is_some_and(|uid| self.nodes.contains(uid))
    }

    fn snapshot(&self, snapshot: &Snapshot) -> bool {
        let owner = snapshot.tags.get(VOLUME_UID_TAG);
        let of_backup = identity::owner_uid(Kind::Backup, &snapshot.tags);
        self.snapshots.contains(&snapshot.id.0)
            || owner.is_some_and(|uid| self.volumes.contains(uid))
            || of_backup.is_some_and(|uid| self.backups.contains(uid))
    }
}

fn database(tags: &BTreeMap<String, String>) -> Option<String> {
    tags.get(DATABASE_TAG).cloned()
}

fn instance(found: &Found, claimed: &Claimed, instance: &Instance) -> Orphan {
    let id = &instance.id;
    let held: Vec<&EbsVolume> = found.ebs_volumes.iter().filter(|it| is_data(it, id)).collect();
    let mut holds: Vec<String> = held.iter().map(|volume| held_up(found, claimed, volume)).collect();
    let own = |volume: &VolumeId| found.ebs_volumes.iter().any(|it| it.id == *volume);
    let others: Vec<&str> =
        instance.volumes.iter().filter(|volume| !own(volume)).map(|it| it.0.as_str()).collect();
    if !others.is_empty() {
        holds.push(format!("EBS volume {} without this cluster's tags is attached", others.join(", ")));
    }
    let mut way_out: Vec<String> = held.iter().filter_map(|volume| keep(volume, id)).collect();
    if identity::is_made(Kind::Node, &instance.tags, instance.token.as_ref()) {
        way_out.push(format!("aws ec2 terminate-instances --instance-ids {id}"));
    } else {
        holds.push("it was not launched by Freehold, and may serve something else".to_owned());
        way_out.push(format!(
            "aws ec2 delete-tags --resources {id} --tags Key={CLUSTER_ID_TAG} Key={NODE_UID_TAG}"
        ));
    }
    Orphan {
        kind: Type::Instance,
        id: id.0.clone(),
        database: database(&instance.tags),
        owner_uid: identity::owner_uid(Kind::Node, &instance.tags).map(str::to_owned),
        state: state_of_instance(instance.state).to_owned(),
        created_at: instance.launched_at,
        size: instance.instance_type.clone(),
        zone: Some(instance.zone.clone()),
        holds,
        way_out,
    }
}

/// Whether it is attached to this instance, and no disk of the machine's own.
fn is_data(volume: &EbsVolume, instance: &InstanceId) -> bool {
    let is_attached = volume.attachments.iter().any(|it| it.instance == *instance);
    is_attached && identity::owner_uid(Kind::Volume, &volume.tags).is_some()
}

fn held_up(found: &Found, claimed: &Claimed, volume: &EbsVolume) -> String {
    let id = &volume.id;
    let uid = identity::owner_uid(Kind::Volume, &volume.tags);
    let waits = found.volumes.iter().find(|it| {
        let is_recorded = it.status.as_ref().is_some_and(|status| status.volume_id.as_ref() == Some(id));
        is_recorded || uid.is_some_and(|uid| retention::claims(it).contains(uid))
    });
    match waits {
        Some(volume) => {
            let (namespace, name) = (volume.namespace().unwrap_or_default(), volume.name_any());
            format!("EBS volume {id} is attached, and Volume {namespace}/{name} waits for it")
        }
        None if claimed.ebs_volume(volume) => format!("EBS volume {id} is attached, which is retained"),
        None => format!("EBS volume {id} is attached, which no object claims either"),
    }
}

/// What keeps the data of a volume that EC2 would delete with the instance.
fn keep(volume: &EbsVolume, instance: &InstanceId) -> Option<String> {
    let held = volume.attachments.iter().find(|it| it.instance == *instance && it.delete_on_termination)?;
    Some(format!(
        "aws ec2 modify-instance-attribute --instance-id {instance} --block-device-mappings \
         '[{{\"DeviceName\":\"{}\",\"Ebs\":{{\"DeleteOnTermination\":false}}}}]'",
        held.device
    ))
}

fn ebs_volume(found: &Found, volume: &EbsVolume) -> Orphan {
    let id = &volume.id;
    let mut holds: Vec<String> = volume
        .attachments
        .iter()
        .map(|held| format!("it is attached to instance {}", held.instance))
        .collect();
    let persistent = found.persistent_volumes.iter();
    let named = persistent.filter(|it| persistent_volume::ebs_volume(it).as_ref() == Some(id));
    holds.extend(
        named.map(|it| format!("PersistentVolume {} names it, and is no retention record", it.name_any())),
    );
    let whose = database(&volume.tags);
    if found.databases.iter().any(|it| whose.as_ref() == Some(&of(it))) {
        holds.push("a Database of this name exists, with another volume".to_owned());
    }
    let uid = |kind| identity::owner_uid(kind, &volume.tags).map(str::to_owned);
    let mut way_out = Vec::new();
    if volume.attachments.is_empty() {
        if uid(Kind::Volume).is_some() {
            way_out.push(format!("aws ec2 create-snapshot --volume-id {id}"));
        }
        way_out.push(format!("aws ec2 delete-volume --volume-id {id}"));
    }
    Orphan {
        kind: Type::Volume,
        id: id.0.clone(),
        owner_uid: uid(Kind::Volume).or_else(|| uid(Kind::Node)),
        database: whose,
        state: state_of_volume(volume.state).to_owned(),
        created_at: volume.created_at,
        size: format!("{} GiB", volume.size),
        zone: Some(volume.zone.clone()),
        holds,
        way_out,
    }
}

fn snapshot(found: &Found, snapshot: &Snapshot) -> Orphan {
    let id = &snapshot.id;
    let is_there = found.ebs_volumes.iter().any(|it| it.id == snapshot.volume);
    let is_backup = identity::owner_uid(Kind::Backup, &snapshot.tags).is_some();
    let is_final = identity::owner_uid(Kind::Snapshot, &snapshot.tags).is_some();
    let state = match snapshot.state {
        SnapshotState::Pending => "pending",
        SnapshotState::Completed => "completed",
        SnapshotState::Error => "error",
    };
    let holds = match (snapshot.state, is_there) {
        (SnapshotState::Completed, _) if is_backup => {
            "a backup, retained when its Backup was deleted".to_owned()
        }
        (_, true) => format!("EBS volume {} is still there", snapshot.volume),
        (SnapshotState::Completed, false) if is_final => {
            "the data of a deleted Database, by its deletionPolicy Snapshot".to_owned()
        }
        (_, false) => format!("EBS volume {} is not there any more", snapshot.volume),
    };
    Orphan {
        kind: Type::Snapshot,
        id: id.0.clone(),
        database: database(&snapshot.tags),
        owner_uid: snapshot.tags.get(VOLUME_UID_TAG).or_else(|| snapshot.tags.get(BACKUP_UID_TAG)).cloned(),
        state: state.to_owned(),
        created_at: snapshot.started_at,
        size: snapshot.size.map(|size| format!("{size} GiB")).unwrap_or_default(),
        zone: None,
        holds: vec![holds],
        way_out: vec![format!("aws ec2 delete-snapshot --snapshot-id {id}")],
    }
}

fn of(database: &Database) -> String {
    format!("{}/{}", database.namespace().unwrap_or_default(), database.name_any())
}

fn state_of_instance(state: InstanceState) -> &'static str {
    match state {
        InstanceState::Pending => "pending",
        InstanceState::Running => "running",
        InstanceState::ShuttingDown => "shutting-down",
        InstanceState::Terminated => "terminated",
        InstanceState::Stopping => "stopping",
        InstanceState::Stopped => "stopped",
        InstanceState::Unknown => "unknown",
    }
}

fn state_of_volume(state: VolumeState) -> &'static str {
    match state {
        VolumeState::Creating => "creating",
        VolumeState::Available => "available",
        VolumeState::InUse => "in-use",
        VolumeState::Deleting => "deleting",
        VolumeState::Deleted => "deleted",
        VolumeState::Error => "error",
        VolumeState::Unknown => "unknown",
    }
}

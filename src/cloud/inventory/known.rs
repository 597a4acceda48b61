//! What the inventory knows: the resources of each kind, as EC2 last showed them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::store::{AnyStore, Resource, Store};
use super::view::InitializationView;

use crate::api::{InstanceId, VolumeId};
use crate::cloud::identity::Kind;
use crate::cloud::{EbsVolume, Instance, InstanceHealth, InstanceState, Modification, Snapshot};

/// What is known of each kind.
#[derive(Default)]
pub(super) struct Known {
    pub instances: Instances,
    pub volumes: Volumes,
    pub snapshots: Store<Snapshot>,
    pub backups: Store<BackupSnapshot>,
    /// Final snapshots, as the last full sync of Backups' snapshots showed them.
    pub finals: Vec<Snapshot>,
}

/// What is known of instances.
#[derive(Default)]
pub(super) struct Instances {
    pub store: Store<Instance>,
    pub unhealthy: Vec<InstanceHealth>,
    /// When the last read of the instances' health began that EC2 answered.
    pub health_at: Option<Instant>,
    /// When the last one began, answered or not.
    pub health_requested_at: Option<Instant>,
    /// Zones whose instances EC2 refuses to list, since the last full sync.
    pub refused_zones: BTreeSet<String>,
    /// The instance that each Node names, by the Node's UID: read by its id while EC2 refuses lists.
    pub named: BTreeMap<String, Named>,
    /// When the last read by id began that showed an instance, since the last full sync.
    pub read_by_id: BTreeMap<InstanceId, Timestamp>,
}

/// An instance that a Node names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The instance.
    pub id: InstanceId,
    /// Its zone, as the Node has it.
    pub zone: String,
}

/// What is known of volumes.
#[derive(Default)]
pub(super) struct Volumes {
    pub store: Store<EbsVolume>,
    /// What EC2 answered of the volumes whose modification is awaited; none where no answer has come yet.
    pub modifications: BTreeMap<VolumeId, Option<Modification>>,
    /// Those that EC2 reads from their snapshots.
    pub initializing: Initializing,
}

/// What is known of the volumes whose initialization is awaited.
#[derive(Default)]
pub(super) struct Initializing {
    /// These volumes, by the UIDs of their owners.
    pub awaited: BTreeMap<String, VolumeId>,
    /// What EC2 last said of each.
    pub answers: BTreeMap<VolumeId, InitializationView>,
    /// When EC2 was last asked, answered or not, since the newest of them is awaited.
    pub requested_at: Option<Instant>,
}

/// A snapshot whose owner is a Backup.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BackupSnapshot(pub Snapshot);

impl Resource for BackupSnapshot {
    const KIND: Kind = Kind::Backup;

    fn id(&self) -> &str {
        &self.0.id.0
    }

    fn tags(&self) -> &BTreeMap<String, String> {
        &self.0.tags
    }
}

impl Known {
    /// Where the resources of this kind are kept.
    pub fn store(&mut self, kind: Kind) -> &mut dyn AnyStore {
        match kind {
            Kind::Node => &mut self.instances.store,
            Kind::Volume => &mut self.volumes.store,
            Kind::Snapshot => &mut self.snapshots,
            Kind::Backup => &mut self.backups,
        }
    }

    /// Forgets what was known only for an interest that may have ended, so that the next modification of a
    /// volume does not begin with the end of the last one.
    pub fn forget_unawaited(&mut self, kind: Kind) {
        if kind != Kind::Volume {
            return;
        }
        let modifying = self.volumes.store.modifying();
        self.volumes.modifications.retain(|id, _| modifying.contains(id));
    }
}

impl Initializing {
    /// Sets the volume of this owner whose initialization is awaited; none if that has ended.
    pub fn set(&mut self, uid: &str, id: Option<&VolumeId>) {
        if self.awaited.get(uid) == id {
            return;
        }
        if let Some(id) = id {
            self.awaited.insert(uid.to_owned(), id.clone());
            self.requested_at = None;
        } else {
            self.awaited.remove(uid);
        }
        let awaited: BTreeSet<&VolumeId> = self.awaited.values().collect();
        self.answers.retain(|id, _| awaited.contains(id));
    }

    /// What EC2 last said of this owner's volume.
    pub fn of(&self, uid: &str) -> Option<InitializationView> {
        self.answers.get(self.awaited.get(uid)?).copied()
    }

    /// Whether something is awaited and EC2 was last asked this long ago.
    pub fn is_due(&self, pause: Duration, now: Instant) -> bool {
        !self.awaited.is_empty() && self.requested_at.is_none_or(|at| now.duration_since(at) >= pause)
    }
}

impl Instances {
    /// Every instance that is known or named, by zone, but for those that have ended: EC2 forgets them, and
    /// an id that it does not know fails the call for all.
    pub fn by_zone(&self) -> BTreeMap<String, BTreeSet<InstanceId>> {
        let mut zones: BTreeMap<String, BTreeSet<InstanceId>> = BTreeMap::new();
        let known: BTreeMap<&InstanceId, &Instance> =
            self.store.values().map(|instance| (&instance.id, instance)).collect();
        let live = known.values().filter(|instance| instance.state != InstanceState::Terminated);
        let shown = live.map(|instance| (&instance.zone, &instance.id));
        let named = self.named.values().filter(|named| !known.contains_key(&named.id));
        for (zone, id) in shown.chain(named.map(|named| (&named.zone, &named.id))) {
            zones.entry(zone.clone()).or_default().insert(id.clone());
        }
        zones
    }

    /// Whether the last read of the instances' health, answered or not, is this old.
    pub fn is_health_due(&self, pause: Duration, now: Instant) -> bool {
        self.health_requested_at.is_none_or(|at| now.duration_since(at) >= pause)
    }

    /// Whether EC2's last answer about the instances' health is this old.
    pub fn is_health_old(&self, age: Duration, now: Instant) -> bool {
        self.health_at.is_none_or(|at| now.duration_since(at) >= age)
    }
}

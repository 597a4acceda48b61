//! What the inventory knows: the resources of each kind, as EC2 last showed them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::store::{AnyStore, Store};

use crate::api::{InstanceId, VolumeId};
use crate::cloud::identity::Kind;
use crate::cloud::{EbsVolume, Instance, InstanceHealth, Modification, Snapshot};

/// What is known of each kind.
#[derive(Default)]
pub(super) struct Known {
    pub instances: Instances,
    pub volumes: Volumes,
    pub snapshots: Store<Snapshot>,
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
    /// Live instances with the tags of a Node of which no pass has heard, and since which full sync.
    pub unclaimed: BTreeMap<InstanceId, Timestamp>,
    /// When these were last noted.
    pub unclaimed_until: Option<Timestamp>,
    /// Zones whose instances EC2 has refused to list since the last full sync.
    pub refused_zones: BTreeSet<String>,
}

/// What is known of volumes.
#[derive(Default)]
pub(super) struct Volumes {
    pub store: Store<EbsVolume>,
    /// What EC2 answered of the volumes whose modification is awaited; none where no answer has come yet.
    pub modifications: BTreeMap<VolumeId, Option<Modification>>,
}

impl Known {
    /// Where the resources of this kind are kept.
    pub fn store(&mut self, kind: Kind) -> &mut dyn AnyStore {
        match kind {
            Kind::Node => &mut self.instances.store,
            Kind::Volume => &mut self.volumes.store,
            Kind::Snapshot => &mut self.snapshots,
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

impl Instances {
    /// Whether the last read of the instances' health, answered or not, is this old.
    pub fn is_health_due(&self, pause: Duration, now: Instant) -> bool {
        self.health_requested_at.is_none_or(|at| now.duration_since(at) >= pause)
    }

    /// Whether EC2's last answer about the instances' health is this old.
    pub fn is_health_old(&self, age: Duration, now: Instant) -> bool {
        self.health_at.is_none_or(|at| now.duration_since(at) >= age)
    }
}

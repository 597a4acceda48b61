//! What EC2 shows of this cluster's resources: a cache that few list calls fill for all objects together, and that says how old it is.
//!
//! A pass reads views; it never describes by itself. A sweep lists by cluster tag; a failed one changes nothing but the age. What a
//! pass awaits it says by [`Inventory::set_interest`]: then sweeps come every few seconds and look-ups count towards proving absence.

mod store;
mod sweep;
#[cfg(test)]
mod tests;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::Stream;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::store::Store;
pub use self::view::{Awaited, EmptyRuns, InstanceView, Interest, SnapshotView, SweepStats, VolumeView, Wake};
use super::identity::Kind;
use super::limits::Limits;
use super::{Cloud, EbsVolume, Instance, InstanceHealth, InstanceState, Modification, Snapshot};
use crate::api::{InstanceId, VolumeId};
use crate::clock::Clock;
use crate::settings::Timing;

/// The shared cache of what EC2 shows.
pub struct Inventory {
    cloud: Arc<dyn Cloud>,
    limits: Arc<Limits>,
    clock: Arc<dyn Clock>,
    timing: Timing,
    cluster_id: String,
    state: Mutex<State>,
    /// Tells the loop of a kind to look again at when its next sweep is due.
    nudges: Nudges,
    /// When instances were last asked whether they are well.
    health_at: Mutex<Option<Instant>>,
}

/// One signal for each loop.
#[derive(Default)]
struct Nudges {
    nodes: Notify,
    volumes: Notify,
    snapshots: Notify,
}

impl Nudges {
    fn of(&self, kind: Kind) -> &Notify {
        match kind {
            Kind::Node => &self.nodes,
            Kind::Volume => &self.volumes,
            Kind::Snapshot => &self.snapshots,
        }
    }
}

/// Everything that is known. The lock around it is never held across an await.
#[derive(Default)]
struct State {
    instances: Store<Instance>,
    volumes: Store<EbsVolume>,
    snapshots: Store<Snapshot>,
    unhealthy: Vec<InstanceHealth>,
    /// Zones that EC2 did not answer for, since the last complete sweep.
    refused_zones: BTreeSet<String>,
    /// What EC2 answered of the volumes whose modification is awaited; none where it was not asked yet.
    modifications: BTreeMap<VolumeId, Option<Modification>>,
    subscribers: Vec<UnboundedSender<Wake>>,
}

impl State {
    /// Tells everyone who listens; who listens no more is forgotten.
    fn wake(&mut self, kind: Kind, uids: impl IntoIterator<Item = String>) {
        for uid in uids {
            let wake = Wake { kind, uid };
            self.subscribers.retain(|subscriber| subscriber.unbounded_send(wake.clone()).is_ok());
        }
    }
}

impl Inventory {
    /// An empty inventory; [`Inventory::run`] fills it. `timing` is the one that the passes use (already scaled).
    pub fn new(
        cloud: Arc<dyn Cloud>,
        limits: Arc<Limits>,
        clock: Arc<dyn Clock>,
        timing: Timing,
        cluster_id: impl Into<String>,
    ) -> Arc<Self> {
        Arc::new(Self {
            cloud,
            limits,
            clock,
            timing,
            cluster_id: cluster_id.into(),
            state: Mutex::default(),
            nudges: Nudges::default(),
            health_at: Mutex::default(),
        })
    }

    /// Sweeps until it is told to stop.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        tokio::join!(self.keep(Kind::Node, &stop), self.keep(Kind::Volume, &stop), self.keep(Kind::Snapshot, &stop));
    }

    /// What EC2 shows of the instances of this `Node`.
    pub fn instances_of(&self, node_uid: &str) -> InstanceView {
        // A machine may be well again since, and EC2 has not answered the question for too long.
        let is_old = self.is_health_due(self.timing.trust(), Instant::now());
        let state = self.lock();
        let instances = state.instances.of(node_uid);
        let is_ill = |health: &&InstanceHealth| !is_old && instances.iter().any(|instance| instance.id == health.id);
        InstanceView {
            unhealthy: state.unhealthy.iter().filter(is_ill).cloned().collect(),
            instances,
            swept_at: state.instances.swept_at(),
            token_looked_up_at: state.instances.token_looked_up_at(node_uid),
            empty: state.instances.empty_runs(node_uid),
        }
    }

    /// Whether EC2 shows this instance of a `Node`'s neither starting nor running.
    pub fn has_ended(&self, node_uid: &str, instance: &InstanceId) -> bool {
        let is_well = |state| matches!(state, InstanceState::Pending | InstanceState::Running | InstanceState::Unknown);
        self.lock().instances.of(node_uid).iter().any(|known| known.id == *instance && !is_well(known.state))
    }

    /// Whether EC2 refused to list the instances of this zone, and no complete sweep has followed.
    pub fn refuses_zone(&self, zone: &str) -> bool {
        self.lock().refused_zones.contains(zone)
    }

    /// What EC2 shows of the EBS volumes of this `Volume`.
    pub fn volumes_of(&self, volume_uid: &str) -> VolumeView {
        let state = self.lock();
        let volumes = state.volumes.of(volume_uid);
        let answer = volumes.iter().find_map(|volume| state.modifications.get(&volume.id));
        VolumeView {
            modification: answer.cloned().flatten(),
            modification_is_known: answer.is_some(),
            volumes,
            swept_at: state.volumes.swept_at(),
            empty: state.volumes.empty_runs(volume_uid).by_tag,
        }
    }

    /// What EC2 shows of the final snapshots of this `Volume`. Snapshots are listed only while a pass is interested in one.
    pub fn snapshots_of(&self, volume_uid: &str) -> SnapshotView {
        let state = self.lock();
        SnapshotView {
            snapshots: state.snapshots.of(volume_uid),
            swept_at: state.snapshots.swept_at(),
            empty: state.snapshots.empty_runs(volume_uid).by_tag,
        }
    }

    /// Says what a pass awaits of this owner's resources. The same interest again changes nothing; another token or another last
    /// possible send starts the look-ups that prove absence anew.
    pub fn set_interest(&self, kind: Kind, uid: &str, interest: Interest) {
        {
            let mut state = self.lock();
            match kind {
                Kind::Node => state.instances.set_interest(uid, interest),
                Kind::Volume => {
                    state.volumes.set_interest(uid, interest);
                    let State { volumes, modifications, .. } = &mut *state;
                    let modifying = volumes.modifying();
                    modifications.retain(|id, _| modifying.contains(id));
                }
                Kind::Snapshot => state.snapshots.set_interest(uid, interest),
            }
        }
        self.nudges.of(kind).notify_one();
    }

    /// The owner is gone: nothing is awaited any more.
    pub fn forget(&self, kind: Kind, uid: &str) {
        let mut state = self.lock();
        match kind {
            Kind::Node => state.instances.forget(uid),
            Kind::Volume => state.volumes.forget(uid),
            Kind::Snapshot => state.snapshots.forget(uid),
        }
    }

    /// Asks for a sweep soon: to be called after a mutating call. Many of them make no more than one sweep in a quarter of
    /// `sweep_pending`.
    pub fn poke(&self, kind: Kind) {
        {
            let mut state = self.lock();
            match kind {
                Kind::Node => state.instances.poke(),
                Kind::Volume => state.volumes.poke(),
                Kind::Snapshot => state.snapshots.poke(),
            }
        }
        self.nudges.of(kind).notify_one();
    }

    /// When the last complete sweep of this kind started; `None` before the first.
    pub fn last_complete(&self, kind: Kind) -> Option<Timestamp> {
        self.stats(kind).last_complete
    }

    /// True if an instance of this Node's is known by its token alone: its tags lag, or were taken off.
    pub fn is_by_token_alone(&self, node_uid: &str) -> bool {
        self.lock().instances.is_by_token_alone(node_uid)
    }

    /// How the sweeps of this kind went, for metrics and logs.
    pub fn stats(&self, kind: Kind) -> SweepStats {
        let state = self.lock();
        match kind {
            Kind::Node => state.instances.stats(),
            Kind::Volume => state.volumes.stats(),
            Kind::Snapshot => state.snapshots.stats(),
        }
    }

    /// The owners whose view changed, from now on; and, while a pass awaits a proof, its owner each time a look-up finished. Every
    /// caller has a stream of its own, and must read it.
    pub fn wakes(&self) -> impl Stream<Item = Wake> + Send + Unpin + use<> {
        let (sender, receiver): (_, UnboundedReceiver<Wake>) = unbounded();
        self.lock().subscribers.push(sender);
        receiver
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

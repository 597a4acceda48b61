//! What EC2 shows of this cluster's resources: a cache that a few list calls fill for all objects together,
//! and that knows its age.
//!
//! A pass reads views; it never lists by itself. A full sync lists by cluster tag; a failed one leaves the
//! data as it was. A pass registers what it awaits by [`Inventory::set_interest`]: then syncs come every few
//! seconds, and look-ups count towards proving absence.

mod coverage;
mod kinds;
mod known;
mod store;
mod sync;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::Stream;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::future::join_all;
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use strum::IntoEnumIterator;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::known::Known;
use self::store::AnyStore;
use super::Cloud;
use super::identity::{self, Kind};
use super::limits::Limits;

use crate::clock::Clock;
use crate::settings::Timing;

pub use self::view::{
    Awaited, EmptyRuns, InitializationView, InstanceView, Interest, SnapshotView, SyncStats, TaggedVolume,
    VolumeView, Wake,
};

/// The shared cache of what EC2 shows.
pub struct Inventory {
    cloud: Arc<dyn Cloud>,
    limits: Arc<Limits>,
    clock: Arc<dyn Clock>,
    timing: Timing,
    cluster_id: String,
    /// Those whose resources are missed where their owner is gone; of all namespaces, if none.
    namespaces: Mutex<BTreeSet<String>>,
    state: Mutex<State>,
}

/// Everything that is known. The lock around it is never held across an await.
#[derive(Default)]
struct State {
    known: Known,
    /// Makes the loop of a kind compute again when its next sync is due.
    signals: BTreeMap<Kind, Arc<Notify>>,
    subscribers: Vec<UnboundedSender<Wake>>,
    /// When the last sync of each kind began, whatever came of it.
    attempts: BTreeMap<Kind, Instant>,
}

impl State {
    fn store(&mut self, kind: Kind) -> &mut dyn AnyStore {
        self.known.store(kind)
    }

    fn signal(&mut self, kind: Kind) -> Arc<Notify> {
        Arc::clone(self.signals.entry(kind).or_default())
    }

    /// Sends to every subscriber; a subscriber that has gone is removed.
    fn wake(&mut self, kind: Kind, uids: impl IntoIterator<Item = String>) {
        for uid in uids {
            let wake = Wake { kind, uid };
            self.subscribers.retain(|subscriber| subscriber.unbounded_send(wake.clone()).is_ok());
        }
    }
}

impl Inventory {
    /// An empty inventory; [`Inventory::run`] fills it. `timing` is the one that the passes use (already
    /// scaled).
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
            namespaces: Mutex::default(),
            state: Mutex::default(),
        })
    }

    /// Only resources of Databases of these namespaces are missed where their owner is gone; none: of all.
    pub fn expect_only(&self, namespaces: impl IntoIterator<Item = String>) {
        *self.namespaces.lock() = namespaces.into_iter().collect();
    }

    /// Runs the loops of all kinds until the token is cancelled.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        join_all(Kind::iter().map(|kind| self.run_loop(kind, &stop))).await;
    }

    /// Sets what a pass awaits of this owner's resources. The same interest again changes nothing; another
    /// token or another last possible send starts the look-ups that prove absence anew.
    pub fn set_interest(&self, kind: Kind, uid: &str, interest: Interest) {
        let mut state = self.lock();
        state.store(kind).set_interest(uid, interest);
        state.known.forget_unawaited(kind);
        state.signal(kind).notify_one();
    }

    /// Says which resource the status of this owner names, of which a pass has set an interest; none where
    /// its end was seen, or it lost its tags with its owner's consent.
    pub fn set_named(&self, kind: Kind, uid: &str, id: Option<&str>) {
        self.lock().store(kind).set_named(uid, id);
    }

    /// What may have been an owner of instances or volumes no longer exists.
    pub fn forget_gone(&self, uid: &str) {
        for kind in [Kind::Node, Kind::Volume] {
            self.forget(kind, uid);
        }
    }

    /// The owner no longer exists: nothing is awaited for it.
    pub fn forget(&self, kind: Kind, uid: &str) {
        let mut state = self.lock();
        state.store(kind).forget(uid);
        if kind == Kind::Node {
            state.known.instances.named.remove(uid);
        }
        if kind == Kind::Volume {
            state.known.volumes.initializing.set(uid, None);
        }
    }

    /// Requests a sync soon: to be called after a mutating call. Many requests make no more than one sync in
    /// a quarter of `pending_sync_interval`.
    pub fn request_sync(&self, kind: Kind) {
        let mut state = self.lock();
        state.store(kind).request_sync();
        state.signal(kind).notify_one();
    }

    /// When the last full sync of this kind started; `None` before the first.
    pub fn last_complete(&self, kind: Kind) -> Option<Timestamp> {
        self.stats(kind).last_complete
    }

    /// How the syncs of this kind went, for metrics and logs.
    pub fn stats(&self, kind: Kind) -> SyncStats {
        self.lock().store(kind).stats()
    }

    /// The owners whose view changed, from now on; and, while a pass awaits a proof, its owner each time a
    /// look-up finished. Every caller has a stream of its own, and must read it.
    pub fn wakes(&self) -> impl Stream<Item = Wake> + Send + Unpin + use<> {
        let (sender, receiver): (_, UnboundedReceiver<Wake>) = unbounded();
        self.lock().subscribers.push(sender);
        receiver
    }

    /// Whether what carries these tags is missed where its owner is gone.
    fn expects(&self, tags: &BTreeMap<String, String>) -> bool {
        let namespaces = self.namespaces.lock();
        let namespace = identity::namespace(tags);
        namespaces.is_empty() || namespace.is_some_and(|namespace| namespaces.contains(namespace))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests;

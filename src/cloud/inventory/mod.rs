//! What EC2 shows of this cluster's resources: a cache that few list calls fill for all objects together, and that says how old it is.
//!
//! A pass reads views; it never describes by itself. A sweep lists by cluster tag; a failed one changes nothing but the age. What a
//! pass awaits it says by [`Inventory::set_interest`]: then sweeps come every few seconds and look-ups count towards proving absence.

mod kinds;
mod store;
mod sync;
mod view;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::Stream;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::future::join_all;
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use self::kinds::Known;
use self::store::AnyStore;
pub use self::view::{Awaited, EmptyRuns, InstanceView, Interest, SnapshotView, SweepStats, VolumeView, Wake};
use super::Cloud;
use super::identity::Kind;
use super::limits::Limits;
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
}

/// Everything that is known. The lock around it is never held across an await.
#[derive(Default)]
struct State {
    known: Known,
    /// Tells the loop of a kind to compute again when its next sync is due.
    signals: BTreeMap<Kind, Arc<Notify>>,
    subscribers: Vec<UnboundedSender<Wake>>,
}

impl State {
    fn store(&mut self, kind: Kind) -> &mut dyn AnyStore {
        (kinds::of(kind).store)(&mut self.known)
    }

    fn signal(&mut self, kind: Kind) -> Arc<Notify> {
        Arc::clone(self.signals.entry(kind).or_default())
    }

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
        Arc::new(Self { cloud, limits, clock, timing, cluster_id: cluster_id.into(), state: Mutex::default() })
    }

    /// Sweeps until it is told to stop.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        join_all(Kind::ALL.map(|kind| self.run_loop(kind, &stop))).await;
    }

    /// Says what a pass awaits of this owner's resources. The same interest again changes nothing; another token or another last
    /// possible send starts the look-ups that prove absence anew.
    pub fn set_interest(&self, kind: Kind, uid: &str, interest: Interest) {
        let mut state = self.lock();
        state.store(kind).set_interest(uid, interest);
        (kinds::of(kind).interest_changed)(&mut state.known);
        state.signal(kind).notify_one();
    }

    /// The owner is gone: nothing is awaited any more.
    pub fn forget(&self, kind: Kind, uid: &str) {
        self.lock().store(kind).forget(uid);
    }

    /// Asks for a sweep soon: to be called after a mutating call. Many of them make no more than one sweep in a quarter of
    /// `sweep_pending`.
    pub fn poke(&self, kind: Kind) {
        let mut state = self.lock();
        state.store(kind).request_sync();
        state.signal(kind).notify_one();
    }

    /// When the last complete sweep of this kind started; `None` before the first.
    pub fn last_complete(&self, kind: Kind) -> Option<Timestamp> {
        self.stats(kind).last_complete
    }

    /// How the sweeps of this kind went, for metrics and logs.
    pub fn stats(&self, kind: Kind) -> SweepStats {
        self.lock().store(kind).stats()
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

#[cfg(test)]
mod tests;

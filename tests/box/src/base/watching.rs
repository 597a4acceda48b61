//! Keeps a local copy of one kind of object and wakes the loop that waits for a change of it.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use futures::StreamExt as _;
use kube::{Api, Resource};
use kube_runtime::reflector::{self, Store};
use kube_runtime::{WatchStreamExt as _, watcher};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Watches on behalf of one loop.
#[derive(Clone, Debug)]
pub struct Watching {
    wake: Arc<Notify>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Watching {
    /// Watches that run as `tasks` until `stop`.
    pub fn new(tasks: TaskTracker, stop: CancellationToken) -> Self {
        Self { wake: Arc::new(Notify::new()), tasks, stop }
    }

    /// A local copy of all objects that `api` sees. It fills as the API server answers; an object's absence
    /// in it proves nothing.
    pub fn store<K>(&self, api: Api<K>) -> Store<K>
    where
        K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
        K::DynamicType: Default + Eq + Hash + Clone,
    {
        let (store, writer) = reflector::store();
        let wake = self.wake.clone();
        let stop = self.stop.clone();
        let events = watcher(api, watcher::Config::default()).default_backoff().reflect(writer);
        self.tasks.spawn(async move {
            let each = events.for_each(|_| {
                wake.notify_one();
                std::future::ready(())
            });
            tokio::select! {
                () = each => {}
                () = stop.cancelled() => {}
            }
        });
        store
    }

    /// Waits for a change since the last call, or for `limit`.
    pub async fn changed(&self, limit: std::time::Duration) {
        let _ = tokio::time::timeout(limit, self.wake.notified()).await;
    }

    /// What to notify to wake the loop for another reason.
    pub fn waker(&self) -> Arc<Notify> {
        self.wake.clone()
    }
}

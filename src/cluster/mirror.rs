//! A copy of objects that many passes ask for, kept by one watch, and the wakes of their changes.

use std::fmt::Debug;
use std::sync::Arc;

use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::{FutureExt, Stream, StreamExt};
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::reflector::store::{Store, Writer};
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Resource, ResourceExt};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

/// The copy. It may be a moment old: it shows where to look, and what still exists, but that something is
/// gone or never was is read from the API server wherever anything is destroyed on the strength of it.
pub struct Mirror<K: Resource<DynamicType = ()> + Clone + 'static> {
    store: Store<K>,
    /// Taken by `run`.
    writer: Mutex<Option<Writer<K>>>,
    subscribers: Mutex<Vec<UnboundedSender<K>>>,
}

impl<K> Mirror<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// A copy that holds nothing yet: `run` fills it.
    pub fn empty() -> Self {
        let writer = Writer::default();
        Self { store: writer.as_reader(), writer: Mutex::new(Some(writer)), subscribers: Mutex::default() }
    }

    /// Keeps the copy until `stop`: metadata without managed fields, and the spec.
    pub async fn run(
        self: Arc<Self>,
        api: Api<K>,
        config: watcher::Config,
        slim: fn(&mut K),
        stop: CancellationToken,
    ) {
        let Some(writer) = self.writer.lock().take() else { return };
        let kept = watcher(api, config).default_backoff().modify(move |object| {
            object.managed_fields_mut().clear();
            slim(object);
        });
        let mut changes =
            std::pin::pin!(kept.reflect(writer).touched_objects().take_until(stop.cancelled_owned()));
        while let Some(change) = changes.next().await {
            match change {
                Ok(object) => self.tell(&object),
                // The watch goes on by itself, after a pause.
                Err(error) => tracing::warn!(kind = %K::kind(&()), %error,
                "a watch was interrupted and goes on"),
            }
        }
    }

    /// Each object that appears, changes or goes, from now on.
    pub fn changes(&self) -> impl Stream<Item = K> + Send + use<K> {
        let (sender, receiver) = unbounded();
        self.subscribers.lock().push(sender);
        receiver
    }

    /// The object of this key; `None` while the copy does not show it, which does not prove that it is not
    /// there.
    pub fn get(&self, key: &ObjectRef<K>) -> Option<K> {
        self.store.get(key).map(|object| object.as_ref().clone())
    }

    /// The names of those that are so; `None` while the copy is not whole.
    pub fn names(&self, is_so: impl Fn(&K) -> bool) -> Option<Vec<String>> {
        self.store.wait_until_ready().now_or_never()?.ok()?;
        Some(
            self.store
                .state()
                .iter()
                .filter(|object| is_so(object))
                .map(|object| object.name_any())
                .collect(),
        )
    }

    /// What this picks of each; `None` while the copy is not whole.
    pub fn picked<T>(&self, pick: impl Fn(&K) -> Option<T>) -> Option<Vec<T>> {
        self.store.wait_until_ready().now_or_never()?.ok()?;
        Some(self.store.state().iter().filter_map(|object| pick(object)).collect())
    }

    fn tell(&self, object: &K) {
        let mut subscribers = self.subscribers.lock();
        subscribers.retain(|subscriber| subscriber.unbounded_send(object.clone()).is_ok());
    }
}

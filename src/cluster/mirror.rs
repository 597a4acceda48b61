//! A copy of objects that many passes ask for, kept by one watch, and the wakes of their changes.

use std::fmt::Debug;
use std::mem::take;
use std::sync::Arc;

use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::{FutureExt, Stream, StreamExt};
use k8s_openapi::NamespaceResourceScope;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::reflector::store::{Store, Writer};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::own_writes::OwnWrites;

/// The copy. It may be a moment old: it shows where to look, and what still exists, but that something is
/// gone or never was is read from the API server wherever anything is destroyed on the strength of it.
pub struct Mirror<K: Resource<DynamicType = ()> + Clone + 'static> {
    store: Store<K>,
    own_writes: Arc<OwnWrites>,
    /// Taken by `run`.
    writer: Mutex<Option<Writer<K>>>,
    subscribers: Mutex<Vec<UnboundedSender<K>>>,
}

impl<K> Mirror<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// A copy that holds nothing yet: `run` fills it. This process' writes of its objects are noted.
    pub fn empty(own_writes: &Arc<OwnWrites>) -> Self {
        own_writes.note::<K>();
        let writer = Writer::default();
        Self {
            store: writer.as_reader(),
            own_writes: Arc::clone(own_writes),
            writer: Mutex::new(Some(writer)),
            subscribers: Mutex::default(),
        }
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
        let mut changes = std::pin::pin!(kept.reflect(writer).take_until(stop.cancelled_owned()));
        let mut before = Vec::new();
        while let Some(change) = changes.next().await {
            match change {
                Ok(Event::Apply(object)) => self.tell(&object),
                Ok(Event::Delete(object)) => self.has_gone(&object),
                // What is listed anew is not in the copy before the list is whole.
                Ok(Event::Init) => before = self.store.state(),
                Ok(Event::InitApply(_)) => {}
                Ok(Event::InitDone) => self.listed_anew(&take(&mut before)),
                // The watch goes on by itself, after a pause.
                Err(error) => tracing::warn!(kind = %K::kind(&()), %error,
                "a watch was interrupted and goes on"),
            }
        }
    }

    /// Tells of everything that is there, and of what was there before.
    fn listed_anew(&self, before: &[Arc<K>]) {
        for object in self.store.state() {
            self.tell(&object);
        }
        for object in before {
            if self.get(&ObjectRef::from_obj(object.as_ref())).is_none() {
                self.has_gone(object);
            }
        }
    }

    fn has_gone(&self, object: &K) {
        self.own_writes.gone(object);
        self.tell(object);
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

    /// The object of this name as this process' last write left it, or newer: from the copy, or from the API
    /// server where the copy does not show that, or no such object.
    pub async fn current(
        &self,
        client: &Client,
        namespace: &str,
        name: &str,
    ) -> Result<Option<K>, kube::Error>
    where
        K: Resource<Scope = NamespaceResourceScope>,
    {
        let shown = self.get(&ObjectRef::new(name).within(namespace));
        if let Some(shown) = shown.filter(|shown| self.own_writes.are_in(shown)) {
            return Ok(Some(shown));
        }
        let read = Api::namespaced(client.clone(), namespace).get_opt(name).await?;
        self.own_writes.read(Some(namespace), name, read.as_ref());
        Ok(read)
    }

    /// The objects of a namespace, or of the cluster, that are so, each as this process' last write left it,
    /// or newer. `None` where the copy is not whole, or does not show that of one, or of a name that may be
    /// one's.
    pub fn all_current(
        &self,
        namespace: Option<&str>,
        is_so: impl Fn(&K) -> bool,
        may_be: impl Fn(&str) -> bool,
    ) -> Option<Vec<K>> {
        self.store.wait_until_ready().now_or_never()?.ok()?;
        let all = self.store.state();
        let is_of = |it: &&Arc<K>| it.namespace().as_deref() == namespace && is_so(it);
        let found: Vec<K> = all.iter().filter(is_of).map(|it| it.as_ref().clone()).collect();
        let are_current = found.iter().all(|it| self.own_writes.are_in(it));
        let are_shown = self.own_writes.open::<K>(namespace).iter().all(|open| !may_be(open));
        (are_current && are_shown).then_some(found)
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

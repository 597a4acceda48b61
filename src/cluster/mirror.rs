//! A copy of objects that many passes ask for, kept by one watch, and the wakes of their changes.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::mem::take;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::{Stream, StreamExt};
use k8s_openapi::NamespaceResourceScope;
use kube::api::ListParams;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::reflector::store::{Store, Writer};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::own_writes::{OwnWrites, Unseen};

/// What a pass believes of the copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// All that they show, an absence included: enough to see that there is nothing to do.
    Cached,
    /// What is there. An absence is read from the API server, and whatever is acted upon with it.
    Live,
}

/// The copy. It may be a moment old: it shows where to look, and what still exists, but that something is
/// gone or never was is read from the API server wherever anything is destroyed on the strength of it.
pub struct Mirror<K: Resource<DynamicType = ()> + Clone + 'static> {
    store: Store<K>,
    unseen: Arc<Unseen>,
    /// The values by which each object is indexed.
    values_of: fn(&K) -> Vec<String>,
    /// The objects of each value. One that has changed may still be at a former value.
    index: Mutex<HashMap<String, HashSet<ObjectRef<K>>>>,
    /// It was listed once.
    is_listed: AtomicBool,
    /// Taken by `run`.
    writer: Mutex<Option<Writer<K>>>,
    subscribers: Mutex<Vec<UnboundedSender<K>>>,
}

impl<K> Mirror<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// A copy that holds nothing yet: `run` fills it. This process' writes of its objects are noted.
    /// The objects are those of one namespace, or of all.
    pub fn empty(own_writes: &Arc<OwnWrites>, namespace: Option<&str>) -> Self {
        Self::indexed(own_writes, namespace, |_| Vec::new())
    }

    /// The same, with an index: the objects of one of many databases are found without a look at all.
    pub fn indexed(
        own_writes: &Arc<OwnWrites>,
        namespace: Option<&str>,
        values_of: fn(&K) -> Vec<String>,
    ) -> Self {
        let writer = Writer::default();
        Self {
            store: writer.as_reader(),
            unseen: own_writes.of_copy::<K>(namespace),
            values_of,
            index: Mutex::default(),
            is_listed: AtomicBool::new(false),
            writer: Mutex::new(Some(writer)),
            subscribers: Mutex::default(),
        }
    }

    /// Keeps the copy until `stop`: the objects without managed fields, and without what `slim` takes off.
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
        let (mut before, mut open) = (Vec::new(), HashMap::new());
        while let Some(change) = changes.next().await {
            match change {
                Ok(Event::Apply(object)) => {
                    self.find(&object);
                    self.unseen.shown(&object);
                    self.tell(&object);
                }
                Ok(Event::Delete(object)) => self.has_gone(&object),
                // What is listed anew is not in the copy before the list is whole.
                // The list follows, and is of now or later: the watch lists without a resourceVersion.
                Ok(Event::Init) => (before, open) = (self.store.state(), self.unseen.open()),
                Ok(Event::InitApply(_)) => {}
                Ok(Event::InitDone) => {
                    self.listed_anew(&take(&mut before));
                    self.unseen.listed(take(&mut open));
                }
                // The watch goes on by itself, after a pause.
                Err(error) => tracing::warn!(kind = %K::kind(&()), %error,
                "a watch was interrupted and goes on"),
            }
        }
    }

    /// Tells of everything that is there, and of what was there before.
    fn listed_anew(&self, before: &[Arc<K>]) {
        let now = self.store.state();
        for object in &now {
            self.find(object);
        }
        self.is_listed.store(true, Ordering::Release);
        for object in now {
            self.unseen.shown(object.as_ref());
            self.tell(&object);
        }
        for object in before {
            if self.get(&ObjectRef::from_obj(object.as_ref())).is_none() {
                self.has_gone(object);
            }
        }
    }

    /// Before it counts as shown: what is written is in the copy once it can be found there.
    fn find(&self, object: &K) {
        let mut index = self.index.lock();
        for value in (self.values_of)(object) {
            index.entry(value).or_default().insert(ObjectRef::from_obj(object));
        }
    }

    /// The objects of this value.
    fn found(&self, value: &str) -> Vec<Arc<K>> {
        let index = self.index.lock();
        index.get(value).into_iter().flatten().filter_map(|key| self.store.get(key)).collect()
    }

    /// The keys of the objects of this value.
    pub fn keys_of(&self, value: &str) -> Vec<ObjectRef<K>> {
        self.index.lock().get(value).into_iter().flatten().cloned().collect()
    }

    fn has_gone(&self, object: &K) {
        let mut index = self.index.lock();
        for value in (self.values_of)(object) {
            let Some(found) = index.get_mut(&value) else { continue };
            found.remove(&ObjectRef::from_obj(object));
            if found.is_empty() {
                index.remove(&value);
            }
        }
        drop(index);
        self.unseen.gone(object);
        self.tell(object);
    }

    /// Each object that appears, changes or goes, from now on.
    pub fn changes(&self) -> impl Stream<Item = K> + Send + use<K> {
        let (sender, receiver) = unbounded();
        self.subscribers.lock().push(sender);
        receiver
    }

    /// What wakes the objects themselves, for a controller of theirs: the copy shows the change before it.
    pub fn triggers(&self) -> impl Stream<Item = Result<K, watcher::Error>> + Send + use<K> {
        self.changes().map(Ok)
    }

    /// The object of this key; `None` while the copy does not show it, which does not prove that it is not
    /// there.
    pub fn get(&self, key: &ObjectRef<K>) -> Option<K> {
        self.store.get(key).map(|object| object.as_ref().clone())
    }

    /// The objects, for a controller of theirs.
    pub fn store(&self) -> Store<K> {
        self.store.clone()
    }

    /// The writes that the copy does not show yet.
    pub fn unseen(&self) -> &Unseen {
        &self.unseen
    }

    /// The object of this name as this process' last write left it, or newer. A live read is from the API
    /// server.
    pub async fn read(&self, api: &Api<K>, name: &str, reads: Reads) -> Result<Option<K>, kube::Error> {
        match reads {
            Reads::Cached => self.current(api, name, reads).await,
            Reads::Live => self.asked(api, name).await,
        }
    }

    /// As `read`; but of a live read only an absence is from the API server.
    pub async fn current(&self, api: &Api<K>, name: &str, reads: Reads) -> Result<Option<K>, kube::Error> {
        let mut key = ObjectRef::new(name);
        key.namespace = api.namespace().map(str::to_owned);
        // Before the copy is asked.
        let last = self.unseen.last::<K>(api.namespace(), name);
        match self.get(&key) {
            Some(shown) if last.is_none_or(|written| written.is_in(&shown)) => Ok(Some(shown)),
            None if reads == Reads::Cached && last.is_none() && self.is_whole() => Ok(None),
            Some(_) | None => self.asked(api, name).await,
        }
    }

    /// The object that was woken, read like this; `None` when it is gone, or is another of its name.
    pub async fn woken(&self, woken: &K, client: &Client, reads: Reads) -> Result<Option<K>, kube::Error>
    where
        K: Resource<Scope = NamespaceResourceScope>,
    {
        let api = Api::namespaced(client.clone(), &woken.namespace().unwrap_or_default());
        let object = self.read(&api, &woken.name_any(), reads).await?;
        Ok(object.filter(|object| object.meta().uid == woken.meta().uid))
    }

    /// The names of those that are so and are left: what the copy still has is believed; that there is none,
    /// the API server says to a live read.
    pub async fn left(
        &self,
        api: &Api<K>,
        is_so: impl Fn(&K) -> bool,
        reads: Reads,
    ) -> Result<Vec<String>, kube::Error> {
        let shown = self.names(&is_so);
        if let Some(names) = shown.filter(|names| !names.is_empty() || reads == Reads::Cached) {
            return Ok(names);
        }
        let all = api.list(&ListParams::default()).await?;
        Ok(all.items.iter().filter(|object| is_so(object)).map(ResourceExt::name_any).collect())
    }

    async fn asked(&self, api: &Api<K>, name: &str) -> Result<Option<K>, kube::Error> {
        let answer = api.get_opt(name).await?;
        self.unseen.read(api.namespace(), name, answer.as_ref());
        Ok(answer)
    }

    /// Whether it shows all objects of a moment, and its index has them.
    pub fn is_whole(&self) -> bool {
        self.is_listed.load(Ordering::Acquire)
    }

    /// The objects of a namespace, or of the cluster, that are indexed by this value and are so, each as this
    /// process' last write left it, or newer. `None` where the copy is not whole, or does not show that of
    /// one, or of a name that may be one's.
    pub fn all_current(
        &self,
        namespace: Option<&str>,
        value: &str,
        is_so: impl Fn(&K) -> bool,
        may_be: impl Fn(&str) -> bool,
    ) -> Option<Vec<K>> {
        if !self.is_whole() {
            return None;
        }
        // Before the copy is asked.
        let mut last = self.unseen.all::<K>(namespace);
        let is_of = |it: &&Arc<K>| it.namespace().as_deref() == namespace && is_so(it);
        let found: Vec<K> = self.found(value).iter().filter(is_of).map(|it| it.as_ref().clone()).collect();
        let mut is_current = |it: &K| last.remove(&it.name_any()).is_none_or(|written| written.is_in(it));
        let are_current = found.iter().all(&mut is_current);
        let are_shown = last.keys().all(|open| !may_be(open));
        (are_current && are_shown).then_some(found)
    }

    /// The names of those that are so; `None` while the copy is not whole.
    pub fn names(&self, is_so: impl Fn(&K) -> bool) -> Option<Vec<String>> {
        self.picked(|object| is_so(object).then(|| object.name_any()))
    }

    /// What this picks of each; `None` while the copy is not whole.
    pub fn picked<T>(&self, pick: impl Fn(&K) -> Option<T>) -> Option<Vec<T>> {
        if !self.is_whole() {
            return None;
        }
        Some(self.store.state().iter().filter_map(|object| pick(object)).collect())
    }

    fn tell(&self, object: &K) {
        let mut subscribers = self.subscribers.lock();
        subscribers.retain(|subscriber| subscriber.unbounded_send(object.clone()).is_ok());
    }
}

//! The objects, their history and who watches: what etcd and the watch cache are to a real API server.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

/// Where an object is: `group/plural`, namespace (empty for none), name.
pub type Key = (String, String, String);

/// One write.
#[derive(Clone, Debug)]
pub struct Event {
    /// The write's resourceVersion.
    pub revision: u64,
    /// Which object.
    pub key: Key,
    /// The object before; none if it was created.
    pub old: Option<Arc<Value>>,
    /// The object after; none if it was deleted.
    pub new: Option<Arc<Value>>,
}

/// The objects with one resourceVersion for all of them.
#[derive(Debug, Default)]
pub struct Store {
    objects: BTreeMap<Key, Arc<Value>>,
    /// Every write: for watches from after `compacted` on, for judges all of them.
    log: Vec<Event>,
    revision: u64,
    /// What was written up to here is no longer known to clients.
    compacted: u64,
}

impl Store {
    /// The last write's resourceVersion.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The object of this key.
    pub fn get(&self, key: &Key) -> Option<Arc<Value>> {
        self.objects.get(key).cloned()
    }

    /// Writes an object, which gets the next resourceVersion; returns it with that.
    pub fn put(&mut self, key: &Key, mut object: Value) -> Arc<Value> {
        self.revision += 1;
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        let object = Arc::new(object);
        let old = self.objects.insert(key.clone(), Arc::clone(&object));
        self.record(key, old, Some(Arc::clone(&object)));
        object
    }

    /// Removes an object; returns it as the event of its removal has it.
    pub fn remove(&mut self, key: &Key) -> Option<Arc<Value>> {
        let old = self.objects.remove(key)?;
        self.revision += 1;
        self.record(key, Some(Arc::clone(&old)), None);
        let mut last = old.as_ref().clone();
        last["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        Some(Arc::new(last))
    }

    fn record(&mut self, key: &Key, old: Option<Arc<Value>>, new: Option<Arc<Value>>) {
        self.log.push(Event { revision: self.revision, key: key.clone(), old, new });
    }

    /// Every write so far.
    pub fn log(&self) -> &[Event] {
        &self.log
    }

    /// Every object.
    pub fn all(&self) -> Vec<(Key, Arc<Value>)> {
        self.objects.iter().map(|(key, it)| (key.clone(), Arc::clone(it))).collect()
    }

    /// The objects of a kind, in all namespaces or in one, as they are.
    pub fn list(&self, resource: &str, namespace: &str) -> Vec<(Key, Arc<Value>)> {
        let is_of = |key: &Key| key.0 == resource && (namespace.is_empty() || key.1 == namespace);
        self.objects
            .iter()
            .filter(|(key, _)| is_of(key))
            .map(|(key, it)| (key.clone(), Arc::clone(it)))
            .collect()
    }

    /// The same as they were at a resourceVersion; none if that is no longer known.
    pub fn list_at(&self, resource: &str, namespace: &str, revision: u64) -> Option<Vec<(Key, Arc<Value>)>> {
        if revision < self.compacted {
            return None;
        }
        let mut objects: BTreeMap<Key, Arc<Value>> = self.list(resource, namespace).into_iter().collect();
        for event in self.log.iter().rev().take_while(|it| it.revision > revision) {
            if event.key.0 != resource || !(namespace.is_empty() || event.key.1 == namespace) {
                continue;
            }
            match &event.old {
                Some(old) => drop(objects.insert(event.key.clone(), Arc::clone(old))),
                None => drop(objects.remove(&event.key)),
            }
        }
        Some(objects.into_iter().collect())
    }

    /// The writes after a resourceVersion; none if clients no longer know all of them.
    pub fn since(&self, revision: u64) -> Option<&[Event]> {
        (revision >= self.compacted).then(|| self.after(revision))
    }

    /// The same for who has known them all along.
    pub fn after(&self, revision: u64) -> &[Event] {
        let first = self.log.partition_point(|it| it.revision <= revision);
        &self.log[first..]
    }

    /// Forgets what was written so far: watches and lists that begin before end with 410.
    pub fn compact(&mut self) {
        self.compacted = self.revision;
    }
}

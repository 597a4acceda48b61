//! What this process wrote last of each object, so that no copy is used that does not show it yet.
//!
//! A copy that a watch keeps may be a moment old. Another client's write that it does not show is the same as
//! a pass a moment earlier. A write of this process is not: the pass after it would decide anew what is
//! decided.
//! In memory alone: a new process fills its copies from the API server after it has begun to lead, and those
//! show what an earlier one wrote.

use std::collections::HashMap;
use std::sync::Arc;

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::client::Body;
use kube::{Client, Resource};
use parking_lot::Mutex;
use serde::Deserialize;
use tower::BoxError;

/// The last write of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The object had this version afterwards.
    Version(u64),
    /// It was deleted at once.
    Deleted,
    /// No answer says which version it had: the write may be underway, refused or carried out.
    Unknown,
    /// The same, and the copy has shown the end of the object, which had this version.
    Ended(u64),
}

impl Written {
    /// Whether an object as a copy shows it is as it was after this write, or newer.
    pub fn is_in<K: Resource>(self, object: &K) -> bool {
        match self {
            Self::Version(written) => version(object.meta()).is_some_and(|it| it >= written),
            Self::Deleted | Self::Unknown | Self::Ended(_) => false,
        }
    }
}

/// The writes that one copy was not seen to show yet: names and last writes, by the path of their collection.
#[derive(Debug, Default)]
pub struct Unseen {
    last: Mutex<HashMap<String, HashMap<String, Written>>>,
}

impl Unseen {
    /// The last write of the object of this name, if the copy was not seen to show it. To be asked before the
    /// copy is: what it shows in between would otherwise be taken for what it showed then.
    pub fn last<K: Resource<DynamicType = ()>>(
        &self,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<Written> {
        self.last.lock().get(&K::url_path(&(), namespace))?.get(name).copied()
    }

    /// The same of all objects of this kind in this namespace, or in the cluster.
    pub fn all<K: Resource<DynamicType = ()>>(&self, namespace: Option<&str>) -> HashMap<String, Written> {
        self.last.lock().get(&K::url_path(&(), namespace)).cloned().unwrap_or_default()
    }

    /// What is open now.
    pub fn open(&self) -> HashMap<String, HashMap<String, Written>> {
        self.last.lock().clone()
    }

    /// The copy shows a list that was begun when this was open: of what had been answered by then it shows
    /// the effect, of objects that it shows no more, too.
    pub fn listed(&self, open: HashMap<String, HashMap<String, Written>>) {
        let mut last = self.last.lock();
        for (collection, open) in open {
            let Some(of_collection) = last.get_mut(&collection) else { continue };
            of_collection.retain(|name, written| match written {
                Written::Version(_) | Written::Deleted => open.get(name) != Some(written),
                Written::Unknown | Written::Ended(_) => true,
            });
        }
    }

    /// The copy shows this object: as it was after the last write, or newer, nothing of it is open.
    pub fn shown<K: Resource<DynamicType = ()>>(&self, object: &K) {
        let (metadata, mut last) = (object.meta(), self.last.lock());
        let Some(of_collection) = last.get_mut(&K::url_path(&(), metadata.namespace.as_deref())) else {
            return;
        };
        let name = metadata.name.as_deref().unwrap_or_default();
        if of_collection.get(name).is_some_and(|written| written.is_in(object)) {
            of_collection.remove(name);
        }
    }

    /// The API server was asked for the object of this name, and answered this.
    pub fn read<K: Resource<DynamicType = ()>>(
        &self,
        namespace: Option<&str>,
        name: &str,
        answer: Option<&K>,
    ) {
        let mut last = self.last.lock();
        let Some(of_collection) = last.get_mut(&K::url_path(&(), namespace)) else { return };
        let Some(written) = of_collection.get_mut(name) else { return };
        match (*written, answer.and_then(|object| version(object.meta()))) {
            (_, None) => {
                of_collection.remove(name);
            }
            (Written::Unknown | Written::Deleted | Written::Ended(_), Some(version)) => {
                *written = Written::Version(version);
            }
            (Written::Version(_), Some(_)) => {}
        }
    }

    /// The copy does not show the object any more, which was like this at its end. What is written of another
    /// one of its name stays.
    pub fn gone<K: Resource<DynamicType = ()>>(&self, object: &K) {
        let (metadata, end) = (object.meta(), version(object.meta()));
        let mut last = self.last.lock();
        let collection = K::url_path(&(), metadata.namespace.as_deref());
        let Some(of_collection) = last.get_mut(&collection) else { return };
        let name = metadata.name.as_deref().unwrap_or_default();
        match (of_collection.get(name).copied(), end) {
            (Some(Written::Version(written)), Some(end)) if end >= written => {
                of_collection.remove(name);
            }
            (Some(Written::Deleted), _) => {
                of_collection.remove(name);
            }
            (Some(Written::Unknown | Written::Ended(_)), Some(end)) => {
                of_collection.insert(name.to_owned(), Written::Ended(end));
            }
            (Some(Written::Version(_) | Written::Unknown | Written::Ended(_)) | None, _) => {}
        }
    }

    /// A write is about to be sent. Gives what was known before it.
    fn begin(&self, target: &Target) -> Option<Written> {
        let name = target.name.clone()?;
        self.last.lock().entry(target.collection.clone()).or_default().insert(name, Written::Unknown)
    }

    /// It was refused: nothing was written, so what was known before it stands. Nothing is known of an object
    /// that is gone.
    fn refused(&self, target: &Target, before: Option<Written>, is_gone: bool) {
        let Some(name) = target.name.clone() else { return };
        let mut last = self.last.lock();
        let of_collection = last.entry(target.collection.clone()).or_default();
        if let Some(Written::Version(_)) = of_collection.get(&name) {
            // Another write of it was carried out meanwhile.
            return;
        }
        match before.filter(|_| !is_gone) {
            Some(before) => of_collection.insert(name, before),
            None => of_collection.remove(&name),
        };
    }

    /// It was carried out, and this is what its answer says.
    fn answered(&self, target: &Target, answer: &Answer) {
        let Some(name) = target.name.as_ref().or(answer.metadata.name.as_ref()) else { return };
        let written = match number(answer.metadata.resource_version.as_deref()) {
            Some(version) => Written::Version(version),
            None if target.deletes => Written::Deleted,
            None => return,
        };
        let mut last = self.last.lock();
        let of_collection = last.entry(target.collection.clone()).or_default();
        // Answers of writes side by side arrive in any order, and after what the watch shows of them.
        match (of_collection.get(name), written) {
            (Some(Written::Ended(end)), Written::Version(version)) if version <= *end => {
                of_collection.remove(name);
            }
            (Some(Written::Version(one)), Written::Version(other)) => {
                let newest = Written::Version(other.max(*one));
                of_collection.insert(name.clone(), newest);
            }
            _ => {
                of_collection.insert(name.clone(), written);
            }
        }
    }
}

/// What is read of the answer to a write: the object, its scale, or a Status, which has no version.
#[derive(Deserialize)]
struct Answer {
    metadata: Shown,
}

/// What is read of an answer's metadata.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    name: Option<String>,
    resource_version: Option<String>,
}

/// The copies whose objects this process writes, each with the path of what it copies.
#[derive(Debug, Default)]
pub struct OwnWrites {
    copies: Mutex<Vec<(String, Arc<Unseen>)>>,
}

impl OwnWrites {
    /// There is a copy of the objects of this kind, of one namespace or of all: writes of them are noted for
    /// it from now on.
    pub fn of_copy<K: Resource<DynamicType = ()>>(&self, namespace: Option<&str>) -> Arc<Unseen> {
        let unseen = Arc::<Unseen>::default();
        self.copies.lock().push((K::url_path(&(), namespace), Arc::clone(&unseen)));
        unseen
    }

    /// The copies that show what is written.
    fn of(&self, target: &Target) -> Vec<Arc<Unseen>> {
        let copies = self.copies.lock();
        let shows = |path: &String| *path == target.kind || *path == target.collection;
        copies.iter().filter(|(path, _)| shows(path)).map(|(_, it)| Arc::clone(it)).collect()
    }
}

/// The same client, but that its writes are noted.
pub fn noted(writes: Arc<OwnWrites>, client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, writes) = (client.clone(), Arc::clone(&writes));
        async move {
            let target = Target::of(&request).map(|target| (writes.of(&target), target));
            let Some((copies, target)) = target.filter(|(copies, _)| !copies.is_empty()) else {
                return Ok(client.send(request).await?);
            };
            let before: Vec<Option<Written>> = copies.iter().map(|copy| copy.begin(&target)).collect();
            let (parts, body) = client.send(request).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            let answer = serde_json::from_slice(&body).ok().filter(|_| parts.status.is_success());
            for (copy, before) in copies.iter().zip(before) {
                if let Some(answer) = &answer {
                    copy.answered(&target, answer);
                } else if parts.status.is_client_error() && parts.status != StatusCode::CONFLICT {
                    // After a conflict the copy is old: the object is read from the API server.
                    copy.refused(&target, before, parts.status == StatusCode::NOT_FOUND);
                }
            }
            Ok::<Response<Body>, BoxError>(Response::from_parts(parts, Body::from(body)))
        }
    });
    Client::new(service, namespace)
}

/// What a write is of.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    /// The path of all objects of its kind.
    kind: String,
    /// The path of the objects of its kind and namespace.
    collection: String,
    /// The object's name; `None` for one that is created, whose name is in the body.
    name: Option<String>,
    /// Whether it is deleted.
    deletes: bool,
}

impl Target {
    /// `None` for a request that changes nothing.
    fn of(request: &Request<Body>) -> Option<Self> {
        let is_dry = request.uri().query().is_some_and(|query| query.contains("dryRun="));
        if request.method() == Method::GET || is_dry {
            return None;
        }
        let parts: Vec<&str> = request.uri().path().trim_start_matches('/').split('/').collect();
        let version = if parts.first() == Some(&"api") { 2 } else { 3 };
        let of_namespace = parts.get(version) == Some(&"namespaces") && parts.len() > version + 2;
        let kind = if of_namespace { version + 2 } else { version };
        let joined = |end: usize| Some(format!("/{}", parts.get(..=end)?.join("/")));
        Some(Self {
            kind: format!("/{}/{}", parts.get(..version)?.join("/"), parts.get(kind)?),
            collection: joined(kind)?,
            name: parts.get(kind + 1).map(|name| (*name).to_owned()),
            deletes: request.method() == Method::DELETE,
        })
    }
}

/// The version of an object.
fn version(metadata: &ObjectMeta) -> Option<u64> {
    number(metadata.resource_version.as_deref())
}

/// Versions are numbers that only grow (KEP-5504); what is no number is never new enough.
fn number(version: Option<&str>) -> Option<u64> {
    version?.parse().ok()
}

#[cfg(test)]
mod tests;

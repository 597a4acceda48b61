//! What this process wrote last of each object, so that no copy is used that does not show it yet.
//!
//! A copy that a watch keeps may be a moment old. Another client's write that it does not show is the same as
//! a pass a moment earlier. A write of this process is not: the pass after it would decide anew what is
//! decided.
//! In memory alone: a new process fills its copies from the API server after it has begun to lead, and those
//! show what an earlier one wrote.

use std::collections::{HashMap, HashSet};
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
enum Written {
    /// The object had this version afterwards.
    Version(u64),
    /// It was deleted at once.
    Deleted,
    /// No answer says which version it had: the write may be underway, refused or carried out.
    Unknown,
}

/// The last writes, by the paths of the objects in the API server.
#[derive(Debug, Default)]
pub struct OwnWrites {
    /// The plural names of the kinds that there are copies of: writes of others are not noted.
    kinds: Mutex<HashSet<String>>,
    last: Mutex<HashMap<String, Written>>,
}

impl OwnWrites {
    /// There is a copy of the objects of this kind: writes are noted from now on.
    pub fn note<K: Resource<DynamicType = ()>>(&self) {
        self.kinds.lock().insert(K::plural(&()).into_owned());
    }

    /// Whether an object as a copy shows it is as it was after the last write of this process, or newer.
    pub fn are_in<K: Resource<DynamicType = ()>>(&self, object: &K) -> bool {
        let path = path_of(object);
        let mut last = self.last.lock();
        match last.get(&path) {
            None => true,
            Some(Written::Version(written)) if version(object.meta()).is_some_and(|it| it >= *written) => {
                last.remove(&path);
                true
            }
            Some(_) => false,
        }
    }

    /// The names of the objects of this kind in this namespace, or in the cluster, that no copy was seen to
    /// show as they were after the last write.
    pub fn open<K: Resource<DynamicType = ()>>(&self, namespace: Option<&str>) -> Vec<String> {
        let collection = K::url_path(&(), namespace);
        let last = self.last.lock();
        last.keys()
            .filter_map(|path| Some(path.strip_prefix(&collection)?.strip_prefix('/')?.to_owned()))
            .collect()
    }

    /// The API server was asked for the object of this name, and answered this.
    pub fn read<K: Resource<DynamicType = ()>>(
        &self,
        namespace: Option<&str>,
        name: &str,
        answer: Option<&K>,
    ) {
        let path = format!("{}/{name}", K::url_path(&(), namespace));
        let mut last = self.last.lock();
        let Some(written) = last.get_mut(&path) else { return };
        match (*written, answer.and_then(|object| version(object.meta()))) {
            (_, None) => drop(last.remove(&path)),
            (Written::Unknown | Written::Deleted, Some(version)) => *written = Written::Version(version),
            (Written::Version(_), Some(_)) => {}
        }
    }

    /// A copy does not show the object any more, which was like this at its end. What is written of another
    /// one of its name stays.
    pub fn gone<K: Resource<DynamicType = ()>>(&self, object: &K) {
        let (path, end) = (path_of(object), version(object.meta()));
        let mut last = self.last.lock();
        let is_over = match last.get(&path) {
            Some(Written::Version(written)) => end.is_some_and(|end| end >= *written),
            Some(Written::Deleted) => true,
            Some(Written::Unknown) | None => false,
        };
        if is_over {
            last.remove(&path);
        }
    }

    /// A write is about to be sent. Gives what was known before it.
    fn begin(&self, target: &Target) -> Option<Written> {
        self.last.lock().insert(target.path.clone()?, Written::Unknown)
    }

    /// It was refused: nothing was written, so what was known before it stands. Nothing is known of an object
    /// that is gone.
    fn refused(&self, target: &Target, before: Option<Written>, is_gone: bool) {
        let Some(path) = target.path.clone() else { return };
        let mut last = self.last.lock();
        match before.filter(|_| !is_gone) {
            Some(before) => last.insert(path, before),
            None => last.remove(&path),
        };
    }

    /// It was carried out, and this is the answer's body.
    fn answered(&self, target: &Target, body: &[u8]) {
        /// What is read of an answer: the object, its scale, or a Status, which has no version.
        #[derive(Deserialize)]
        struct Answer {
            metadata: ObjectMeta,
        }
        let Ok(Answer { metadata }) = serde_json::from_slice(body) else { return };
        let name = metadata.name.as_deref();
        let path = target.path.clone().or_else(|| Some(format!("{}/{}", target.collection, name?)));
        let written = match version(&metadata) {
            Some(version) => Written::Version(version),
            None if target.deletes => Written::Deleted,
            None => return,
        };
        let Some(path) = path else { return };
        let mut last = self.last.lock();
        // Answers of writes side by side arrive in any order.
        let newest = match (last.get(&path), written) {
            (Some(Written::Version(one)), Written::Version(other)) => Written::Version(other.max(*one)),
            _ => written,
        };
        last.insert(path, newest);
    }

    fn is_noted(&self, target: &Target) -> bool {
        let kind = target.collection.rsplit('/').next().unwrap_or_default();
        self.kinds.lock().contains(kind)
    }
}

/// The same client, but that its writes are noted.
pub fn noted(writes: Arc<OwnWrites>, client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, writes) = (client.clone(), Arc::clone(&writes));
        async move {
            let target = Target::of(&request).filter(|target| writes.is_noted(target));
            let Some(target) = target else { return Ok(client.send(request).await?) };
            let before = writes.begin(&target);
            let (parts, body) = client.send(request).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            if parts.status.is_success() {
                writes.answered(&target, &body);
            } else if parts.status.is_client_error() && parts.status != StatusCode::CONFLICT {
                // After a conflict the copy is old: the object is read from the API server.
                writes.refused(&target, before, parts.status == StatusCode::NOT_FOUND);
            }
            Ok::<Response<Body>, BoxError>(Response::from_parts(parts, Body::from(body)))
        }
    });
    Client::new(service, namespace)
}

/// What a write is of.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    /// The path of the objects of its kind and namespace.
    collection: String,
    /// The object's; `None` for one that is created, whose name is in the body.
    path: Option<String>,
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
        let deletes = request.method() == Method::DELETE;
        Some(Self { collection: joined(kind)?, path: joined(kind + 1), deletes })
    }
}

fn path_of<K: Resource<DynamicType = ()>>(object: &K) -> String {
    let metadata = object.meta();
    let name = metadata.name.as_deref().unwrap_or_default();
    format!("{}/{name}", K::url_path(&(), metadata.namespace.as_deref()))
}

/// Versions are numbers that only grow (KEP-5504); what is no number is never new enough.
fn version(metadata: &ObjectMeta) -> Option<u64> {
    metadata.resource_version.as_deref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
    use kube::Api;
    use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
    use serde_json::{Value, json};

    use super::*;

    /// A client whose requests are all answered like this, and what was noted of them. The kinds that have
    /// copies are ConfigMaps and pods.
    fn answered(status: u16, answer: &Value) -> (Client, Arc<OwnWrites>) {
        let answer = answer.to_string().into_bytes();
        let service = tower::service_fn(move |_: Request<Body>| {
            let answer = Response::builder().status(status).body(Body::from(answer.clone()));
            async move { Ok::<_, BoxError>(answer?) }
        });
        let writes = Arc::<OwnWrites>::default();
        writes.note::<ConfigMap>();
        writes.note::<Pod>();
        (noted(Arc::clone(&writes), Client::new(service, "team-a")), writes)
    }

    fn map(version: &str) -> ConfigMap {
        serde_json::from_value(object(version)).unwrap()
    }

    fn object(version: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a", "namespace": "team-a", "resourceVersion": version}})
    }

    /// Which of the versions 8, 9 and 10 of a copy may be used.
    fn usable(writes: &OwnWrites) -> Vec<&'static str> {
        ["8", "9", "10"].into_iter().filter(|version| writes.are_in(&map(version))).collect()
    }

    /// What a write to the ConfigMap is of.
    fn the_map() -> Target {
        let request = Request::patch("/api/v1/namespaces/team-a/configmaps/a").body(Body::empty());
        Target::of(&request.unwrap()).unwrap()
    }

    async fn patch(client: Client) -> Result<ConfigMap, kube::Error> {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        maps.patch("a", &PatchParams::default(), &Patch::Merge(json!({}))).await
    }

    #[tokio::test]
    async fn a_copy_from_before_a_write_is_not_used() {
        let (client, writes) = answered(200, &object("9"));
        assert_eq!(usable(&writes), ["8", "9", "10"], "nothing was written");
        patch(client).await.unwrap();
        assert!(!writes.are_in(&map("8")));
        assert_eq!(writes.open::<ConfigMap>(Some("team-a")), ["a"]);
        assert!(writes.open::<ConfigMap>(Some("team-b")).is_empty());
        assert_eq!(usable(&writes), ["9", "10"]);
        assert!(writes.open::<ConfigMap>(Some("team-a")).is_empty(), "a copy showed it");
    }

    #[tokio::test]
    async fn a_copy_from_before_a_creation_is_not_used_although_its_name_is_in_the_body_alone() {
        let (client, writes) = answered(201, &object("9"));
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        maps.create(&PostParams::default(), &ConfigMap::default()).await.unwrap();
        assert_eq!(writes.open::<ConfigMap>(Some("team-a")), ["a"]);
        assert_eq!(usable(&writes), ["9", "10"]);
    }

    #[tokio::test]
    async fn after_a_write_without_a_usable_answer_no_copy_is_used_until_the_object_is_read() {
        for (status, answer) in [(500, json!({})), (200, json!({"metadata": {}})), (200, json!("lost"))] {
            let (client, writes) = answered(status, &answer);
            let _ = patch(client).await;
            assert!(usable(&writes).is_empty(), "{status} {answer}");
            writes.read(Some("team-a"), "a", Some(&map("9")));
            assert_eq!(usable(&writes), ["9", "10"], "{status} {answer}");
        }
    }

    #[tokio::test]
    async fn a_refused_write_changes_nothing_but_after_a_conflict_the_object_is_read() {
        for (status, used) in [(422, vec!["9", "10"]), (409, vec![]), (404, vec!["8", "9", "10"])] {
            let (client, writes) = answered(status, &json!({"metadata": {}}));
            writes.answered(&the_map(), object("9").to_string().as_bytes());
            let _ = patch(client).await;
            assert_eq!(usable(&writes), used, "{status}");
        }
    }

    #[tokio::test]
    async fn of_two_answers_the_newer_one_counts_whichever_comes_last() {
        let (_, writes) = answered(200, &json!({}));
        for version in ["10", "9"] {
            writes.answered(&the_map(), object(version).to_string().as_bytes());
        }
        assert_eq!(usable(&writes), ["10"]);
    }

    #[tokio::test]
    async fn after_a_deletion_no_copy_is_used_until_it_shows_the_end() {
        let (client, writes) = answered(200, &json!({"kind": "Status", "status": "Success", "metadata": {}}));
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        maps.delete("a", &DeleteParams::default()).await.unwrap();
        assert!(usable(&writes).is_empty());
        writes.gone(&map("9"));
        assert_eq!(usable(&writes), ["8", "9", "10"], "the next one of the name");
    }

    #[tokio::test]
    async fn the_end_of_one_does_not_hide_what_was_written_of_the_next_one_of_its_name() {
        let (client, writes) = answered(201, &object("9"));
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        maps.create(&PostParams::default(), &ConfigMap::default()).await.unwrap();
        writes.gone(&map("8"));
        assert_eq!(writes.open::<ConfigMap>(Some("team-a")), ["a"]);
        writes.gone(&map("9"));
        assert!(writes.open::<ConfigMap>(Some("team-a")).is_empty());
    }

    #[tokio::test]
    async fn what_has_no_copy_and_what_changes_nothing_is_not_noted() {
        let (client, writes) = answered(200, &json!({"metadata": {"name": "a", "resourceVersion": "9"}}));
        let nodes: Api<Node> = Api::all(client.clone());
        nodes.patch("a", &PatchParams::default(), &Patch::Merge(json!({}))).await.unwrap();
        assert!(writes.open::<Node>(None).is_empty());
        let pods: Api<Pod> = Api::default_namespaced(client);
        pods.get("a").await.unwrap();
        let dry = PatchParams { dry_run: true, ..PatchParams::default() };
        pods.patch("a", &dry, &Patch::Merge(json!({}))).await.unwrap();
        assert!(writes.open::<Pod>(Some("team-a")).is_empty());
        pods.patch_status("a", &PatchParams::default(), &Patch::Merge(json!({}))).await.unwrap();
        assert_eq!(writes.open::<Pod>(Some("team-a")), ["a"]);
    }

    #[test]
    fn the_path_says_of_what_a_write_is() {
        let of = |path: &str| {
            let request = Request::patch(path).body(Body::empty()).unwrap();
            Target::of(&request).map(|it| (it.collection, it.path.unwrap_or_default()))
        };
        let all = [
            ("/api/v1/nodes/n1", "/api/v1/nodes", "/api/v1/nodes/n1"),
            ("/api/v1/namespaces/a", "/api/v1/namespaces", "/api/v1/namespaces/a"),
            (
                "/api/v1/namespaces/a/pods/p/status",
                "/api/v1/namespaces/a/pods",
                "/api/v1/namespaces/a/pods/p",
            ),
            ("/apis/apps/v1/namespaces/a/statefulsets", "/apis/apps/v1/namespaces/a/statefulsets", ""),
            (
                "/apis/freehold.dev/v1/nodes/n?force=true",
                "/apis/freehold.dev/v1/nodes",
                "/apis/freehold.dev/v1/nodes/n",
            ),
        ];
        for (path, collection, object) in all {
            assert_eq!(of(path), Some((collection.to_owned(), object.to_owned())), "{path}");
        }
    }
}

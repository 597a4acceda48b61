//! Which copies are used after which writes.

use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::*;

/// A client whose requests are all answered like this, and what was noted of them for a copy of the
/// ConfigMaps and one of the pods.
fn answered(status: u16, answer: &Value) -> (Client, Arc<Unseen>) {
    let (client, maps, _) = with_copies(status, answer);
    (client, maps)
}

fn with_copies(status: u16, answer: &Value) -> (Client, Arc<Unseen>, Arc<Unseen>) {
    let answer = answer.to_string().into_bytes();
    let service = tower::service_fn(move |_: Request<Body>| {
        let answer = Response::builder().status(status).body(Body::from(answer.clone()));
        async move { Ok::<_, BoxError>(answer?) }
    });
    let writes = Arc::<OwnWrites>::default();
    let (of_maps, of_pods) = (writes.of_copy::<ConfigMap>(None), writes.of_copy::<Pod>(None));
    (noted(writes, Client::new(service, "team-a")), of_maps, of_pods)
}

fn map(version: &str) -> ConfigMap {
    serde_json::from_value(object(version)).unwrap()
}

fn object(version: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "team-a", "resourceVersion": version}})
}

/// Which of the versions 8, 9 and 10 of a copy may be used.
fn usable(writes: &Unseen) -> Vec<&'static str> {
    let last = writes.last::<ConfigMap>(Some("team-a"), "a");
    let is_usable = |version: &&str| last.is_none_or(|written| written.is_in(&map(version)));
    ["8", "9", "10"].into_iter().filter(is_usable).collect()
}

/// What a write to the ConfigMap is of.
fn the_map() -> Target {
    let request = Request::patch("/api/v1/namespaces/team-a/configmaps/a").body(Body::empty());
    Target::of(&request.unwrap()).unwrap()
}

fn answer_with(version: &str) -> Answer {
    serde_json::from_value(object(version)).unwrap()
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
    assert_eq!(usable(&writes), ["9", "10"]);
    assert!(writes.last::<ConfigMap>(Some("team-b"), "a").is_none());
    assert_eq!(usable(&writes), ["9", "10"]);
    writes.shown(&map("8"));
    assert_eq!(usable(&writes), ["9", "10"]);
    writes.shown(&map("9"));
    assert!(writes.all::<ConfigMap>(Some("team-a")).is_empty(), "the copy has shown it");
}

#[tokio::test]
async fn a_copy_from_before_a_creation_is_not_used_although_its_name_is_in_the_body_alone() {
    let (client, writes) = answered(201, &object("9"));
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.create(&PostParams::default(), &ConfigMap::default()).await.unwrap();
    assert!(writes.last::<ConfigMap>(Some("team-a"), "a").is_some());
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
        writes.answered(&the_map(), &answer_with("9"));
        let _ = patch(client).await;
        assert_eq!(usable(&writes), used, "{status}");
    }
}

#[tokio::test]
async fn of_two_answers_the_newer_one_counts_whichever_comes_last() {
    let (_, writes) = answered(200, &json!({}));
    for version in ["10", "9"] {
        writes.answered(&the_map(), &answer_with(version));
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
    assert!(writes.last::<ConfigMap>(Some("team-a"), "a").is_some());
    writes.gone(&map("9"));
    assert!(writes.all::<ConfigMap>(Some("team-a")).is_empty());
}

#[tokio::test]
async fn what_has_no_copy_and_what_changes_nothing_is_not_noted() {
    let answer = json!({"metadata": {"name": "a", "resourceVersion": "9"}});
    let (client, of_maps, writes) = with_copies(200, &answer);
    let nodes: Api<Node> = Api::all(client.clone());
    nodes.patch("a", &PatchParams::default(), &Patch::Merge(json!({}))).await.unwrap();
    assert!(writes.all::<Node>(None).is_empty());
    let pods: Api<Pod> = Api::default_namespaced(client);
    pods.get("a").await.unwrap();
    let dry = PatchParams { dry_run: true, ..PatchParams::default() };
    pods.patch("a", &dry, &Patch::Merge(json!({}))).await.unwrap();
    assert!(writes.all::<Pod>(Some("team-a")).is_empty());
    pods.patch_status("a", &PatchParams::default(), &Patch::Merge(json!({}))).await.unwrap();
    assert_eq!(writes.last::<Pod>(Some("team-a"), "a"), Some(Written::Version(9)));
    assert!(writes.last::<Pod>(Some("team-b"), "a").is_none());
    assert!(of_maps.all::<ConfigMap>(Some("team-a")).is_empty(), "another kind");
}

#[tokio::test]
async fn what_one_copy_shows_another_one_of_the_kind_may_not_show_yet() {
    let service = tower::service_fn(|_: Request<Body>| {
        let answer = Response::builder().body(Body::from(object("9").to_string().into_bytes()));
        async move { Ok::<_, BoxError>(answer?) }
    });
    let writes = Arc::<OwnWrites>::default();
    let (one, other) = (writes.of_copy::<ConfigMap>(None), writes.of_copy::<ConfigMap>(None));
    patch(noted(writes, Client::new(service, "team-a"))).await.unwrap();
    one.shown(&map("9"));
    assert_eq!(usable(&one), ["8", "9", "10"], "nothing is open any more");
    assert_eq!(usable(&other), ["9", "10"]);
}

#[tokio::test]
async fn a_write_in_one_namespace_is_not_noted_for_the_copy_of_another() {
    let service = tower::service_fn(|_: Request<Body>| {
        let answer = Response::builder().body(Body::from(object("9").to_string().into_bytes()));
        async move { Ok::<_, BoxError>(answer?) }
    });
    let writes = Arc::<OwnWrites>::default();
    let (one, other) =
        (writes.of_copy::<ConfigMap>(Some("team-a")), writes.of_copy::<ConfigMap>(Some("team-b")));
    patch(noted(writes, Client::new(service, "team-a"))).await.unwrap();
    assert_eq!(usable(&one), ["9", "10"]);
    assert!(other.open().is_empty(), "{:?}", other.open());
}

#[tokio::test]
async fn a_list_shows_what_was_written_before_it_was_begun_also_of_what_is_gone() {
    let (client, writes) = answered(200, &object("9"));
    patch(client.clone()).await.unwrap();
    let open = writes.open();
    writes.listed(open);
    assert!(writes.all::<ConfigMap>(Some("team-a")).is_empty(), "the list has none of this name");

    let open = writes.open();
    patch(client).await.unwrap();
    writes.listed(open);
    assert_eq!(usable(&writes), ["9", "10"], "it was written after the list was begun");

    let (client, writes) = answered(500, &json!({}));
    let _ = patch(client).await;
    let open = writes.open();
    writes.listed(open);
    assert!(usable(&writes).is_empty(), "it may be carried out after the list");
}

#[test]
fn the_path_says_of_what_a_write_is() {
    let of = |path: &str| {
        let request = Request::patch(path).body(Body::empty()).unwrap();
        Target::of(&request).map(|it| (it.kind, it.collection, it.name.unwrap_or_default()))
    };
    let all = [
        ("/api/v1/nodes/n1", "/api/v1/nodes", "/api/v1/nodes", "n1"),
        ("/api/v1/namespaces/a", "/api/v1/namespaces", "/api/v1/namespaces", "a"),
        ("/api/v1/namespaces/a/pods/p/status", "/api/v1/pods", "/api/v1/namespaces/a/pods", "p"),
        (
            "/apis/apps/v1/namespaces/a/statefulsets",
            "/apis/apps/v1/statefulsets",
            "/apis/apps/v1/namespaces/a/statefulsets",
            "",
        ),
        (
            "/apis/freehold.dev/v1/nodes/n?force=true",
            "/apis/freehold.dev/v1/nodes",
            "/apis/freehold.dev/v1/nodes",
            "n",
        ),
    ];
    for (path, kind, collection, object) in all {
        let expected = (kind.to_owned(), collection.to_owned(), object.to_owned());
        assert_eq!(of(path), Some(expected), "{path}");
    }
}

#[tokio::test]
async fn what_was_asked_before_the_copy_showed_a_write_does_not_pass_for_what_it_shows_afterwards() {
    let (client, writes) = answered(200, &object("9"));
    patch(client).await.unwrap();
    let (last, shown) = (writes.last::<ConfigMap>(Some("team-a"), "a"), map("8"));
    writes.shown(&map("9"));
    assert!(!last.unwrap().is_in(&shown));
}

#[test]
fn a_refusal_does_not_hide_another_write_that_was_carried_out_meanwhile() {
    let writes = Unseen::default();
    let (one, other) = (writes.begin(&the_map()), writes.begin(&the_map()));
    assert_eq!((one, other), (None, Some(Written::Unknown)));
    writes.answered(&the_map(), &answer_with("9"));
    writes.refused(&the_map(), one, false);
    assert_eq!(usable(&writes), ["9", "10"]);
}

#[test]
fn an_answer_that_comes_after_the_end_of_the_object_leaves_nothing_open() {
    let writes = Unseen::default();
    writes.begin(&the_map());
    writes.gone(&map("9"));
    assert!(usable(&writes).is_empty(), "another one of the name may have been written");
    writes.answered(&the_map(), &answer_with("9"));
    assert!(writes.all::<ConfigMap>(Some("team-a")).is_empty());
}

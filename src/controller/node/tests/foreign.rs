//! Pods that have no business on a machine: they are deleted where they are seen, and awaited briefly.

use k8s_openapi::api::core::v1::Volume as PodVolume;

use super::*;
use crate::api::keys::{DATABASE_NODE_LABEL, STATEFUL_SET_ANNOTATION};
use crate::controller::node::pods::{awaited, foreign};

/// A year.
const YEAR: i64 = 31_536_000;

fn with(pod: Pod) -> Observed {
    let mut observed = settled();
    observed.pods = vec![pod];
    observed
}

/// It was deleted, with this grace.
fn ending(mut pod: Pod, grace_seconds: i64) -> Pod {
    pod.metadata.deletion_timestamp = Some(Time(at(6 + grace_seconds)));
    pod.metadata.deletion_grace_period_seconds = Some(grace_seconds);
    pod
}

fn changed(change: impl FnOnce(&mut Pod)) -> Observed {
    let mut pod = pod("orders-0", false);
    change(&mut pod);
    with(pod)
}

#[test]
fn a_foreign_pod_is_deleted_where_it_is_seen_with_half_a_minute_of_grace_at_most() {
    let finished = |phase: &str| {
        let mut pod = foreign_pod("stray", YEAR);
        pod.status = serde_json::from_value(json!({"phase": phase})).unwrap();
        with(pod)
    };
    let mut ended = with(foreign_pod("stray", YEAR));
    ended.instances.instances[0].state = InstanceState::Unknown;
    hold(vec![
        (
            "a year becomes half a minute",
            with(foreign_pod("stray", YEAR)),
            now(),
            "[evict foreign team-b/stray stray-uid within 30 s] as wanted, again in 60 s",
        ),
        (
            "a shorter grace stays",
            with(foreign_pod("stray", 5)),
            now(),
            "[evict foreign team-b/stray stray-uid within 5 s] as wanted, again in 60 s",
        ),
        (
            "one that was deleted with a year",
            with(ending(foreign_pod("stray", YEAR), YEAR)),
            now(),
            "[evict foreign team-b/stray stray-uid within 30 s] as wanted, again in 60 s",
        ),
        (
            "one that was deleted in time",
            with(ending(foreign_pod("stray", YEAR), 30)),
            now(),
            "[] as wanted, again in 60 s",
        ),
        ("one that has succeeded uses nothing", finished("Succeeded"), now(), "[] as wanted"),
        ("one that has failed uses nothing", finished("Failed"), now(), "[] as wanted"),
        (
            "a running one",
            finished("Running"),
            now(),
            "[evict foreign team-b/stray stray-uid within 30 s] as wanted, again in 60 s",
        ),
        ("what EC2 shows of the machine is not understood", ended, now(), "[] Launching"),
    ]);
}

#[test]
fn a_pod_is_the_databases_own_by_namespace_and_name() {
    let mut unknown = with(foreign_pod("stray", YEAR));
    unknown.node.metadata.labels = None;
    hold(vec![
        ("its own", with(pod("orders-0", false)), now(), "[] as wanted"),
        (
            "in another namespace",
            changed(|it| it.metadata.namespace = Some("team-b".into())),
            now(),
            "[evict foreign team-b/orders-0 orders-0-uid within 30 s] as wanted, again in 60 s",
        ),
        (
            "of another name",
            changed(|it| it.metadata.name = Some("orders-1".into())),
            now(),
            "[evict foreign team-a/orders-1 orders-0-uid within 30 s] as wanted, again in 60 s",
        ),
        ("without its labels", changed(|it| it.metadata.labels = None), now(), "[] as wanted"),
        ("of which database the Node is has been taken off it", unknown, now(), "[] as wanted"),
    ]);
}

#[test]
fn pods_of_daemon_sets_and_static_pods_are_the_machines() {
    let owned = |api: &str, kind: &str, annotations: serde_json::Value, controller: bool| -> Pod {
        let owner =
            json!({"apiVersion": api, "kind": kind, "name": "x", "uid": "x", "controller": controller});
        serde_json::from_value(json!({"metadata": {
            "name": "x", "ownerReferences": [owner], "annotations": annotations}}))
        .unwrap()
    };
    let mirror = json!({"kubernetes.io/config.mirror": "hash"});
    let rows = [
        ("a DaemonSet's", owned("apps/v1", "DaemonSet", json!({}), true), true),
        ("of another group's DaemonSet", owned("example.com/v1", "DaemonSet", json!({}), true), false),
        ("one that only names a DaemonSet", owned("apps/v1", "DaemonSet", json!({}), false), false),
        ("static", owned("v1", "Node", mirror, true), true),
        ("owned by a Node, and no mirror", owned("v1", "Node", json!({}), true), false),
        ("a Deployment's", owned("apps/v1", "ReplicaSet", json!({}), true), false),
        ("without a controller", foreign_pod("stray", 30), false),
    ];
    for (name, pod, expected) in rows {
        assert_eq!(crate::controller::node::pods::is_of_the_machine(&pod), expected, "{name}");
    }
}

#[test]
fn the_end_of_a_machine_waits_for_foreign_pods_no_longer_than_their_grace() {
    let full = |pods: Vec<Pod>| {
        let mut observed = deleting(settled());
        observed.core_node.as_mut().unwrap().spec.as_mut().unwrap().unschedulable = Some(true);
        observed.pods = pods;
        observed
    };
    let stray = || ending(foreign_pod("stray", YEAR), 30);
    let mut serving = full(vec![foreign_pod("stray", YEAR)]);
    serving.core_node.as_mut().unwrap().metadata.labels =
        Some(BTreeMap::from([(DATABASE_NODE_LABEL.to_owned(), "uid".to_owned())]));
    hold(vec![
        (
            "deleted first",
            full(vec![foreign_pod("stray", YEAR)]),
            now(),
            "[evict foreign team-b/stray stray-uid within 30 s] AwaitingDrain, again in 1 s",
        ),
        ("its grace runs", full(vec![stray()]), at(34), "[] AwaitingDrain, again in 1 s"),
        (
            "its grace is over, and a finalizer holds it",
            full(vec![stray()]),
            at(35),
            "[terminate i-1: its Node is deleted] AwaitingTermination, pending, again in 60 s",
        ),
        (
            "its grace was over before the Node was deleted",
            full(vec![ending(foreign_pod("stray", YEAR), 2)]),
            now(),
            "[terminate i-1: its Node is deleted] AwaitingTermination, pending, again in 60 s",
        ),
        (
            "another came for it",
            full(vec![foreign_pod("stray", YEAR)]),
            at(35),
            "[terminate i-1: its Node is deleted, evict foreign team-b/stray stray-uid within 30 s] \
                AwaitingTermination, pending, again in 60 s",
        ),
        (
            "the database's own pod is awaited for longer",
            full(vec![pod("orders-0", true), stray()]),
            at(300),
            "[] AwaitingDrain, again in 1 s",
        ),
        (
            "deleted while the database still runs there",
            serving,
            now(),
            "[evict foreign team-b/stray stray-uid within 30 s] AwaitingMove, again in 60 s",
        ),
    ]);
}

#[test]
fn what_is_said_of_a_drain_is_about_the_databases_pod() {
    let mut observed = deleting(settled());
    observed.pods = vec![foreign_pod("stray", YEAR)];
    let status = crate::controller::node::status::status(
        &observed,
        &plan(&observed, at(35)),
        &crate::controller::pass::acted::Acted::new(observed.node.clone()),
        at(35),
    );
    let drained = condition(&status.conditions, ConditionType::Drained);
    assert_eq!(drained, ("True".to_owned(), "AsExpected".to_owned()));
}

#[test]
fn the_pod_of_an_adopted_database_is_its_own_by_the_name_of_its_stateful_set() {
    let mut observed = with(pod("legacy-db-0", false));
    assert!(!plan(&observed, now()).actions.is_empty(), "another pod of the namespace is foreign");
    let annotation = (STATEFUL_SET_ANNOTATION.to_owned(), "legacy-db".to_owned());
    observed.node.metadata.annotations = Some(BTreeMap::from([annotation]));
    assert_eq!(plan(&observed, now()).actions, []);
}

#[test]
fn a_pod_that_only_pulls_the_next_image_is_neither_foreign_nor_awaited() {
    let pulls = |change: fn(&mut Pod)| {
        let mut pod = foreign_pod("orders-0-pull", 1);
        pod.metadata.namespace = Some("team-a".to_owned());
        let owner = json!([{"apiVersion": "freehold.dev/v1alpha1", "kind": "Database", "name": "orders",
            "uid": "u", "controller": true}]);
        pod.metadata.owner_references = serde_json::from_value(owner).unwrap();
        pod.spec = serde_json::from_value(json!({"containers": [
            {"name": "pull", "image": "questdb/questdb:9.3.5", "command": ["true"]}]}))
        .unwrap();
        change(&mut pod);
        let observed = with(pod);
        let is_foreign = foreign(&observed.pods, &observed.node).count() > 0;
        (is_foreign, awaited(&observed.pods, &observed.node, &observed.timing, at(6)).len())
    };
    assert_eq!(pulls(|_| {}), (false, 0));
    let foreign = (true, 1);
    assert_eq!(pulls(|pod| pod.metadata.owner_references = None), foreign);
    assert_eq!(pulls(|pod| pod.metadata.namespace = Some("team-b".to_owned())), foreign);
    assert_eq!(pulls(|pod| pod.metadata.name = Some("ledger-0-pull".to_owned())), foreign);
    assert_eq!(pulls(|pod| pod.spec.as_mut().unwrap().containers[0].command = None), foreign);
    assert_eq!(pulls(|pod| pod.spec.as_mut().unwrap().volumes = Some(vec![PodVolume::default()])), foreign);
}

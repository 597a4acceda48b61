//! The rows of a Node whose spec names the instance: adopted by two proofs, waited for, and released.

use super::*;
use crate::api::keys::{ADOPT_TAG, CLUSTER_ID_TAG, NODE_UID_TAG};
use crate::controller::memory::issued_requests::IssuedRequest;
use crate::controller::node::status::status as status_of;
use crate::controller::pass::acted::Acted;

/// An instance of another provisioner, with the tag that allows this Node's Database to adopt it.
pub(super) fn legacy(state: InstanceState) -> Instance {
    let tags = [("Name", "legacy"), (ADOPT_TAG, "cluster/team-a/orders")];
    Instance {
        token: None,
        instance_type: "m5.large".to_owned(),
        tags: tags.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        ..instance("i-1", state)
    }
}

/// The same with the tags that the adoption puts on it.
pub(super) fn owned(state: InstanceState) -> Instance {
    let mut owned = legacy(state);
    owned.tags.extend(own_tags());
    owned
}

pub(super) fn own_tags() -> BTreeMap<String, String> {
    let tags =
        [(CLUSTER_ID_TAG, "cluster"), (NODE_UID_TAG, "node-uid"), ("freehold.dev/database", "team-a/orders")];
    tags.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

/// A Node whose spec names the instance, and is released when it is deleted; EC2 shows this by its id.
pub(super) fn named(shown: &[Instance]) -> Observed {
    let mut observed = world();
    observed.node.spec.instance_id = Some(id("i-1"));
    observed.node.spec.release = true;
    observed.shown_by_id = Some(shown.to_vec());
    observed
}

/// It is recorded, and the inventory does not show it.
pub(super) fn recorded(shown: &[Instance]) -> Observed {
    let mut observed = named(shown);
    status(&mut observed).instance_id = Some(id("i-1"));
    observed
}

/// It is recorded, and the inventory shows it.
pub(super) fn tagged(state: InstanceState) -> Observed {
    let mut observed = recorded(&[]);
    observed.shown_by_id = None;
    observed.instances.instances = vec![owned(state)];
    observed
}

/// Its Kubernetes node as it was before.
pub(super) fn plain_core_node() -> CoreNode {
    let mut core_node = core_node_with(&[], &ready("True", at(-5000)));
    core_node.metadata.labels = Some(BTreeMap::from([("team".to_owned(), "legacy".to_owned())]));
    core_node.spec.get_or_insert_default().taints =
        serde_json::from_value(json!([{"key": "team", "effect": "NoSchedule"}])).unwrap();
    core_node
}

pub(super) fn dedicated_core_node() -> CoreNode {
    let mut core_node = core_node();
    let taint = json!([{"key": "freehold.dev/dedicated", "value": "true", "effect": "NoSchedule"}]);
    core_node.spec.get_or_insert_default().taints = serde_json::from_value(taint).unwrap();
    core_node
}

/// It has joined, and is ready.
pub(super) fn served(state: InstanceState) -> Observed {
    let mut observed = tagged(state);
    joined(&mut observed);
    observed.core_node = Some(dedicated_core_node());
    observed.driver_registered = true;
    observed
}

/// EC2 would let the operator take the tags off.
fn untaggable(it: &mut Observed) {
    it.tagged = Some(Ok(vec!["i-1".to_owned()]));
}

pub(super) fn kept(mut observed: Observed) -> Observed {
    observed.node.spec.release = false;
    observed
}

pub(super) fn with(mut observed: Observed, change: impl FnOnce(&mut Observed)) -> Observed {
    change(&mut observed);
    observed
}

pub(super) fn with_tag(key: &str, value: &str) -> Vec<Instance> {
    let mut instance = legacy(InstanceState::Running);
    instance.tags.insert(key.to_owned(), value.to_owned());
    vec![instance]
}

pub(super) fn issued(seconds: i64) -> IssuedRequest {
    IssuedRequest { at: at(seconds), call_blocked: None }
}

pub(super) fn proven(observed: Observed) -> Observed {
    with(observed, |it| it.instances.empty = empty(-5000, 5))
}

#[test]
fn an_instance_is_adopted_by_its_id_and_the_tag_of_this_database_and_by_nothing_less() {
    let running = || vec![legacy(InstanceState::Running)];
    let without = |key: &str| {
        let mut instance = legacy(InstanceState::Running);
        instance.tags.remove(key);
        vec![instance]
    };
    hold(vec![
        ("it runs", named(&running()), now(), "[adopt i-1] Adopting, pending"),
        ("it starts", named(&[legacy(InstanceState::Pending)]), now(), "[adopt i-1] Adopting, pending"),
        (
            "it is in the zone of the volume",
            with(named(&running()), |it| it.node.spec.zone = Some("us-east-1a".to_owned())),
            now(),
            "[adopt i-1] Adopting, pending",
        ),
        (
            "it is in another zone",
            with(named(&running()), |it| it.node.spec.zone = Some("us-east-1b".to_owned())),
            now(),
            "[] stalled AdoptionRefused, again in 60 s",
        ),
        ("EC2 does not know it", named(&[]), now(), "[] stalled AdoptionRefused, again in 60 s"),
        (
            "the tag is missing",
            named(&without(ADOPT_TAG)),
            now(),
            "[] stalled AdoptionRefused, again in 60 s",
        ),
        (
            "the tag is another database's",
            named(&with_tag(ADOPT_TAG, "cluster/team-b/orders")),
            now(),
            "[] stalled AdoptionRefused, again in 60 s",
        ),
        (
            "the tag is another cluster's",
            named(&with_tag(ADOPT_TAG, "other/team-a/orders")),
            now(),
            "[] stalled AdoptionRefused, again in 60 s",
        ),
        (
            "it is of another cluster",
            named(&with_tag(CLUSTER_ID_TAG, "other")),
            now(),
            "[] stalled AdoptionRefused, again in 60 s",
        ),
        (
            "it is another Node's",
            named(&with_tag(NODE_UID_TAG, "other-uid")),
            now(),
            "[] stalled AdoptionRefused, again in 60 s",
        ),
        (
            "it is terminated",
            named(&[legacy(InstanceState::Terminated)]),
            now(),
            "[] stalled AdoptionRefused, again in 60 s",
        ),
        (
            "it is stopped",
            named(&[legacy(InstanceState::Stopped)]),
            now(),
            "[] stalled InstanceStopped, again in 60 s",
        ),
        (
            "EC2 was not requested",
            with(named(&[]), |it| it.shown_by_id = None),
            now(),
            "[] Adopting, again in 5 s",
        ),
        (
            "the status was lost",
            named(&[owned(InstanceState::Running)]),
            now(),
            "[record i-1] Launching, pending",
        ),
        (
            "the status was lost, and the tag of adoption was removed",
            with(tagged(InstanceState::Stopped), |it| {
                it.node.status = None;
                it.instances.instances[0].tags.remove(ADOPT_TAG);
            }),
            now(),
            "[record i-1] Launching, pending",
        ),
    ]);
    let hint = message(&plan(&named(&without(ADOPT_TAG)), now()));
    let tag = "Key=freehold.dev/adopt,Value=cluster/team-a/orders";
    assert!(hint.contains("aws ec2 create-tags --resources i-1") && hint.contains(tag), "{hint}");
    let other = message(&plan(&named(&with_tag(ADOPT_TAG, "cluster/team-b/secret")), now()));
    assert!(!other.contains("team-b"), "a tenant reads nothing of another: {other}");
}

#[test]
fn what_is_recorded_is_tagged_until_ec2_shows_it() {
    let running = || vec![legacy(InstanceState::Running)];
    let blocked = answered(Call::CreateTags, "UnauthorizedOperation", Some(at(300)));
    hold(vec![
        ("not tagged yet", recorded(&running()), now(), "[tag i-1] Adopting, pending"),
        (
            "tagged just now",
            with(recorded(&running()), |it| it.issued_tags = Some(issued(7))),
            now(),
            "[] Adopting, pending",
        ),
        (
            "tagged, and EC2 shows it no more",
            with(recorded(&running()), |it| it.issued_tags = Some(issued(-60))),
            now(),
            "[tag i-1] Adopting, pending",
        ),
        (
            "tagged, and not in the inventory yet",
            recorded(&[owned(InstanceState::Running)]),
            now(),
            "[] Adopting, pending",
        ),
        (
            "refused",
            with(recorded(&running()), |it| {
                it.issued_tags = Some(IssuedRequest { at: at(1), call_blocked: Some(blocked) });
            }),
            now(),
            "[] Forbidden, pending, again in 290 s",
        ),
        (
            "the tag of adoption was removed",
            recorded(&with_tag(ADOPT_TAG, "")),
            now(),
            "[] stalled AdoptionRefused, pending, again in 60 s",
        ),
        ("EC2 does not know it", recorded(&[]), now(), "[] Launching, pending"),
        (
            "no tag for long is no proof while EC2 knows its id",
            proven(recorded(&running())),
            now(),
            "[tag i-1] Adopting, pending",
        ),
    ]);
    assert!(plan(&proven(recorded(&[])), now()).declares_lost());
    let unread = proven(with(recorded(&[]), |it| it.shown_by_id = None));
    assert!(!plan(&unread, now()).declares_lost(), "EC2 was not requested to show it");
}

#[test]
fn before_it_joins_an_adopted_instance_is_ended_for_nothing() {
    let mut rows: Vec<Case> = Vec::new();
    for node in [tagged as fn(InstanceState) -> Observed, |state| kept(tagged(state))] {
        rows.extend(vec![
            (
                "without a Kubernetes node",
                node(InstanceState::Running),
                now(),
                "[] AwaitingRegistration, again in 60 s",
            ),
            (
                "without one for hours",
                node(InstanceState::Running),
                at(20_000),
                "[] AwaitingRegistration, again in 60 s",
            ),
            ("stopped", node(InstanceState::Stopped), now(), "[] stalled InstanceStopped, again in 60 s"),
            ("shutting down", node(InstanceState::ShuttingDown), now(), "[] InstanceLost, pending"),
        ]);
        let ended = plan(&node(InstanceState::Terminated), now());
        assert!(ended.declares_lost() && ended.actions.len() == 1, "{ended:?}");
    }
    hold(rows);
}

#[test]
fn its_kubernetes_node_is_held_and_dedicated_without_evicting_anything() {
    let held = || {
        let mut core_node = plain_core_node();
        core_node.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
        core_node
    };
    let on = |core_node: &CoreNode| {
        with(tagged(InstanceState::Running), |it| {
            it.core_node = Some(core_node.clone());
            it.driver_registered = true;
            it.pods = vec![pod("legacy-db-0", false), foreign_pod("stray", 30)];
            untaggable(it);
        })
    };
    let serves = with(served(InstanceState::Running), untaggable);
    let joined = dedicated_core_node();
    hold(vec![
        ("it is found", on(&plain_core_node()), now(), "[hold ip-10-0-0-1] AwaitingInitialization"),
        ("it is held", on(&held()), now(), "[dedicate ip-10-0-0-1] AwaitingInitialization"),
        ("it is dedicated", on(&joined), now(), "[] as wanted"),
        ("it is served", serves, now(), "[] as wanted"),
    ]);
    let observed = on(&joined);
    let status = status_of(&observed, &plan(&observed, now()), &Acted::new(observed.node.clone()), now());
    assert_eq!(condition(&status.conditions, ConditionType::Initialized).0, "True");
    assert_eq!(condition(&status.conditions, ConditionType::Ready).0, "True");
}

#[test]
fn a_machine_is_tainted_only_once_the_pod_of_its_database_would_tolerate_it() {
    let dedicated = |release: bool, node: &CoreNode| {
        let mut observed = served(InstanceState::Running);
        observed.node.spec.release = release;
        observed.core_node = Some(node.clone());
        plan(&observed, now()).actions.iter().any(|action| matches!(action, Action::Dedicate(_)))
    };
    let mut untainted = dedicated_core_node();
    untainted.spec.get_or_insert_default().taints = None;
    assert!(!dedicated(true, &untainted), "the StatefulSet is not adopted yet");
    assert!(dedicated(false, &untainted));
    assert!(!dedicated(false, &dedicated_core_node()));
}

//! An engine that serves is flushed before Freehold stops it by choice, and never awaited where it must go.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pretty_assertions::assert_eq;

use super::moving::with_successor;
use super::*;
use crate::api::keys::{INPUTS_HASH_ANNOTATION, REVISION_LABEL};
use crate::api::{DeletionPolicy, NodeStatus, Reason};
use crate::controller::database::plan::flush::LIMIT;
use crate::engine::EngineError;
use crate::time::later;

const FLUSH: &str = "flush admin@10.0.0.7:5432 by CHECKPOINT";

/// A PostgreSQL that is as its spec says, with an address.
fn postgresql(spec: Value) -> Observed {
    let mut whole = json!({"engine": {"type": "postgresql", "version": "17.6"}});
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let mut world = settled_as(whole);
    reachable(&mut world);
    world
}

fn reachable(world: &mut Observed) {
    if let Some(status) = world.pod.as_mut().and_then(|pod| pod.status.as_mut()) {
        status.pod_ip = Some("10.0.0.7".to_owned());
    }
}

/// Its pod is of other resources than the template, which the spec has.
fn outdated() -> Observed {
    let mut world = postgresql(json!({"resources": {"requests": {"cpu": "2"}}}));
    let annotations = world.pod.as_mut().map(ResourceExt::annotations_mut).unwrap();
    annotations.insert(INPUTS_HASH_ANNOTATION.to_owned(), "of-an-older-spec".to_owned());
    world
}

/// Its type has left the list, and the machine that takes its place is ready.
fn moved() -> Observed {
    with_successor(postgresql(json!({"instanceTypes": ["m7i.large"]})))
}

fn paused() -> Observed {
    postgresql(json!({"running": false}))
}

fn done(world: &Observed) -> String {
    line(&plan(world, now()))
}

/// A world, what the Database waits for in it, and what is done.
type Stop = (fn() -> Observed, &'static str, &'static str);

/// Each stop by choice.
const STOPS: [Stop; 3] = [
    (outdated, "RestartPending", "replace orders-0 pod-uid: "),
    (moved, "Moving", "unlabel ip-10-0-0-1 ip-10-0-0-1-uid, label ip-10-0-0-2, moved "),
    (paused, "AwaitingStop", "scale set-uid to 0"),
];

/// What is otherwise in a world.
type Change = (&'static str, fn(&mut Observed));

#[test]
fn each_stop_by_choice_begins_with_a_flush_and_follows_its_end() {
    for (world, reason, stop) in STOPS {
        let mut world = world();
        assert_eq!(done(&world), format!("[{FLUSH}] {reason}"), "{stop}");
        world.flush = FlushView::Running(at(1_700_000_000 - 299));
        let waits = plan(&world, now());
        assert_eq!(line(&waits), format!("[] {reason}"), "{stop}");
        assert_eq!(waits.requeue, Some(world.timing.requeue_interval / 5));
        for over in [FlushView::Running(at(1_700_000_000 - 300)), FlushView::Ended(at(1_700_000_000 - 599))] {
            world.flush = over;
            let planned = done(&world);
            assert!(planned.contains(stop), "{over:?}: {planned}");
            assert!(!planned.contains("flush"), "{planned}");
        }
        world.flush = FlushView::Ended(at(1_700_000_000 - 600));
        assert_eq!(done(&world), format!("[{FLUSH}] {reason}"), "that one is over for long");
    }
}

#[test]
fn an_engine_that_does_not_serve_is_stopped_at_once() {
    let cases: [Change; 8] = [
        ("its probe fails", |it| {
            let running = json!({"phase": "Running", "podIP": "10.0.0.7",
                "containerStatuses": [container_status(json!({"running": {}}))]});
            it.pod = it.pod.take().map(|pod| pod_with(pod, running));
        }),
        ("its kubelet does not report", |it| {
            let status = json!({"conditions": [{"type": "Ready", "status": "Unknown"}]});
            it.core_nodes[0].status = serde_json::from_value(status).unwrap();
        }),
        ("its Kubernetes node is gone", |it| it.core_nodes.retain(|it| it.name_any() != "ip-10-0-0-1")),
        ("its machine is impaired", |it| status_of(it).impaired_since = Some(time())),
        ("its machine was not ready a moment ago", |it| status_of(it).not_ready_since = Some(time())),
        ("it has no address", |it| it.pod.as_mut().unwrap().status.as_mut().unwrap().pod_ip = None),
        ("its Secret cannot be read", |it| it.credentials = Credentials::Unreadable("no".to_owned())),
        ("its spec cannot be carried out", |it| it.profile = Err(EngineError::ConfigUnsupported)),
    ];
    for (what, change) in cases {
        let mut world = paused();
        change(&mut world);
        let planned = done(&world);
        assert!(planned.contains("scale set-uid to 0") && !planned.contains("flush"), "{what}: {planned}");
    }
}

fn status_of(world: &mut Observed) -> &mut NodeStatus {
    world.nodes[0].status.as_mut().unwrap()
}

fn time() -> Time {
    Time(at(1))
}

#[test]
fn nothing_is_awaited_of_a_lost_machine() {
    for world in [paused, moved] {
        let mut world = world();
        let lost = condition("Lost", "True", "InstanceTerminated", "EC2 shows it terminated");
        status_of(&mut world).conditions.push(serde_json::from_value(lost).unwrap());
        assert!(!done(&world).contains("flush"));
        world.flush = FlushView::Running(now());
        let planned = done(&world);
        assert!(planned.contains("scale set-uid to 0") || world.database.spec.running, "{planned}");
    }
}

#[test]
fn a_deletion_awaits_nothing() {
    for policy in [DeletionPolicy::Delete, DeletionPolicy::Retain, DeletionPolicy::Snapshot] {
        let mut world = postgresql(json!({"deletionPolicy": policy}));
        deleting(&mut world.database, 1);
        assert_eq!(done(&world), "[scale set-uid to 0] AwaitingStop");
    }
}

#[test]
fn an_engine_without_such_a_statement_is_stopped_at_once() {
    let mut world = settled_as(json!({"running": false}));
    reachable(&mut world);
    assert!(done(&world).contains("scale set-uid to 0"));
}

#[test]
fn what_another_client_has_put_in_its_place_is_given_no_password() {
    let as_wanted: Stop = (|| postgresql(json!({})), "Altered", "replace orders-0 pod-uid: ");
    for (world, _, stop) in STOPS.into_iter().chain([as_wanted]) {
        let mut world = world();
        world.pod.as_mut().unwrap().labels_mut().insert(REVISION_LABEL.to_owned(), "of-another".to_owned());
        world.database.status.as_mut().unwrap().applied.as_mut().unwrap().revisions = vec!["ours".to_owned()];
        let planned = done(&world);
        assert!(planned.starts_with(&format!("[{stop}")), "{planned}");
    }
}

#[test]
fn the_label_stays_with_a_pod_whose_next_template_was_not_seen_yet() {
    let mut world = moved();
    change(&mut world.stateful_set, |set| set.metadata.generation = Some(6));
    as_applied(&mut world);
    assert_eq!(done(&world), "[] Moving");
}

#[test]
fn it_says_what_the_stop_is_for() {
    let waiting = plan(&outdated(), now()).waiting.unwrap();
    assert_eq!((waiting.reason(), waiting.is_stalled()), (Reason::RestartPending, false));
    let message = waiting.message();
    assert!(message.contains("pod orders-0 is being replaced for a changed spec"), "{message}");
    assert_eq!(later(at(0), LIMIT), at(300), "as the message says");
}

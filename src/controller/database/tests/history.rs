//! The recorded interruptions: each once, with its cause, and the last ten kept.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::api::DatabaseStatus;
use crate::api::database::{HistoryEntry, Occurrence};
use crate::controller::database::history::{extended, is_announced};
use crate::controller::database::status::{Decided, changes, status};
use crate::controller::pass::acted::Acted;

fn status_of(world: &Observed, second: i64) -> DatabaseStatus {
    let now = at(second);
    let acted = Acted::new(world.database.clone());
    status(world, &Decided::of(world, &plan(world, now), &acted), &acted, now)
}

/// The world after this status was written.
fn written(world: &Observed, second: i64) -> Observed {
    let mut world = world.clone();
    world.database.status = Some(status_of(&world, second));
    world
}

fn entries(status: &DatabaseStatus) -> Vec<String> {
    status
        .history
        .iter()
        .map(|entry| format!("{} x{}: {}", entry.what.event().unwrap().as_str(), entry.count, entry.cause))
        .collect()
}

/// The pod after its container was started again so often.
fn restarted(world: &mut Observed, restarts: i32, reason: &str) {
    let mut container = container_status(json!({"running": {}}));
    container["restartCount"] = json!(restarts);
    container["lastState"] = json!({"terminated": {"exitCode": 137, "reason": reason}});
    let status = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
    "containerStatuses": [container]});
    world.pod = world.pod.take().map(|pod| pod_with(pod, status));
}

#[test]
fn an_engine_that_ended_by_itself_is_told_with_its_end_and_counted() {
    let mut world = written(&settled(), 1000);
    assert_eq!(entries(world.database.status.as_ref().unwrap()), [""; 0]);
    restarted(&mut world, 1, "OOMKilled");
    let first = status_of(&world, 1010);
    assert_eq!(entries(&first), ["EngineRestarted x1: OOMKilled, exit code 137"]);
    let acted = Acted::new(world.database.clone());
    let decided = Decided::of(&world, &plan(&world, at(1010)), &acted);
    let events: Vec<&str> = changes(world.database.status.as_ref().unwrap(), &first, &decided)
        .iter()
        .map(|event| event.reason.as_str())
        .collect();
    assert_eq!(events, ["EngineRestarted"]);
    let mut world = written(&world, 1010);
    assert_eq!(
        entries(&status_of(&world, 1020)),
        ["EngineRestarted x1: OOMKilled, exit code 137"],
        "recorded once"
    );
    restarted(&mut world, 2, "OOMKilled");
    assert_eq!(entries(&status_of(&world, 1030)), ["EngineRestarted x2: OOMKilled, exit code 137"]);
}

#[test]
fn a_pod_that_another_client_deleted_is_told_and_one_that_we_replaced_is_not_told_twice() {
    let mut foreign = written(&settled(), 1000);
    foreign.pod.as_mut().unwrap().metadata.uid = Some("second-uid".to_owned());
    assert_eq!(
        entries(&status_of(&foreign, 1010)),
        ["PodReplaced x1: its pod was deleted by another client than Freehold"]
    );
    let mut again = written(&foreign, 1010);
    again.pod.as_mut().unwrap().metadata.uid = Some("third-uid".to_owned());
    assert_eq!(
        entries(&status_of(&again, 1020)),
        ["PodReplaced x2: its pod was deleted by another client than Freehold"]
    );

    let mut ours = written(&settled(), 1000);
    let status = ours.database.status.as_mut().unwrap();
    status.history =
        extended(&status.history, Some(&(Occurrence::Restarted, "a changed setting".to_owned())), at(1005));
    assert!(
        is_announced(status, Occurrence::Restarted, "a changed setting"),
        "and not announced again by the next pass"
    );
    ours.pod.as_mut().unwrap().metadata.uid = Some("second-uid".to_owned());
    assert_eq!(entries(&status_of(&ours, 1010)), ["Restarted x1: a changed setting"]);
    let later = written(&ours, 1010);
    assert!(
        !is_announced(later.database.status.as_ref().unwrap(), Occurrence::Restarted, "a changed setting"),
        "the next one is news"
    );
}

#[test]
fn a_pause_and_its_end_are_told() {
    let running = written(&settled(), 1000);
    let mut paused = running.clone();
    paused.database.spec.running = false;
    let paused = written(&paused, 1010);
    assert_eq!(entries(paused.database.status.as_ref().unwrap()), ["Paused x1: spec.running is false"]);
    let mut resumed = written(&paused, 1020);
    resumed.database.spec.running = true;
    let resumed = written(&resumed, 1030);
    let expected = ["Paused x1: spec.running is false", "Resumed x1: spec.running is true again"];
    assert_eq!(entries(resumed.database.status.as_ref().unwrap()), expected);
    let mut started = resumed;
    started.pod.as_mut().unwrap().metadata.uid = Some("second-uid".to_owned());
    assert_eq!(entries(&status_of(&started, 1040)), expected, "the new pod is no surprise");
}

#[test]
fn the_last_ten_are_kept() {
    let history: Vec<HistoryEntry> = (0..30).fold(Vec::new(), |history, n| {
        extended(&history, Some(&(Occurrence::Restarted, format!("cause {n}"))), at(n))
    });
    assert_eq!(
        (history.len(), history[0].cause.as_str(), history[9].cause.as_str()),
        (10, "cause 20", "cause 29")
    );
}

//! What each state of a pod says of the engine.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::controller::database::pod::{EngineState, engine_state};

fn state(status: Value) -> EngineState {
    let world = settled();
    engine_state(Some(&pod_with(world.pod.unwrap(), status)))
}

fn container(state: Value) -> Value {
    json!({"phase": "Running", "containerStatuses": [container_status(state)]})
}

#[test]
fn a_container_that_does_not_start_is_failing_with_kubernetes_words() {
    for reason in ["ErrImagePull", "ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError", "RunContainerError"] {
        let said = state(container(json!({"waiting": {"reason": reason, "message": "why"}})));
        assert_eq!(said, EngineState::Failing(format!("{reason}: why")));
    }
}

#[test]
fn a_crash_loop_tells_how_the_last_run_ended_and_not_the_growing_pause() {
    for (message, expected) in [
        (json!(null), "CrashLoopBackOff: the engine does not stay up (last: Error, exit code 55); its log says why"),
        (json!("\n"), "CrashLoopBackOff: the engine does not stay up (last: Error, exit code 55); its log says why"),
        (json!("why\n"), "CrashLoopBackOff: the engine does not stay up (last: Error, exit code 55: why); its log says why"),
    ] {
        let mut container = container_status(json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting"}}));
        container["lastState"] = json!({"terminated": {"exitCode": 55, "reason": "Error", "message": message}});
        let said = state(json!({"phase": "Running", "containerStatuses": [container]}));
        assert_eq!(said, EngineState::Failing(expected.to_owned()));
    }
}

#[test]
fn a_pod_that_cannot_be_scheduled_says_what_the_scheduler_says() {
    let scheduled = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"});
    let said = state(json!({"phase": "Pending", "conditions": [scheduled]}));
    assert_eq!(said, EngineState::AwaitingPod("pod orders-0 cannot be scheduled: 0/1 nodes".to_owned()));
}

#[test]
fn starting_running_ready_stopping_and_failed_are_told_apart() {
    assert_eq!(engine_state(None), EngineState::AwaitingPod("the StatefulSet has not made the pod yet".to_owned()));
    let creating = state(container(json!({"waiting": {"reason": "ContainerCreating"}})));
    assert_eq!(creating, EngineState::AwaitingPod("pod orders-0 is being started".to_owned()));
    assert!(matches!(state(container(json!({"running": {}}))), EngineState::Starting(_)));
    assert_eq!(engine_state(settled().pod.as_ref()), EngineState::Ready);
    assert!(matches!(state(json!({"phase": "Failed", "reason": "Evicted"})), EngineState::Failing(said) if said.contains("Evicted")));
    let mut pod = settled().pod.unwrap();
    deleting(&mut pod, 1);
    assert_eq!(engine_state(Some(&pod)), EngineState::Stopping("pod orders-0 is stopping".to_owned()));
}

#[test]
fn a_pod_that_runs_in_name_only_is_ready_by_its_condition() {
    let said = state(json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}));
    assert_eq!(said, EngineState::Ready);
}

//! What each state of a pod says of the engine.

use k8s_openapi::api::storage::v1::VolumeAttachment;
use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::api::Reason;
use crate::controller::database::plan::plan;
use crate::controller::database::pod::{EngineWait, attaching, engine_wait};

fn state(status: Value) -> Option<EngineWait> {
    let world = settled();
    engine_wait(Some(&pod_with(world.pod.unwrap(), status)), None)
}

/// The reason and the sentence.
fn shown(wait: Option<EngineWait>) -> (Reason, String) {
    let wait = wait.unwrap();
    (wait.reason(), wait.message())
}

fn container(state: Value) -> Value {
    json!({"phase": "Running", "containerStatuses": [container_status(state)]})
}

#[test]
fn a_container_that_does_not_start_is_failing_with_kubernetes_words() {
    for reason in [
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "CreateContainerConfigError",
        "RunContainerError",
    ] {
        let said = state(container(json!({"waiting": {"reason": reason, "message": "why"}})));
        assert_eq!(shown(said), (Reason::EngineFailing, format!("{reason}: why")));
    }
}

#[test]
fn a_crash_loop_tells_how_the_last_run_ended_and_not_the_growing_pause() {
    for (message, expected) in [
        (
            json!(null),
            "CrashLoopBackOff: the engine keeps crashing (last exit: Error, exit code 55); see its log",
        ),
        (
            json!("\n"),
            "CrashLoopBackOff: the engine keeps crashing (last exit: Error, exit code 55); see its log",
        ),
        (
            json!("why\n"),
            "CrashLoopBackOff: the engine keeps crashing (last exit: Error, exit code 55: why); see its log",
        ),
    ] {
        let mut container = container_status(json!({"waiting": {"reason": "CrashLoopBackOff",
        "message": "back-off 40s restarting"}}));
        container["lastState"] = json!({"terminated": {"exitCode": 55, "reason": "Error",
        "message": message}});
        let said = state(json!({"phase": "Running", "containerStatuses": [container]}));
        assert_eq!(shown(said), (Reason::EngineFailing, expected.to_owned()));
    }
}

#[test]
fn a_crash_loop_tells_the_last_lines_of_the_log() {
    let mut container = container_status(json!({"waiting": {"reason": "CrashLoopBackOff"}}));
    container["lastState"] = json!({"terminated": {"exitCode": 1, "reason": "Error",
        "message": "a\nb\nstarting\nPANIC: No space left on device\n\n"}});
    let said = state(json!({"phase": "Running", "containerStatuses": [container]}));
    let expected = "CrashLoopBackOff: the engine keeps crashing (last exit: Error, exit code 1: b | starting \
        | PANIC: No space left on device); see its log";
    assert_eq!(shown(said), (Reason::EngineFailing, expected.to_owned()));
}

#[test]
fn an_engine_that_was_started_again_tells_how_its_last_run_ended() {
    let mut container = container_status(json!({"running": {}}));
    container["lastState"] = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}});
    let said = state(json!({"phase": "Running", "containerStatuses": [container]}));
    let expected = "the engine in pod orders-0 is running, but its probe does not succeed yet (last exit: \
        OOMKilled, exit code 137)";
    assert_eq!(shown(said), (Reason::EngineStarting, expected.to_owned()));
}

fn attachment(status: Value) -> VolumeAttachment {
    let object = json!({
        "metadata": {"name": "csi-1", "creationTimestamp": "2026-11-21T10:00:00Z"},
        "spec": {"attacher": "ebs.csi.aws.com", "nodeName": "ip-10-0-0-1",
        "source": {"persistentVolumeName": "pv"}},
        "status": status,
    });
    serde_json::from_value(object).unwrap()
}

#[test]
fn a_volume_on_its_way_to_the_machine_is_told_with_the_drivers_words_and_without_what_differs_in_each_try() {
    let waits = attaching(&attachment(json!({"attached": false}))).unwrap().message();
    assert_eq!(waits, "the volume is being attached to ip-10-0-0-1 since 2026-11-21T10:00:00Z");
    let error = json!({"message": "could not attach: StatusCode: 400, RequestID: 1f6a-77, api error \
        VolumeInUse: it is used"});
    let fails = attaching(&attachment(json!({"attached": false, "attachError": error}))).unwrap().message();
    assert!(
        fails.ends_with(": could not attach: StatusCode: 400, api error VolumeInUse: it is used"),
        "{fails}"
    );
    assert_eq!(attaching(&attachment(json!({"attached": true}))), None);
}

#[test]
fn a_pod_whose_volume_is_not_attached_waits_for_that_and_is_looked_at_again() {
    let mut world = settled();
    world.pod =
        Some(pod_with(world.pod.unwrap(), container(json!({"waiting": {"reason": "ContainerCreating"}}))));
    world.attachment = Some(attachment(json!({"attached": false})));
    let plan = plan(&world, now());
    assert_eq!(plan.waiting.map(|waiting| waiting.reason()), Some(Reason::AwaitingAttach));
    assert_eq!(plan.requeue, Some(world.timing.requeue_interval));
}

#[test]
fn a_pod_that_cannot_be_scheduled_says_what_the_scheduler_says() {
    let scheduled = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
    "message": "0/1 nodes"});
    let said = state(json!({"phase": "Pending", "conditions": [scheduled]}));
    assert_eq!(shown(said), (Reason::AwaitingPod, "pod orders-0 cannot be scheduled: 0/1 nodes".to_owned()));
}

#[test]
fn starting_running_ready_stopping_and_failed_are_told_apart() {
    assert_eq!(
        shown(engine_wait(None, None)),
        (Reason::AwaitingPod, "the StatefulSet has not created the pod yet: kubectl describe statefulset shows its events, such as \
         the answer of an admission policy".to_owned())
    );
    let creating = state(container(json!({"waiting": {"reason": "ContainerCreating"}})));
    assert_eq!(shown(creating), (Reason::AwaitingPod, "pod orders-0 is being started".to_owned()));
    assert_eq!(shown(state(container(json!({"running": {}})))).0, Reason::EngineStarting);
    assert_eq!(engine_wait(settled().pod.as_ref(), None), None);
    let (reason, said) = shown(state(json!({"phase": "Failed", "reason": "Evicted"})));
    assert!(reason == Reason::EngineFailing && said.contains("Evicted"), "{said}");
    let mut pod = settled().pod.unwrap();
    deleting(&mut pod, 1);
    let stopping = engine_wait(Some(&pod), None).unwrap();
    assert!(matches!(stopping, EngineWait::Stopping { .. }));
    assert_eq!(stopping.message(), "pod orders-0 is stopping");
}

#[test]
fn a_pod_that_runs_in_name_only_is_ready_by_its_condition() {
    let said = state(json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}));
    assert_eq!(said, None);
}

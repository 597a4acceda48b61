//! What memory the pod requests: three quarters of what its machine has for pods, unless the spec says it.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use pretty_assertions::assert_eq;

use super::*;
use crate::api::keys::REVISION_LABEL;
use crate::controller::database::build::{memory_of, with_memory};

/// What the kubelet reports that its machine has for pods.
fn has(core_node: &mut CoreNode, memory: &str) {
    let status = json!({"allocatable": {"cpu": "4", "memory": memory}});
    core_node.status = Some(serde_json::from_value(status).unwrap());
}

fn on_machine_with(mut world: Observed, memory: &str) -> Observed {
    has(&mut world.core_nodes[0], memory);
    has(&mut world.labelled[0], memory);
    world
}

/// What the template that is applied, or written, requests.
fn requested(plan: &Plan) -> Option<String> {
    plan.actions.iter().find_map(|action| {
        let (Action::ApplyStatefulSet(set) | Action::RestoreStatefulSet(set)) = action else { return None };
        let pod = set.spec.as_ref()?.template.spec.as_ref()?;
        memory_of(&pod.containers).map(|memory| memory.0.clone())
    })
}

/// The template requests so much, as it was applied.
fn sized(mut world: Observed, memory: &str) -> Observed {
    change(&mut world.stateful_set, |set| {
        set.spec = with_memory(set, Quantity(memory.to_owned())).unwrap().spec;
    });
    as_applied(&mut world);
    world
}

/// The pod finds no room, since so many seconds.
fn without_room(mut world: Observed, seconds: i64) -> Observed {
    let since = at(now().as_second() - seconds).to_string();
    let refused = json!({"type": "PodScheduled", "status": "False", "lastTransitionTime": since});
    let mut pod = world.pod.take().unwrap();
    let set = world.stateful_set.ours().unwrap();
    let template = set.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
    let spec = pod.spec.as_mut().unwrap();
    spec.containers.clone_from(&template.containers);
    spec.node_name = None;
    world.pod = Some(pod_with(pod, json!({"phase": "Pending", "conditions": [refused]})));
    world
}

#[test]
fn a_new_template_requests_three_quarters_of_the_machines_memory_unless_the_spec_says_otherwise() {
    let new = |spec: Value, memory: Option<&str>| {
        let mut world = settled_as(spec);
        (world.stateful_set, world.pod) = (Child::Absent, None);
        if let Some(memory) = memory {
            world = on_machine_with(world, memory);
        }
        requested(&plan(&world, now())).unwrap()
    };
    assert_eq!(new(json!({}), Some("16Gi")), "12288Mi");
    assert_eq!(new(json!({}), Some("15742516Ki")), "11530Mi");
    assert_eq!(new(json!({}), Some("2Gi")), "256Mi", "little is left for others there");
    assert_eq!(new(json!({}), None), "256Mi", "the kubelet has not reported");
    let named = json!({"resources": {"requests": {"memory": "8Gi"}}});
    assert_eq!(new(named, Some("16Gi")), "8Gi");
    let cpu = json!({"resources": {"requests": {"cpu": "2"}}});
    assert_eq!(new(cpu, Some("16Gi")), "12288Mi");
}

#[test]
fn a_pod_that_runs_is_left_with_what_it_requests() {
    assert_eq!(said(&on_machine_with(settled(), "16Gi")), "[] as wanted");
    assert_eq!(said(&on_machine_with(sized(settled(), "24576Mi"), "16Gi")), "[] as wanted");
}

#[test]
fn a_pod_that_moves_requests_the_memory_of_the_machine_that_it_moves_to() {
    let mut world = sized(with_successor(type_left()), "24576Mi");
    has(&mut world.core_nodes[1], "16Gi");
    let planned = plan(&world, now());
    assert_eq!(line(&planned), "[restore set set-uid x1] RestartPending", "smaller is no lack of room");
    assert_eq!(requested(&planned).unwrap(), "12288Mi");
    let mut world = sized(world, "12Gi");
    let moves = "[unlabel ip-10-0-0-1 ip-10-0-0-1-uid, label ip-10-0-0-2, moved";
    assert!(said(&world).starts_with(moves), "{}", said(&world));
    has(&mut world.core_nodes[1], "64Gi");
    assert_eq!(requested(&plan(&world, now())).unwrap(), "49152Mi");
}

#[test]
fn a_pod_that_finds_no_room_comes_anew_with_a_smaller_request() {
    let lost = |template: &str, seconds: i64| {
        without_room(sized(on_machine_with(settled(), "16Gi"), template), seconds)
    };
    let larger = plan(&lost("24576Mi", 5), now());
    assert_eq!(line(&larger), "[restore set set-uid x1] RestartPending", "of a larger machine");
    assert_eq!(requested(&larger).unwrap(), "12288Mi");
    let mut written = sized(lost("24576Mi", 5), "12288Mi");
    assert_eq!(said(&written), "[] AwaitingPod", "of this template: a webhook has changed it");
    let revised = |set: &mut StatefulSet| set.status.as_mut().unwrap().update_revision = Some("2".to_owned());
    change(&mut written.stateful_set, revised);
    written.pod.as_mut().unwrap().labels_mut().insert(REVISION_LABEL.to_owned(), "1".to_owned());
    let replaced = "[replace orders-0 pod-uid: no machine has room for the memory that the pod requests by \
        default] RestartPending";
    assert_eq!(said(&written), replaced);
    assert_eq!(said(&lost("12288Mi", 59)), "[] AwaitingPod");
    let others = plan(&lost("12288Mi", 60), now());
    assert_eq!(requested(&others).unwrap(), "256Mi", "DaemonSets request the rest");
    let least = without_room(on_machine_with(settled(), "16Gi"), 600);
    assert_eq!(said(&least), "[] AwaitingPod", "and it is not enlarged again");
}

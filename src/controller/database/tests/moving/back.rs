//! The way back: the machine that a database has left is kept until the engine answers on the new one.

use pretty_assertions::assert_eq;

use super::*;

/// The database has moved to the second machine, and its engine does not answer there: its pod is as `state`
/// says.
fn left(mut world: Observed, state: Value) -> Observed {
    world.labelled = vec![core_node("ip-10-0-0-2", true)];
    let status = json!({"phase": "Running", "containerStatuses": [container_status(state)]});
    let mut pod = pod_with(world.pod.take().unwrap(), status);
    pod.spec.as_mut().unwrap().node_name = Some("ip-10-0-0-2".to_owned());
    world.pod = Some(pod);
    world
}

fn without_image() -> Value {
    json!({"waiting": {"reason": "ImagePullBackOff"}})
}

/// The second machine is lost; `fenced` is what is said of the fence around it.
fn second_lost(world: &mut Observed, fenced: (&str, &str)) {
    let conditions = json!([
        condition("Ready", "False", "InstanceLost", "m"),
        condition("Initialized", "True", "AsExpected", "m"),
        condition("Lost", "True", "InstanceLost", "instance i-2 is terminated"),
        condition("Fenced", fenced.0, fenced.1, "what EC2 shows"),
    ]);
    world.nodes[1] = successor(world, conditions);
}

const BACK: &str = "[unlabel ip-10-0-0-2 ip-10-0-0-2-uid, label ip-10-0-0-1, moved from Node orders-gqmgm-2 \
    to Node orders-gqmgm-1: ";

#[test]
fn the_machine_that_was_left_is_kept_until_the_engine_answers_on_the_new_one() {
    let world = left(with_successor(type_left()), without_image());
    assert_eq!(said(&world), "[] EngineFailing");
    let world = left(with_successor(type_left()), json!({"running": {}}));
    assert_eq!(said(&world), "[] EngineStarting");
    let mut answering = left(with_successor(type_left()), json!({"running": {}}));
    answering.pod.as_mut().unwrap().status = settled().pod.unwrap().status;
    assert_eq!(said(&answering), "[delete orders-gqmgm-1 orders-gqmgm-1-uid] as wanted");
}

#[test]
fn a_machine_on_which_the_pod_does_not_end_is_no_way_back() {
    let mut world = with_successor(type_left());
    world.labelled = vec![core_node("ip-10-0-0-2", true)];
    let silence = i64::try_from(world.timing.kubelet_silence_timeout.as_secs()).unwrap();
    deleting(world.pod.as_mut().unwrap(), now().as_second() - silence + 1);
    let kept = plan(&world, now());
    assert_eq!(line(&kept), "[] Moving");
    assert!(kept.requeue.is_some(), "no event says that it is overdue");
    deleting(world.pod.as_mut().unwrap(), now().as_second() - silence);
    let ended = "[delete orders-gqmgm-1 orders-gqmgm-1-uid] Moving";
    assert_eq!(said(&world), ended, "the end of its machine ends it");
}

#[test]
fn a_type_that_returns_before_the_engine_answers_brings_the_database_back_at_once() {
    let wanted = edited(json!({"instanceTypes": ["r7i.large"]}));
    let mut world = left(with_successor(wanted), without_image());
    let cause = "its type m7i.large is no longer in spec.instanceTypes";
    let replaced = format!(
        "replace orders-0 pod-uid: pod orders-0 moves from Kubernetes node ip-10-0-0-2 to ip-10-0-0-1: \
            {cause}] Moving"
    );
    assert_eq!(said(&world), format!("{BACK}{cause}, {replaced}"));
    world.labelled = vec![core_node("ip-10-0-0-1", true)];
    world.pod = None;
    let next = "[delete orders-gqmgm-2 orders-gqmgm-2-uid, update orders-gqmgm-1 ";
    assert!(said(&world).starts_with(next), "its Node follows the spec: {}", said(&world));
}

#[test]
fn a_new_machine_that_is_lost_before_the_engine_answers_is_left_for_the_former_one_once_it_is_fenced() {
    let mut world = left(with_successor(type_left()), without_image());
    second_lost(&mut world, ("False", "Fencing"));
    assert_eq!(said(&world), "[] Fencing");
    second_lost(&mut world, ("True", "AsExpected"));
    assert_eq!(said(&world), format!("{BACK}instance i-2 is terminated] Moving"));
    (world.labelled, world.pod) = (vec![core_node("ip-10-0-0-1", true)], None);
    let next = "[delete orders-gqmgm-2 orders-gqmgm-2-uid] AwaitingPod";
    assert_eq!(said(&world), next, "then the type is moved away from anew");
    // The Node of the new machine is deleted by hand: nothing is lost, and the way back is open.
    let mut deleted = left(with_successor(type_left()), without_image());
    deleting(&mut deleted.nodes[1], 1);
    assert!(said(&deleted).starts_with(BACK), "{}", said(&deleted));
}

#[test]
fn a_former_machine_that_cannot_take_the_database_back_is_released() {
    let released = "[delete orders-gqmgm-1 orders-gqmgm-1-uid";
    let mut lost_too = left(lost(with_successor(type_left()), None), without_image());
    assert_eq!(said(&lost_too), format!("{released}] EngineFailing"));
    second_lost(&mut lost_too, ("False", "Fencing"));
    let third = "create node 3 orders-gqmgm-3 in us-east-1b for orders-gqmgm-2: instance i-2 is terminated";
    assert!(said(&lost_too).starts_with(&format!("{released}, {third}")), "{}", said(&lost_too));
    // Neither machine is wanted any more: the one that was left does not keep the next one from coming.
    let neither = left(with_successor(edited(json!({"instanceTypes": ["c7i.large"]}))), without_image());
    assert!(said(&neither).starts_with(released), "{}", said(&neither));
}

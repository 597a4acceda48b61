//! How one machine takes the place of another: planned, or because it is lost.

mod back;
mod departing;
mod recurring;
mod repaired;
mod sizing;

use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::api::node::{ReplacementCause, ReplacementNeeded};
use crate::controller::database::plan::machines;

/// The settled world after its machine's type has left the list.
fn type_left() -> Observed {
    edited(json!({"instanceTypes": ["m7i.large"]}))
}

/// The second Node, as far as these conditions say.
fn successor(world: &Observed, conditions: Value) -> Node {
    let status = json!({
        "observedGeneration": 1, "conditions": conditions, "instanceID": "i-2",
        "providerID": "aws:///us-east-1b/i-2",
        "coreNodeName": "ip-10-0-0-2", "instanceType": "m7i.large", "zone": ZONE,
    });
    node_with(build::node(&world.database, &world.names, 2, Some(ZONE)), status)
}

/// The same world with a second Node that is ready, and the record of what it is for.
pub(super) fn with_successor(mut world: Observed) -> Observed {
    let second = successor(&world, good(&["Ready", "Launched", "Registered", "Initialized"]));
    world.nodes.push(second);
    world.core_nodes.push(core_node("ip-10-0-0-2", false));
    let status = world.database.status.as_mut().unwrap();
    status.node_ordinal = Some(2);
    status.replacement = serde_json::from_value(json!({
        "from": "orders-gqmgm-1", "to": "orders-gqmgm-2", "cause": "the cause",
        "startedAt": "2023-01-01T00:00:00Z",
    }))
    .unwrap();
    world
}

/// The first machine is lost; `fenced` is what is said of the fence around it.
fn lost(mut world: Observed, fenced: Option<(&str, &str)>) -> Observed {
    let mut conditions = vec![
        condition("Ready", "False", "InstanceLost", "instance i-1 is terminated"),
        condition("Initialized", "True", "AsExpected", "m"),
        condition("Lost", "True", "InstanceLost", "instance i-1 is terminated"),
    ];
    conditions.extend(fenced.map(|(status, reason)| condition("Fenced", status, reason, "what EC2 shows")));
    let status = json!({"observedGeneration": 1, "conditions": conditions, "coreNodeName": "ip-10-0-0-1",
    "instanceType": "r7i.large", "zone": ZONE});
    world.nodes[0] = node_with(world.nodes[0].clone(), status);
    world
}

/// What the Node controller reports of a machine whose Kubernetes node is being deleted.
fn kubernetes_node_deleted() -> ReplacementNeeded {
    ReplacementNeeded {
        cause: ReplacementCause::KubernetesNodeDeleted,
        message: "another client deletes it".to_owned(),
    }
}

fn said(world: &Observed) -> String {
    line(&plan(world, now()))
}

#[test]
fn a_type_that_leaves_the_list_asks_for_another_machine_and_the_old_one_goes_on_serving() {
    let world = type_left();
    let asked = "[create node 2 orders-gqmgm-2 in us-east-1b for orders-gqmgm-1: its type r7i.large is no \
        longer in spec.instanceTypes] AwaitingNode";
    assert_eq!(said(&world), asked);
    let mut restarted = type_left();
    change(&mut restarted.stateful_set, |set| set.spec.as_mut().unwrap().replicas = Some(0));
    let row = "[create node 2 orders-gqmgm-2 in us-east-1b for orders-gqmgm-1: its type r7i.large is no \
        longer in spec.instanceTypes, apply set set-uid x1] AwaitingPod";
    assert_eq!(said(&restarted), row, "the engine is kept up on the old machine all the while");
}

#[test]
fn without_capacity_the_old_machine_goes_on_serving_and_the_condition_names_what_was_refused() {
    let mut world = with_successor(type_left());
    world.nodes[1] = successor(
        &world,
        json!([condition(
            "Ready",
            "False",
            "InsufficientCapacity",
            "EC2 has none of m7i.large in us-east-1b"
        )]),
    );
    let plan = plan(&world, now());
    assert_eq!(line(&plan), "[] InsufficientCapacity");
    let message = plan.waiting.unwrap().message();
    assert!(
        message.contains("which serves until then")
            && message.ends_with(
                "EC2 has none of m7i.large in \
        us-east-1b"
            ),
        "{message}"
    );
}

#[test]
fn the_database_moves_once_the_new_machine_is_proven() {
    let world = with_successor(type_left());
    let moves = "[unlabel ip-10-0-0-1 ip-10-0-0-1-uid, label ip-10-0-0-2, moved from Node orders-gqmgm-1 to \
                 Node orders-gqmgm-2: the cause, replace orders-0 pod-uid: pod orders-0 moves from \
                 Kubernetes node ip-10-0-0-1 to ip-10-0-0-2: the cause] Moving";
    assert_eq!(said(&world), moves);
    let mut left = with_successor(type_left());
    left.labelled = vec![core_node("ip-10-0-0-2", true)];
    deleting(left.pod.as_mut().unwrap(), now().as_second() + 60);
    assert_eq!(said(&left), "[] Moving", "the old machine is the way back");
    left.pod = None;
    assert_eq!(said(&left), "[] AwaitingPod");
    left.pod = settled().pod;
    left.pod.as_mut().unwrap().spec.as_mut().unwrap().node_name = Some("ip-10-0-0-2".to_owned());
    let released = "[delete orders-gqmgm-1 orders-gqmgm-1-uid] as wanted";
    assert_eq!(said(&left), released, "until the engine answers on the new one");
    deleting(&mut left.nodes[0], 1);
    assert_eq!(said(&left), "[] as wanted", "what is left of the old machine is not awaited");
}

#[test]
fn a_machine_without_room_for_the_pod_is_not_moved_to() {
    let mut world = with_successor(type_left());
    world.core_nodes[1].status =
        Some(serde_json::from_value(json!({"allocatable": {"cpu": "50m", "memory": "1Gi"}})).unwrap());
    let kept = plan(&world, now());
    assert_eq!(line(&kept), "[] stalled AwaitingNode");
    assert_eq!(kept.requeue, Some(world.timing.instance_sync_interval), "no Kubernetes node wakes it");
    let message = kept.waiting.unwrap().message();
    assert!(message.contains("50m of cpu") && message.contains("spec.instanceTypes"), "{message}");
}

#[test]
fn a_move_that_was_interrupted_anywhere_is_finished() {
    let between = |labelled: Vec<CoreNode>| {
        let mut world = with_successor(type_left());
        world.labelled = labelled;
        said(&world)
    };
    let rest = "replace orders-0 pod-uid: pod orders-0 moves from Kubernetes node ip-10-0-0-1 to \
        ip-10-0-0-2: the cause] Moving";
    let unlabelled = between(Vec::new());
    assert_eq!(
        unlabelled,
        format!(
            "[label ip-10-0-0-2, moved from Node orders-gqmgm-1 to Node orders-gqmgm-2: the cause, {rest}"
        )
    );
    let both = between(vec![core_node("ip-10-0-0-1", true), core_node("ip-10-0-0-2", true)]);
    assert!(both.contains("unlabel ip-10-0-0-1") && both.ends_with(rest), "{both}");
    let labelled = between(vec![core_node("ip-10-0-0-2", true)]);
    assert_eq!(labelled, format!("[{rest}"));
}

#[test]
fn a_pod_that_moves_comes_back_from_the_newest_template() {
    let mut world = with_successor(edited(json!({"instanceTypes": ["m7i.large"],
    "engine": {"type": "questdb", "version": "9.3.5"}})));
    assert_eq!(said(&world), "[apply config config-uid, apply set set-uid x1] RestartPending");
    let profile = world.profile.clone().unwrap();
    world.config_map =
        ours(with_uid(build::config_map(&world.database, &world.names, &profile).unwrap(), "config-uid"));
    let mut set = seen(with_uid(build::stateful_set(&world.database, &world.names, &profile, 1), "set-uid"));
    set.metadata.generation = Some(6);
    world.stateful_set = ours(set);
    assert!(
        !said(&world).contains("replace orders-0"),
        "a pod deleted now would come back from the old template: {}",
        said(&world)
    );
}

#[test]
fn a_type_that_returns_to_the_list_ends_the_replacement() {
    let world = with_successor(settled());
    assert_eq!(said(&world), "[delete orders-gqmgm-2 orders-gqmgm-2-uid] as wanted");
    let mut leaving = with_successor(settled());
    deleting(&mut leaving.nodes[1], 1);
    assert_eq!(said(&leaving), "[] as wanted");
}

#[test]
fn a_successor_that_is_lost_or_unfit_is_taken_down_and_another_follows() {
    let mut world = with_successor(type_left());
    let conditions = json!([
        condition("Ready", "False", "InstanceLost", "m"),
        condition("Lost", "True", "InstanceLost", "it is gone")
    ]);
    world.nodes[1] = successor(&world, conditions);
    assert_eq!(said(&world), "[delete orders-gqmgm-2 orders-gqmgm-2-uid] AwaitingNode");
    deleting(&mut world.nodes[1], 1);
    assert_eq!(said(&world), "[] AwaitingNode", "never a third while the first one serves");
    let elsewhere = with_successor(edited(json!({"instanceTypes": ["c7i.large"]})));
    assert_eq!(
        said(&elsewhere),
        "[delete orders-gqmgm-2 orders-gqmgm-2-uid] AwaitingNode",
        "neither has a wanted type"
    );
    let mut without = lost(with_successor(settled()), Some(("True", "AsExpected")));
    without.nodes[1] = successor(
        &without,
        json!([condition("Ready", "False", "KubernetesNodeDeleted", "another client deletes it")]),
    );
    without.nodes[1].status.as_mut().unwrap().replacement_needed = Some(kubernetes_node_deleted());
    assert_eq!(
        said(&without),
        "[delete orders-gqmgm-2 orders-gqmgm-2-uid] AwaitingNode",
        "it can never become ready"
    );
}

#[test]
fn the_boot_of_another_machine_is_hidden_behind_the_fence_of_a_lost_one() {
    for fenced in [None, Some(("False", "AsExpected")), Some(("True", "AsExpected"))] {
        let asked = "[create node 2 orders-gqmgm-2 in us-east-1b for orders-gqmgm-1: instance i-1 is \
            terminated] InstanceLost";
        assert_eq!(said(&lost(settled(), fenced)), asked);
    }
}

/// What keeps a spec from being carried out: the reason, and the fault.
type Trouble = (&'static str, fn(&mut Observed));

const TROUBLES: [Trouble; 5] = [
    ("InvalidSpec", |world| {
        world.database.spec.config = serde_json::from_value(json!({"pg.password": "x"})).expect("settings");
        world.profile = engine::profile(&world.database.spec.engine, &world.database.spec.config);
    }),
    ("InvalidSpec", |world| world.database.spec.instance_types = Vec::new()),
    ("NameConflict", |world| world.service = Child::Foreign),
    ("CredentialsUnreadable", |world| world.credentials = Credentials::Read(Child::Absent)),
    ("VolumeLost", |world| change(&mut world.volume, |volume| deleting(volume, 1))),
];

#[test]
fn a_lost_machine_is_replaced_whatever_else_is_wrong() {
    for (reason, trouble) in TROUBLES {
        let mut world = lost(settled(), Some(("True", "AsExpected")));
        trouble(&mut world);
        let asked = "[create node 2 orders-gqmgm-2 in us-east-1b for orders-gqmgm-1: instance i-1 is \
            terminated] stalled";
        assert_eq!(said(&world), format!("{asked} {reason}"));
        let Some(Action::CreateNode(_, node, _)) = plan(&world, now()).actions.pop() else { panic!() };
        assert_eq!(node.spec.instance_types, settled().database.spec.instance_types, "as it was decided");

        let mut ready = lost(with_successor(settled()), Some(("True", "AsExpected")));
        trouble(&mut ready);
        let moves = "[unlabel ip-10-0-0-1 ip-10-0-0-1-uid, label ip-10-0-0-2, moved from Node \
            orders-gqmgm-1 to Node orders-gqmgm-2: the cause] stalled";
        assert_eq!(said(&ready), format!("{moves} {reason}"), "and the pod follows");
        let mut unfenced = lost(with_successor(settled()), Some(("False", "AsExpected")));
        trouble(&mut unfenced);
        assert_eq!(said(&unfenced), format!("[] stalled {reason}"));

        let mut unlabelled = settled();
        unlabelled.labelled = Vec::new();
        trouble(&mut unlabelled);
        assert_eq!(said(&unlabelled), format!("[label ip-10-0-0-1 ip-10-0-0-1-uid] stalled {reason}"));
    }
}

#[test]
fn a_machine_that_serves_is_not_left_while_the_spec_cannot_be_carried_out() {
    for (reason, trouble) in TROUBLES {
        let mut world = with_successor(type_left());
        trouble(&mut world);
        assert_eq!(said(&world), format!("[] stalled {reason}"));
        let mut deleted = settled();
        deleting(&mut deleted.nodes[0], 1);
        trouble(&mut deleted);
        assert_eq!(said(&deleted), format!("[] stalled {reason}"), "its label keeps it until then");
    }
    let foreign: [fn(&mut Observed); 3] = [
        |world| world.stateful_set = Child::Foreign,
        |world| world.volume = Child::Foreign,
        |world| world.node_name_taken = Some("orders-gqmgm-2".to_owned()),
    ];
    for foreign in foreign {
        let mut world = lost(settled(), Some(("True", "AsExpected")));
        foreign(&mut world);
        assert_eq!(said(&world), "[] stalled NameConflict");
    }
}

#[test]
fn nothing_moves_before_a_lost_machine_is_fenced() {
    let unfenced = lost(with_successor(settled()), Some(("False", "AsExpected")));
    let unfenced = plan(&unfenced, now());
    assert!(unfenced.actions.is_empty(), "{}", line(&unfenced));
    assert!(unfenced.waiting.unwrap().message().contains(
        "nothing moves before Node orders-gqmgm-1 is \
        fenced: what EC2 shows"
    ));
    let mut without_pod = lost(with_successor(settled()), None);
    without_pod.pod = None;
    assert_eq!(said(&without_pod), "[] InstanceLost", "not even when another client has deleted the pod");
}

#[test]
fn a_fenced_machine_is_left_at_once_and_its_pod_is_the_node_controllers_affair() {
    let fenced = lost(with_successor(settled()), Some(("True", "AsExpected")));
    let moves = "[unlabel ip-10-0-0-1 ip-10-0-0-1-uid, label ip-10-0-0-2, moved from Node orders-gqmgm-1 to \
            Node orders-gqmgm-2: the cause] Moving";
    assert_eq!(said(&fenced), moves);
    let mut left = lost(with_successor(settled()), Some(("True", "AsExpected")));
    left.labelled = vec![core_node("ip-10-0-0-2", true)];
    left.pod = None;
    assert_eq!(said(&left), "[delete orders-gqmgm-1 orders-gqmgm-1-uid] AwaitingPod");
}

#[test]
fn a_node_or_kubernetes_node_that_another_client_deletes_is_moved_away_from() {
    let mut deleted = settled();
    deleting(&mut deleted.nodes[0], 1);
    let asked = |cause: &str| {
        format!(
            "[create node 2 orders-gqmgm-2 in us-east-1b for orders-gqmgm-1: \
        {cause}] AwaitingNode"
        )
    };
    assert_eq!(said(&deleted), asked("Node orders-gqmgm-1 is being deleted"));
    let mut core = settled();
    deleting(&mut core.core_nodes[0], 1);
    assert_eq!(said(&core), "[] as wanted", "the Node controller says why it goes");
    let status = core.nodes[0].status.as_mut().unwrap();
    status.conditions[0].reason = "KubernetesNodeDeleted".to_owned();
    (status.conditions[0].status, status.conditions[0].message) =
        ("False".to_owned(), "another client deletes it".to_owned());
    status.replacement_needed = Some(kubernetes_node_deleted());
    assert_eq!(
        said(&core),
        asked("another client deletes it").replace("AwaitingNode", "KubernetesNodeDeleted")
    );
    let mut emptied = settled();
    deleting(&mut emptied.nodes[0], 1);
    (emptied.labelled, emptied.pod) = (Vec::new(), None);
    assert_eq!(
        said(&emptied),
        asked("Node orders-gqmgm-1 is being deleted"),
        "and nothing is started on a machine that is being emptied"
    );
}

#[test]
fn before_there_is_a_disk_a_machine_that_goes_is_awaited() {
    let mut world = lost(settled(), None);
    world.volume = Child::Absent;
    world.database.status.as_mut().unwrap().volume_name = None;
    (world.stateful_set, world.pod) = (Child::Absent, None);
    assert!(said(&world).starts_with("[delete orders-gqmgm-1 orders-gqmgm-1-uid"), "{}", said(&world));
    deleting(&mut world.nodes[0], 1);
    assert!(!said(&world).contains("create node"), "{}", said(&world));
}

#[test]
fn a_third_node_is_created_only_for_a_lost_machine_while_the_one_before_it_is_still_going() {
    let mut world = with_successor(edited(json!({"instanceTypes": ["c7i.large"]})));
    world.labelled = vec![core_node("ip-10-0-0-2", true)];
    world.pod.as_mut().unwrap().spec.as_mut().unwrap().node_name = Some("ip-10-0-0-2".to_owned());
    deleting(&mut world.nodes[0], 1);
    let plan = plan(&world, now());
    assert_eq!(line(&plan), "[] AwaitingNode");
    assert!(plan.waiting.unwrap().message().contains("begins when Node orders-gqmgm-1 is gone"));
    let mut repaired = world.clone();
    repaired.nodes[1] = successor(
        &repaired,
        json!([
            condition("Ready", "False", "InstanceLost", "m"),
            condition("Initialized", "True", "AsExpected", "m"),
            condition("Lost", "True", "InstanceLost", "instance i-2 is terminated")
        ]),
    );
    let third = "[create node 3 orders-gqmgm-3 in us-east-1b for orders-gqmgm-2: instance i-2 is terminated";
    assert!(said(&repaired).starts_with(third), "{}", said(&repaired));
    // The first one was not deleted yet, and cannot serve: it is, with the same plan.
    repaired.nodes[0].metadata.deletion_timestamp = None;
    repaired.nodes[0].status.as_mut().unwrap().conditions.retain(|it| it.type_ != "Initialized");
    let both = format!("[delete orders-gqmgm-1 orders-gqmgm-1-uid, {}", &third[1..]);
    assert!(said(&repaired).starts_with(&both), "{}", said(&repaired));
    let third = ready_node(&world, 3);
    world.nodes.push(third);
    assert_eq!(machines::of(&world).unwrap().former.len() + 2, 3, "should there ever be three, one is left");
}

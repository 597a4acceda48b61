//! A machine that serves and must be left in good time: it was cordoned, or EC2 has scheduled an event.

use pretty_assertions::assert_eq;

use super::*;

/// What the Node controller reports of its machine.
fn departs(world: &mut Observed, ordinal: usize, cause: ReplacementCause) {
    let node = world.nodes[ordinal].status.as_mut().unwrap();
    node.replacement_needed = Some(ReplacementNeeded { cause, message: "the cause".to_owned() });
    let reason = if cause == ReplacementCause::Cordoned { "Cordoned" } else { "EventScheduled" };
    for ready in node.conditions.iter_mut().filter(|it| it.type_ == "Ready") {
        (ready.status, ready.reason) = ("False".to_owned(), reason.to_owned());
    }
}

fn cordon(world: &mut Observed, ordinal: usize) {
    world.core_nodes[ordinal].spec.get_or_insert_default().unschedulable = Some(true);
}

#[test]
fn a_cordoned_machine_and_one_with_an_event_are_moved_away_from_as_planned() {
    for cause in [ReplacementCause::Cordoned, ReplacementCause::EventScheduled] {
        let mut world = settled();
        departs(&mut world, 0, cause);
        let created = "[create node 2 orders-gqmgm-2 in us-east-1b for orders-gqmgm-1: the cause] ";
        assert!(said(&world).starts_with(created), "{}", said(&world));
        let mut ready = with_successor(world);
        let moves = "[unlabel ip-10-0-0-1 ip-10-0-0-1-uid, label ip-10-0-0-2, moved from Node \
            orders-gqmgm-1 to Node orders-gqmgm-2: the cause";
        assert!(said(&ready).starts_with(moves), "{}", said(&ready));
        // Uncordoned, or canceled, before that.
        ready.nodes[0] = settled().nodes[0].clone();
        assert_eq!(said(&ready), "[delete orders-gqmgm-2 orders-gqmgm-2-uid] as wanted");
    }
}

#[test]
fn nothing_moves_to_a_cordoned_machine_and_the_message_says_how_to_go_on() {
    let mut world = settled();
    departs(&mut world, 0, ReplacementCause::Cordoned);
    let mut world = with_successor(world);
    world.nodes[1] = successor(
        &world,
        json!([
            condition("Ready", "False", "Cordoned", "run: kubectl uncordon ip-10-0-0-2"),
            condition("Initialized", "True", "AsExpected", "m"),
        ]),
    );
    cordon(&mut world, 1);
    let waits = plan(&world, now());
    assert_eq!(line(&waits), "[] Cordoned", "it is kept, and the old one serves");
    assert!(waits.waiting.unwrap().message().ends_with("run: kubectl uncordon ip-10-0-0-2"));
}

#[test]
fn a_cordoned_machine_is_no_way_back() {
    let mut world = with_successor(edited(json!({"instanceTypes": ["m7i.large", "r7i.large"]})));
    departs(&mut world, 1, ReplacementCause::Cordoned);
    cordon(&mut world, 0);
    world.labelled = vec![core_node("ip-10-0-0-2", true)];
    world.pod = None;
    assert!(said(&world).starts_with("[delete orders-gqmgm-1 orders-gqmgm-1-uid"), "{}", said(&world));
    world.nodes[1] = ready_second(&world);
    assert_eq!(said(&world), "[] AwaitingPod", "kept until the engine answers: it may be uncordoned");
}

#[test]
fn the_database_goes_back_from_a_cordoned_machine_and_not_for_an_announced_event() {
    let on_second = |cause| {
        let mut world = with_successor(edited(json!({"instanceTypes": ["m7i.large", "r7i.large"]})));
        departs(&mut world, 1, cause);
        world.labelled = vec![core_node("ip-10-0-0-2", true)];
        world.pod = None;
        said(&world)
    };
    let back = on_second(ReplacementCause::Cordoned);
    assert!(back.contains("label ip-10-0-0-1") && !back.contains("delete"), "{back}");
    // The first machine may have an event, too, which is reported again once the database is there.
    let stays = on_second(ReplacementCause::EventScheduled);
    assert!(stays.starts_with("[delete orders-gqmgm-1 orders-gqmgm-1-uid"), "{stays}");
    assert!(!stays.contains("label ip-10-0-0-1"), "{stays}");
}

fn ready_second(world: &Observed) -> Node {
    successor(world, good(&["Ready", "Launched", "Registered", "Initialized"]))
}

#[test]
fn a_machine_that_serves_is_not_left_for_it_while_the_spec_cannot_be_carried_out() {
    for (reason, trouble) in TROUBLES {
        let mut world = settled();
        departs(&mut world, 0, ReplacementCause::Cordoned);
        trouble(&mut world);
        assert_eq!(said(&world), format!("[] stalled {reason}"));
    }
}

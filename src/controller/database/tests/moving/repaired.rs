//! A lost machine whose successor cannot take its place and does not end, and one that is paused.

use pretty_assertions::assert_eq;

use super::*;
use crate::api::Reason;

#[test]
fn a_lost_machine_is_replaced_although_its_successor_was_lost_and_does_not_end() {
    let mut world = lost(with_successor(settled()), Some(("True", "AsExpected")));
    let conditions = json!([
        condition("Ready", "False", "InstanceLost", "m"),
        condition("Lost", "True", "InstanceLost", "it is gone")
    ]);
    world.nodes[1] = successor(&world, conditions.clone());
    assert_eq!(said(&world), "[delete orders-gqmgm-2 orders-gqmgm-2-uid] AwaitingNode");
    deleting(&mut world.nodes[1], 1);
    let third = plan(&world, now());
    let created =
        "[create node 3 orders-gqmgm-3 in us-east-1b for orders-gqmgm-1: instance i-1 is terminated] ";
    assert!(line(&third).starts_with(created), "{}", line(&third));
    let Some(Action::CreateNode(_, _, Some(replacement))) = third.actions.last() else { panic!() };
    assert_eq!(replacement.leaving, ["orders-gqmgm-2"], "the status names every machine that may live");
    let mut next = successor(&world, conditions);
    next.metadata.name = Some("orders-gqmgm-3".to_owned());
    next.metadata.uid = Some("orders-gqmgm-3-uid".to_owned());
    deleting(&mut next, 1);
    world.nodes.push(next);
    assert_eq!(said(&world), "[] AwaitingNode", "and never a second one beside that");
}

#[test]
fn a_lost_machine_can_be_paused() {
    let mut world = lost(with_successor(edited(json!({"running": false}))), Some(("False", "AsExpected")));
    change(&mut world.stateful_set, |set| set.spec.as_mut().unwrap().replicas = Some(0));
    let both = "[unlabel ip-10-0-0-1 ip-10-0-0-1-uid, delete orders-gqmgm-1 orders-gqmgm-1-uid, delete \
        orders-gqmgm-2 orders-gqmgm-2-uid] AwaitingNode";
    assert_eq!(said(&world), both, "whatever its pod says");
    assert_eq!(plan(&world, now()).waiting.unwrap().reason(), Reason::AwaitingNode);
}

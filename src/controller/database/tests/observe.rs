//! The ordinal of the next Node, and that what is observed can be printed.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::controller::database::observe::child::child;
use crate::controller::database::ordinal::next_ordinal;

#[test]
fn an_ordinal_is_used_again_until_its_node_was_seen() {
    let rows = [
        (json!({}), 1),
        (json!({"nodeOrdinal": 1}), 1),
        (json!({"nodeOrdinal": 1, "nodeName": "orders-gqmgm-1"}), 2),
        (json!({"nodeOrdinal": 2, "nodeName": "orders-gqmgm-1"}), 2),
        (json!({"nodeOrdinal": 2, "nodeName": "orders-gqmgm-2"}), 3),
    ];
    for (status, expected) in rows {
        let database = database(json!({}), status.clone());
        assert_eq!(next_ordinal(&database, &Names::of(&database), &[]), expected, "{status}");
    }
}

#[test]
fn an_ordinal_is_beyond_every_node_that_there_is_whatever_the_status_has_forgotten() {
    let world = settled();
    let nodes = [ready_node(&world, 2), ready_node(&world, 10)];
    for (status, expected) in
        [(json!({}), 11), (json!({"nodeOrdinal": 1}), 11), (json!({"nodeOrdinal": 12}), 12)]
    {
        let database = database(json!({}), status.clone());
        assert_eq!(next_ordinal(&database, &Names::of(&database), &nodes), expected, "{status}");
    }
}

#[test]
fn nodes_are_told_apart_by_their_ordinals_as_numbers() {
    let mut world = settled();
    world.nodes = vec![ready_node(&world, 9), ready_node(&world, 10), ready_node(&world, 2)];
    let names: Vec<String> = world.by_ordinal().into_iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["orders-gqmgm-2", "orders-gqmgm-9", "orders-gqmgm-10"]);
}

#[test]
fn what_is_observed_can_be_printed_without_the_password() {
    let printed = format!("{:?}", settled());
    assert!(!printed.contains(Password::fixed().expose()), "{printed}");
    // How a byte string would print it.
    assert!(!printed.contains("97, 98, 99, 100"), "{printed}");
}

#[test]
fn an_object_without_an_owner_is_that_of_a_deleted_database_by_its_uid_and_of_no_other() {
    let node = ready_node(&settled(), 1);
    let mut orphaned = node.clone();
    orphaned.metadata.owner_references = None;
    let mut unlabelled = orphaned.clone();
    unlabelled.metadata.labels = None;
    let living = database(json!({}), json!({}));
    let mut deleted = living.clone();
    deleting(&mut deleted, 1);
    let mut another = deleted.clone();
    another.metadata.uid = Some("of-another".to_owned());
    for (database, owned, without_owner) in
        [(&living, true, false), (&deleted, true, true), (&another, false, false)]
    {
        let is_ours = |node: &Node| child(Some(node.clone()), database).ours().is_some();
        assert_eq!((is_ours(&node), is_ours(&orphaned)), (owned, without_owner));
        assert!(!is_ours(&unlabelled), "the label alone tells");
    }
}

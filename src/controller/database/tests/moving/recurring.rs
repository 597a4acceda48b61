//! Machine after machine is lost: the replacements pause.

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pretty_assertions::assert_eq;

use super::*;
use crate::api::node::Fence;

/// The settled world, its machine lost so many minutes after its launch, which followed so many others; and
/// the moment of the loss.
fn lost_after(minutes: i64, before: i32) -> (Observed, Timestamp) {
    let mut world = lost(settled(), Some(("True", "AsExpected")));
    let launched_at = now();
    let lost_at = after(launched_at, minutes);
    let node = &mut world.nodes[0];
    node.metadata.creation_timestamp = Some(Time(launched_at));
    node.spec.replaced_before = before;
    node.status.as_mut().unwrap().fence = Some(Fence {
        started_at: Time(lost_at),
        cause: "InstanceTerminated".to_owned(),
        since: Time(lost_at),
        message: "instance i-1 is terminated".to_owned(),
    });
    (world, lost_at)
}

fn after(time: Timestamp, minutes: i64) -> Timestamp {
    time.checked_add(SignedDuration::from_mins(minutes)).unwrap()
}

fn created(world: &Observed, now: Timestamp) -> Option<i32> {
    plan(world, now).actions.iter().find_map(|action| {
        let Action::CreateNode(_, node, _) = action else { return None };
        Some(node.spec.replaced_before)
    })
}

#[test]
fn each_loss_soon_after_a_launch_pauses_the_next_replacement_longer() {
    for (before, minutes) in [(0, 0), (1, 1), (2, 5), (3, 15), (4, 60), (9, 60)] {
        let (world, lost_at) = lost_after(10, before);
        let due = after(lost_at, minutes);
        if minutes > 0 {
            let early = plan(&world, due.checked_sub(SignedDuration::from_secs(1)).unwrap());
            let stalled = if before > 3 { "stalled " } else { "" };
            assert_eq!(line(&early), format!("[] {stalled}InstanceLost"), "after {before}");
            assert_eq!(early.requeue.map(|it| it.as_secs()), Some(1), "and nothing else wakes it");
        }
        assert_eq!(created(&world, due), Some(before + 1), "after {before}");
    }
}

#[test]
fn the_pause_ends_with_a_deleted_node_and_does_not_begin_after_an_hour_of_life() {
    let (mut world, lost_at) = lost_after(10, 9);
    assert_eq!(created(&world, lost_at), None);
    let message = plan(&world, lost_at).waiting.unwrap().message();
    assert!(message.contains("9 machines") && message.contains("delete node.freehold.dev/orders-gqmgm-1"));
    deleting(&mut world.nodes[0], 1);
    assert_eq!(created(&world, lost_at), Some(1), "a person wants another one");
    let (world, lost_at) = lost_after(60, 9);
    assert_eq!(created(&world, lost_at), Some(1), "the count begins anew");
    let (world, lost_at) = lost_after(59, 9);
    assert_eq!(created(&world, lost_at), None);
}

#[test]
fn what_serves_pauses_from_its_launch_and_what_a_person_requests_does_not() {
    let mut world = settled();
    world.nodes[0].metadata.creation_timestamp = Some(Time(now()));
    world.nodes[0].spec.replaced_before = 3;
    world.nodes[0].status.as_mut().unwrap().replacement_needed = Some(kubernetes_node_deleted());
    assert_eq!(created(&world, after(now(), 14)), None);
    assert!(line(&plan(&world, after(now(), 14))).ends_with("AwaitingNode"));
    assert_eq!(created(&world, after(now(), 15)), Some(4));
    assert_eq!(created(&world, after(now(), 74)), Some(4), "an hour without the pause");
    assert_eq!(created(&world, after(now(), 75)), Some(1), "the count begins anew");
    let mut edited = type_left();
    edited.nodes[0].metadata.creation_timestamp = Some(Time(now()));
    edited.nodes[0].spec.replaced_before = 9;
    assert_eq!(created(&edited, now()), Some(0));
}

#[test]
fn a_node_keeps_its_count_while_its_spec_follows_the_database() {
    let mut world = edited(json!({"instanceTypes": ["r7i.large", "m7i.large"]}));
    world.nodes[0].spec.replaced_before = 2;
    assert!(!said(&world).contains("replacedBefore"), "{}", said(&world));
}

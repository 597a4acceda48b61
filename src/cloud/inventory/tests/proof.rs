//! Look-ups by token, and the runs of empty answers that prove absence.

use std::time::Duration;

use pretty_assertions::assert_eq;

use super::*;
use crate::api::keys::ATTEMPT_TAG;
use crate::cloud::absence::{self, EmptyRun, TokenLookup};

#[tokio::test]
async fn an_instance_whose_tags_lag_is_found_by_its_token_and_the_newer_look_counts() {
    let mut world = World::new(Kind::Node);
    let mut wakes = world.inventory.wakes();
    let found = instance("i-1", "one", "t1", InstanceState::Pending);
    world.cloud.lock().by_token_only = vec![Instance { tags: BTreeMap::new(), ..found.clone() }];
    world.inventory.set_interest(Kind::Node, "one", awaiting("t1", 0));
    world.next_sync().await;
    let view = world.inventory.instances_of("one");
    assert_eq!(view.instances.iter().map(|i| i.id.0.as_str()).collect::<Vec<_>>(), ["i-1"]);
    assert_eq!(view.token_looked_up_at, Some(at(1)));
    assert_eq!(view.empty.by_token, None, "a hit proves nothing absent");
    assert_eq!(woken(&mut wakes), uids(&["one"]));

    // Now the tags are there, too: one instance, as the sync shows it.
    let running = Instance { state: InstanceState::Running, ..found };
    *world.cloud.lock() = Shown { instances: vec![running.clone()], ..Shown::default() };
    world.inventory.set_interest(Kind::Node, "one", Interest::Settled);
    world.next_sync().await;
    assert_eq!(world.inventory.instances_of("one").instances, [running]);
}

#[tokio::test]
async fn while_ec2_refuses_the_list_a_token_that_it_knows_is_found_and_one_that_it_does_not_proves_nothing() {
    let mut world = World::new(Kind::Node);
    for (uid, token) in [("one", "t1"), ("two", "t2")] {
        world.inventory.set_interest(Kind::Node, uid, awaiting(token, 0));
    }
    let other = instance("i-9", "nine", "t9", InstanceState::Running);
    world.cloud.lock().instances = vec![other.clone()];
    world.next_sync().await;
    let before = world.inventory.instances_of("two");
    let unhealthy = InstanceHealth { id: InstanceId("i-1".into()), impaired: true, events: Vec::new() };
    {
        let mut shown = world.cloud.lock();
        shown.instances = vec![other, instance("i-1", "one", "t1", InstanceState::Running)];
        shown.list_error = Some(unavailable());
        shown.unhealthy = vec![unhealthy.clone()];
    }
    let mut wakes = world.inventory.wakes();
    world.advance(Duration::from_secs(60));
    world.sync().await;
    let view = world.inventory.instances_of("one");
    assert_eq!((view.instances.len(), view.token_looked_up_at), (1, Some(at(61))));
    world.inventory.name_instance("one", Some((InstanceId("i-1".into()), "us-east-1a".to_owned())));
    world.advance(Duration::from_secs(60));
    world.sync().await;
    let view = world.inventory.instances_of("one");
    assert_eq!(view.unhealthy, [unhealthy], "EC2 answers what else it is asked");
    assert_eq!(world.inventory.instances_of("two"), before, "nothing more is known of it");
    assert_eq!(woken(&mut wakes), uids(&["one"]));
    assert_eq!(world.inventory.last_complete(Kind::Node), Some(at(1)));
}

#[tokio::test]
async fn tokens_are_looked_up_in_calls_of_at_most_two_hundred() {
    let mut world = World::new(Kind::Node);
    for n in 0..401 {
        world.inventory.set_interest(Kind::Node, &format!("node-{n}"), awaiting(&format!("t{n}"), 0));
    }
    world.next_sync().await;
    assert_eq!(world.cloud.count("tokens"), 3);
}

#[tokio::test]
async fn empty_syncs_and_look_ups_after_the_last_send_prove_absence_after_the_whole_window_and_not_before() {
    let mut world = World::new(Kind::Node);
    let mut wakes = world.inventory.wakes();
    world.inventory.set_interest(Kind::Node, "one", awaiting("t1", 0));
    let window = Timing::default().absence_window;
    let proof = |world: &World| {
        let empty = world.inventory.instances_of("one").empty;
        absence::prove(at(0), empty.by_tag, TokenLookup::Required(empty.by_token), window)
    };
    world.sync().await;
    assert_eq!(
        world.inventory.instances_of("one").empty,
        EmptyRuns::default(),
        "a look-up that started with the send does not count"
    );
    world.live(window).await;
    assert_eq!(proof(&world), None, "the first empty look-up was not before 4 s");
    assert_eq!(woken(&mut wakes), uids(&["one"]), "who awaits a proof is woken by each look-up");
    world.live(Duration::from_secs(9)).await;
    assert!(proof(&world).is_some());
    let empty = world.inventory.instances_of("one").empty;
    assert_eq!(empty.by_tag, Some(EmptyRun { first: at(4), last: at(1204) }));
    assert_eq!(empty.by_token, empty.by_tag);
}

#[tokio::test]
async fn another_send_begins_the_proof_anew_and_the_same_interest_does_not() {
    let mut world = World::new(Kind::Node);
    world.inventory.set_interest(Kind::Node, "one", awaiting("t1", 0));
    world.next_sync().await;
    world.inventory.set_interest(Kind::Node, "one", awaiting("t1", 0));
    assert_eq!(
        world.inventory.instances_of("one").empty.by_tag,
        Some(EmptyRun { first: at(1), last: at(1) })
    );
    world.inventory.set_interest(Kind::Node, "one", awaiting("t1", 1));
    assert_eq!(world.inventory.instances_of("one").empty, EmptyRuns::default());
    world.next_sync().await;
    world.inventory.set_interest(Kind::Node, "one", awaiting("t2", 1));
    assert_eq!(world.inventory.instances_of("one").empty, EmptyRuns::default());
}

#[tokio::test]
async fn a_hit_ends_the_proof_but_a_terminated_instance_of_an_earlier_attempt_is_none() {
    let mut world = World::new(Kind::Node);
    world.inventory.set_interest(Kind::Node, "one", awaiting("t2", 0));
    let former = instance("i-1", "one", "t1", InstanceState::Terminated);
    world.cloud.lock().instances = vec![former.clone()];
    world.next_sync().await;
    assert!(world.inventory.instances_of("one").empty.by_tag.is_some());
    assert_eq!(
        world.inventory.instances_of("one").instances,
        vec![former.clone()],
        "it is shown all the same"
    );

    for hit in [
        instance("i-1", "one", "t1", InstanceState::ShuttingDown),
        instance("i-1", "one", "t2", InstanceState::Terminated),
        Instance { token: None, ..former },
    ] {
        world.cloud.lock().instances = vec![hit.clone()];
        world.next_sync().await;
        assert_eq!(world.inventory.instances_of("one").empty.by_tag, None, "{hit:?}");
        world.cloud.lock().instances.clear();
        world.next_sync().await;
        assert!(world.inventory.instances_of("one").empty.by_tag.is_some());
    }
}

#[tokio::test]
async fn a_copy_of_our_tags_is_no_hit_and_a_living_instance_of_another_attempt_is() {
    let mut world = World::new(Kind::Node);
    world.inventory.set_interest(Kind::Node, "one", awaiting("t2", 0));
    let mut copy = instance("i-9", "one", "another", InstanceState::Running);
    copy.tags.insert(ATTEMPT_TAG.to_owned(), "1".to_owned());
    world.cloud.lock().instances = vec![copy.clone()];
    world.next_sync().await;
    assert!(world.inventory.instances_of("one").empty.by_tag.is_some());

    let earlier = Instance { token: Some(identity::token(CLUSTER, Kind::Node, "one", 1)), ..copy };
    world.cloud.lock().instances = vec![earlier];
    world.next_sync().await;
    assert_eq!(world.inventory.instances_of("one").empty.by_tag, None);
}

#[tokio::test]
async fn a_failed_sync_neither_ends_a_run_nor_counts_in_it() {
    let mut world = World::new(Kind::Node);
    world.inventory.set_interest(Kind::Node, "one", awaiting("t1", 0));
    world.next_sync().await;
    world.cloud.lock().error = Some(CloudError::in_doubt("DescribeInstances", "no answer"));
    world.next_sync().await;
    assert_eq!(
        world.inventory.instances_of("one").empty.by_tag,
        Some(EmptyRun { first: at(1), last: at(1) })
    );
    world.cloud.lock().error = None;
    world.next_sync().await;
    assert_eq!(
        world.inventory.instances_of("one").empty.by_tag,
        Some(EmptyRun { first: at(1), last: at(3) })
    );
}

/// Six Nodes name an instance each, and one more Node awaits a proof.
fn named_world() -> World {
    let world = World::new(Kind::Node);
    for n in 0..6 {
        world.inventory.set_interest(Kind::Node, &format!("node-{n}"), Interest::Settled);
        world.inventory.set_named(Kind::Node, &format!("node-{n}"), Some(&format!("i-{n}")));
    }
    world.inventory.set_interest(Kind::Node, "one", awaiting("t1", 0));
    world
}

/// The first of the six instances.
fn first(count: usize) -> Vec<Instance> {
    let named = |n| instance(&format!("i-{n}"), &format!("node-{n}"), "t", InstanceState::Running);
    (0..count).map(named).collect()
}

#[tokio::test]
async fn a_sync_that_shows_none_of_the_instances_that_nodes_name_proves_no_absence() {
    let mut world = named_world();
    world.live(Duration::from_secs(3600)).await;
    assert_eq!(world.inventory.instances_of("one").empty.by_tag, None, "it may be another account's EC2");
    assert!(world.inventory.stats(Kind::Node).is_suspect);
    assert_eq!(world.cloud.count("among"), 0, "another account knows none of the ids either");

    world.cloud.lock().instances = first(3);
    world.next_sync().await;
    assert!(world.inventory.instances_of("one").empty.by_tag.is_some(), "half of them are shown");
    assert!(!world.inventory.stats(Kind::Node).is_suspect);

    let run = world.inventory.instances_of("one").empty.by_tag;
    world.cloud.lock().instances.clear();
    world.next_sync().await;
    assert_eq!(world.inventory.instances_of("one").empty.by_tag, run, "nor does it count in a run");
}

#[tokio::test]
async fn a_sync_that_shows_fewer_than_half_counts_if_ec2_knows_none_of_the_others_by_id() {
    let mut world = named_world();
    let untagged = first(6).into_iter().map(|it| Instance { tags: BTreeMap::new(), ..it }).skip(2);
    world.cloud.lock().instances = first(2).into_iter().chain(untagged).collect();
    world.next_sync().await;
    assert_eq!(world.inventory.instances_of("one").empty.by_tag, None, "their tags were taken off");
    assert!(world.inventory.stats(Kind::Node).is_suspect);

    world.cloud.lock().instances = first(2);
    world.next_sync().await;
    assert!(world.inventory.instances_of("one").empty.by_tag.is_some(), "four of them have ended");
    assert_eq!(world.cloud.count("among"), 2);
    for n in 2..6 {
        world.inventory.set_named(Kind::Node, &format!("node-{n}"), None);
    }
    world.next_sync().await;
    assert_eq!(world.cloud.count("among"), 2, "what is known to have ended is not missed");
}

#[tokio::test]
async fn a_sync_that_shows_none_of_the_volumes_that_are_named_proves_no_absence() {
    let mut world = World::new(Kind::Volume);
    for n in 0..3 {
        let uid = format!("volume-{n}");
        world.inventory.set_interest(Kind::Volume, &uid, Interest::Settled);
        world.inventory.set_named(Kind::Volume, &uid, Some(&format!("vol-{n}")));
    }
    world.inventory.set_interest(Kind::Volume, "one", awaiting("t1", 0));
    world.next_sync().await;
    assert_eq!(world.inventory.volumes_of("one").empty, None);
    world.cloud.lock().volumes = vec![volume("vol-1", "volume-1")];
    world.next_sync().await;
    assert!(world.inventory.volumes_of("one").empty.is_some(), "a pass reads the others by their ids");
}

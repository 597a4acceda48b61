//! What passes read, and who is woken, after a full sync and after a failed one.

use std::time::Duration;

use pretty_assertions::assert_eq;

use super::*;
use crate::api::keys::DATABASE_TAG;

#[tokio::test]
async fn an_empty_view_before_the_first_sync_says_that_nothing_was_looked_at() {
    let mut world = World::new(Kind::Node);
    assert_eq!(world.inventory.instances_of("node").swept_at, None);
    assert_eq!(world.inventory.last_complete(Kind::Node), None);
    world.sync().await;
    assert_eq!(world.inventory.instances_of("node").swept_at, Some(at(0)));
    assert_eq!(world.inventory.last_complete(Kind::Node), Some(at(0)));
}

#[tokio::test]
async fn a_sync_gives_each_owner_its_own_and_wakes_those_whose_view_changed() {
    let mut world = World::new(Kind::Node);
    let mut wakes = world.inventory.wakes();
    let (one, two) = (
        instance("i-1", "one", "t1", InstanceState::Pending),
        instance("i-2", "two", "t2", InstanceState::Running),
    );
    world.cloud.lock().instances = vec![one.clone(), two.clone()];
    world.sync().await;
    assert_eq!(world.inventory.instances_of("one").instances, vec![one.clone()]);
    assert_eq!(woken(&mut wakes), uids(&["one", "two"]));

    world.next_sync().await;
    assert_eq!(woken(&mut wakes), uids(&[]), "nothing changed");

    let running = Instance { state: InstanceState::Running, ..one };
    world.cloud.lock().instances = vec![running.clone(), two];
    world.next_sync().await;
    assert_eq!(world.inventory.instances_of("one").instances, [running]);
    assert_eq!(woken(&mut wakes), uids(&["one"]));

    world.cloud.lock().instances.clear();
    world.next_sync().await;
    assert_eq!(woken(&mut wakes), uids(&["one", "two"]), "what is no longer shown changed, too");
}

#[tokio::test]
async fn the_first_sync_wakes_everyone_who_waits_for_one() {
    let mut world = World::new(Kind::Node);
    let mut wakes = world.inventory.wakes();
    world.inventory.set_interest(Kind::Node, "waits", Interest::Settled);
    world.sync().await;
    assert_eq!(woken(&mut wakes), uids(&["waits"]));
    world.next_sync().await;
    assert_eq!(woken(&mut wakes), uids(&[]));
}

#[tokio::test]
async fn a_failed_sync_changes_nothing_but_what_is_said_of_it() {
    let mut world = World::new(Kind::Node);
    world.cloud.lock().instances = vec![instance("i-1", "one", "t1", InstanceState::Running)];
    world.sync().await;
    let mut wakes = world.inventory.wakes();
    let before = world.inventory.instances_of("one");
    world.cloud.lock().error = Some(CloudError::in_doubt("DescribeInstances", "no answer"));
    world.next_sync().await;
    assert_eq!(world.inventory.instances_of("one"), before);
    assert_eq!(woken(&mut wakes), uids(&[]));
    let stats = world.inventory.stats(Kind::Node);
    assert_eq!(stats.last_complete, Some(at(0)));
    assert!(stats.last_error.unwrap().contains("no answer"));
    assert_eq!(world.cloud.count("ids"), 0, "without a way to EC2 no further calls are made");
}

#[tokio::test]
async fn an_instance_of_no_node_is_counted_after_the_window_and_not_before() {
    let mut world = World::new(Kind::Node);
    world.cloud.lock().instances = vec![
        instance("i-1", "one", "t1", InstanceState::Running),
        instance("i-2", "gone", "t2", InstanceState::Running),
        instance("i-3", "gone too", "t3", InstanceState::ShuttingDown),
    ];
    world.inventory.set_interest(Kind::Node, "one", Interest::Settled);
    world.sync().await;
    world.advance(Duration::from_secs(1199));
    world.sync().await;
    assert_eq!(world.inventory.unclaimed_instances().len(), 0);
    world.next_sync().await;
    assert_eq!(world.inventory.unclaimed_instances().len(), 1);
    world.inventory.forget(Kind::Node, "one");
    world.next_sync().await;
    assert_eq!(world.inventory.unclaimed_instances().len(), 1, "its Node went a moment ago");
    world.inventory.set_interest(Kind::Node, "gone", Interest::Settled);
    world.next_sync().await;
    assert_eq!(
        world.inventory.unclaimed_instances().len(),
        0,
        "its Node was created again, as from a backup"
    );
}

#[tokio::test]
async fn an_ebs_volume_of_no_volume_is_unclaimed_after_the_window_unless_it_is_being_deleted() {
    let mut world = World::new(Kind::Volume);
    let mut ending = volume("vol-3", "gone");
    ending.state = VolumeState::Deleting;
    world.cloud.lock().volumes = vec![volume("vol-1", "one"), volume("vol-2", "gone"), ending];
    world.inventory.set_interest(Kind::Volume, "one", Interest::Settled);
    world.sync().await;
    assert_eq!(world.inventory.unclaimed_volumes(), []);
    world.advance(Duration::from_secs(1200));
    world.sync().await;
    assert_eq!(world.inventory.unclaimed_volumes(), [volume("vol-2", "gone")]);
}

#[tokio::test]
async fn an_instance_of_a_namespace_that_is_not_watched_is_another_operators() {
    let mut world = World::new(Kind::Node);
    let mut other = instance("i-1", "gone", "t1", InstanceState::Running);
    other.tags.insert(DATABASE_TAG.to_owned(), "team-b/orders".to_owned());
    world.cloud.lock().instances = vec![other];
    world.inventory.expect_only(["team-a".to_owned()]);
    world.sync().await;
    world.advance(Duration::from_secs(1200));
    world.sync().await;
    assert_eq!(world.inventory.unclaimed_instances().len(), 0);
    world.inventory.expect_only(["team-b".to_owned()]);
    world.sync().await;
    world.advance(Duration::from_secs(1200));
    world.sync().await;
    assert_eq!(world.inventory.unclaimed_instances().len(), 1);
}

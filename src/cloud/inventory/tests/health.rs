//! Whether instances are well: when EC2 is asked, who is woken, and how long an answer counts.

use std::time::Duration;

use pretty_assertions::assert_eq;

use super::*;
use crate::cloud::inventory::kinds::instance::HEALTH_PAUSE_WHILE_LATE;

#[tokio::test]
async fn the_health_of_an_account_without_instances_is_not_read() {
    let mut world = World::new(Kind::Node);
    world.sync().await;
    assert_eq!(world.cloud.count("health"), 0);
}

#[tokio::test]
async fn an_impaired_instance_wakes_its_owner_when_it_becomes_unhealthy_and_when_it_recovers() {
    let mut world = World::new(Kind::Node);
    world.cloud.lock().instances = vec![
        instance("i-1", "one", "t1", InstanceState::Running),
        instance("i-2", "two", "t2", InstanceState::Running),
    ];
    world.sync().await;
    let mut wakes = world.inventory.wakes();
    let unhealthy = InstanceHealth { id: InstanceId("i-1".into()), impaired: true, events: Vec::new() };
    let foreign = InstanceHealth { id: InstanceId("i-9".into()), impaired: true, events: Vec::new() };
    world.cloud.lock().unhealthy = vec![unhealthy.clone(), foreign];
    world.advance(Duration::from_secs(60));
    world.sync().await;
    assert_eq!(world.inventory.instances_of("one").unhealthy, [unhealthy]);
    assert_eq!(world.inventory.instances_of("two").unhealthy, []);
    assert_eq!(woken(&mut wakes), uids(&["one"]));
    world.cloud.lock().unhealthy.clear();
    world.advance(Duration::from_secs(60));
    world.sync().await;
    assert_eq!(world.inventory.instances_of("one").unhealthy, []);
    assert_eq!(woken(&mut wakes), uids(&["one"]));
}

#[tokio::test]
async fn while_a_zone_is_disrupted_the_health_of_the_others_is_read_by_id() {
    let mut world = World::new(Kind::Node);
    let of_zone = |id: &str, uid: &str, zone: &str| Instance {
        zone: zone.to_owned(),
        ..instance(id, uid, id, InstanceState::Running)
    };
    let instances = vec![of_zone("i-1", "one", "us-east-1a"), of_zone("i-2", "two", "us-east-1b")];
    world.cloud.lock().instances = instances;
    world.sync().await;
    let impaired =
        |id: &str| InstanceHealth { id: InstanceId(id.into()), impaired: true, events: Vec::new() };
    {
        let mut shown = world.cloud.lock();
        shown.error = Some(unavailable());
        shown.zone_down = Some("us-east-1a".into());
        shown.unhealthy = vec![impaired("i-1"), impaired("i-2")];
    }
    let mut wakes = world.inventory.wakes();
    world.advance(Duration::from_secs(60));
    world.sync().await;
    let (one, two) = (world.inventory.instances_of("one"), world.inventory.instances_of("two"));
    assert_eq!((two.unhealthy, two.is_health_known), (vec![impaired("i-2")], true));
    assert_eq!((one.unhealthy, one.is_health_known), (vec![], false), "EC2 does not answer for its zone");
    assert_eq!((world.cloud.count("health"), world.cloud.count("health of")), (1, 1));
    assert_eq!(woken(&mut wakes), uids(&["two"]));
}

#[tokio::test]
async fn an_old_answer_about_a_machines_health_is_not_believed() {
    let mut world = World::new(Kind::Node);
    world.cloud.lock().instances = vec![instance("i-1", "one", "t1", InstanceState::Running)];
    let unhealthy = InstanceHealth { id: InstanceId("i-1".into()), impaired: true, events: Vec::new() };
    world.cloud.lock().unhealthy = vec![unhealthy.clone()];
    world.sync().await;
    let mut wakes = world.inventory.wakes();
    let known = |inventory: &Inventory| inventory.instances_of("one").unhealthy;
    assert_eq!(known(&world.inventory), std::slice::from_ref(&unhealthy));
    world.inventory.lock().known.instances.health_at =
        Some(Instant::now().checked_sub(Duration::from_secs(180)).unwrap());
    assert_eq!(known(&world.inventory), []);
    world.advance(Duration::from_secs(180));
    world.sync().await;
    assert_eq!(known(&world.inventory), [unhealthy]);
    assert_eq!(woken(&mut wakes), uids(&["one"]), "the same answer is news");
}

#[tokio::test]
async fn health_is_read_soon_while_a_late_machine_still_runs_and_not_at_every_read() {
    let mut world = World::new(Kind::Node);
    world.cloud.lock().instances = vec![instance("i-1", "one", "t1", InstanceState::Running)];
    world.sync().await;
    world.inventory.look_at(&[InstanceId("i-1".into())]).await.unwrap();
    assert_eq!(world.cloud.count("health"), 1, "read a moment ago");
    world.inventory.lock().known.instances.health_requested_at =
        Some(Instant::now().checked_sub(HEALTH_PAUSE_WHILE_LATE).unwrap());
    world.inventory.look_at(&[InstanceId("i-1".into())]).await.unwrap();
    world.inventory.look_at(&[InstanceId("i-1".into())]).await.unwrap();
    assert_eq!(world.cloud.count("health"), 2);
    world.inventory.lock().known.instances.health_requested_at = None;
    world.cloud.lock().instances[0].state = InstanceState::Terminated;
    world.inventory.look_at(&[InstanceId("i-1".into())]).await.unwrap();
    assert_eq!(world.cloud.count("health"), 2, "an ended instance is not unhealthy");
}

#[tokio::test]
async fn a_refused_health_read_leaves_the_interval_of_the_lists_and_is_repeated_at_its_own() {
    let mut world = World::new(Kind::Node);
    {
        let mut shown = world.cloud.lock();
        shown.instances = vec![instance("i-1", "one", "t1", InstanceState::Running)];
        shown.health_error = Some(CloudError::in_doubt("DescribeInstanceStatus", "no answer"));
    }
    world.sync().await;
    let next = world.inventory.due(&world.schedule).unwrap();
    assert_eq!(next.duration_since(world.schedule.started), Duration::from_secs(60));
    world.next_sync().await;
    assert_eq!((world.cloud.count("list"), world.cloud.count("health")), (2, 1));
    world.advance(Duration::from_secs(60));
    world.sync().await;
    assert_eq!(world.cloud.count("health"), 2);
}

//! Whether instances are well: when EC2 is asked, who is woken, and how long an answer is believed.

use std::time::Duration;

use pretty_assertions::assert_eq;

use super::*;
use crate::cloud::inventory::kinds::instance::SOON;

#[tokio::test]
async fn an_account_without_instances_is_not_asked_for_their_health() {
    let mut world = World::new(Kind::Node);
    world.sweep().await;
    assert_eq!(world.cloud.count("health"), 0);
}

#[tokio::test]
async fn an_impaired_instance_wakes_its_owner_when_it_falls_ill_and_when_it_is_well_again() {
    let mut world = World::new(Kind::Node);
    world.cloud.lock().instances =
        vec![instance("i-1", "one", "t1", InstanceState::Running), instance("i-2", "two", "t2", InstanceState::Running)];
    world.sweep().await;
    let mut wakes = world.inventory.wakes();
    let ill = InstanceHealth { id: InstanceId("i-1".into()), impaired: true };
    let foreign = InstanceHealth { id: InstanceId("i-9".into()), impaired: true };
    world.cloud.lock().unhealthy = vec![ill.clone(), foreign];
    world.advance(Duration::from_secs(60));
    world.sweep().await;
    assert_eq!(world.inventory.instances_of("one").unhealthy, [ill]);
    assert_eq!(world.inventory.instances_of("two").unhealthy, []);
    assert_eq!(woken(&mut wakes), uids(&["one"]));
    world.cloud.lock().unhealthy.clear();
    world.advance(Duration::from_secs(60));
    world.sweep().await;
    assert_eq!(world.inventory.instances_of("one").unhealthy, []);
    assert_eq!(woken(&mut wakes), uids(&["one"]));
}

#[tokio::test]
async fn what_ec2_said_of_a_machines_health_long_ago_is_not_believed() {
    let mut world = World::new(Kind::Node);
    world.cloud.lock().instances = vec![instance("i-1", "one", "t1", InstanceState::Running)];
    let ill = InstanceHealth { id: InstanceId("i-1".into()), impaired: true };
    world.cloud.lock().unhealthy = vec![ill.clone()];
    world.sweep().await;
    let mut wakes = world.inventory.wakes();
    let known = |inventory: &Inventory| inventory.instances_of("one").unhealthy;
    assert_eq!(known(&world.inventory), std::slice::from_ref(&ill));
    world.inventory.lock().known.instances.health_at = Some(Instant::now().checked_sub(Duration::from_secs(180)).unwrap());
    assert_eq!(known(&world.inventory), []);
    world.advance(Duration::from_secs(180));
    world.sweep().await;
    assert_eq!(known(&world.inventory), [ill]);
    assert_eq!(woken(&mut wakes), uids(&["one"]), "the same answer is news");
}

#[tokio::test]
async fn health_is_asked_for_soon_while_a_late_machine_still_runs_and_not_at_every_look() {
    let mut world = World::new(Kind::Node);
    world.cloud.lock().instances = vec![instance("i-1", "one", "t1", InstanceState::Running)];
    world.sweep().await;
    world.inventory.look_at(&[InstanceId("i-1".into())]).await.unwrap();
    assert_eq!(world.cloud.count("health"), 1, "asked a moment ago");
    world.inventory.lock().known.instances.health_at = Some(Instant::now().checked_sub(SOON).unwrap());
    world.inventory.look_at(&[InstanceId("i-1".into())]).await.unwrap();
    world.inventory.look_at(&[InstanceId("i-1".into())]).await.unwrap();
    assert_eq!(world.cloud.count("health"), 2);
    world.inventory.lock().known.instances.health_at = None;
    world.cloud.lock().instances[0].state = InstanceState::Terminated;
    world.inventory.look_at(&[InstanceId("i-1".into())]).await.unwrap();
    assert_eq!(world.cloud.count("health"), 2, "what has ended is not ill");
}

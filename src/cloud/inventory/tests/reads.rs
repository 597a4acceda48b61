//! Reads of single instances between two full syncs: by zone while EC2 refuses lists, and by id.

use pretty_assertions::assert_eq;

use super::*;
use crate::cloud::inventory::store::Store;

#[tokio::test]
async fn while_a_zone_is_disrupted_the_instances_of_the_others_are_still_seen_but_no_age_gets_younger() {
    let mut world = World::new(Kind::Node);
    let healthy =
        Instance { zone: "us-east-1b".into(), ..instance("i-2", "two", "t2", InstanceState::Pending) };
    world.cloud.lock().instances =
        vec![instance("i-1", "one", "t1", InstanceState::Pending), healthy.clone()];
    world.sync().await;
    {
        let mut shown = world.cloud.lock();
        shown.error = Some(unavailable());
        shown.zone_down = Some("us-east-1a".into());
        for instance in &mut shown.instances {
            instance.state = InstanceState::Running;
        }
    }
    let mut wakes = world.inventory.wakes();
    world.next_sync().await;
    assert_eq!(world.inventory.instances_of("one").instances[0].state, InstanceState::Pending);
    assert_eq!(
        world.inventory.instances_of("two").instances,
        [Instance { state: InstanceState::Running, ..healthy }]
    );
    assert_eq!(world.inventory.instances_of("two").swept_at, Some(at(0)));
    assert_eq!(woken(&mut wakes), uids(&["two"]));
}

#[tokio::test]
async fn a_look_at_some_instances_is_one_call_wakes_whom_it_concerns_and_leaves_out_what_ec2_does_not_know() {
    let mut world = World::new(Kind::Node);
    let (one, two) = (
        instance("i-1", "one", "t1", InstanceState::Running),
        instance("i-2", "two", "t2", InstanceState::Running),
    );
    world.cloud.lock().instances = vec![one.clone(), two.clone()];
    world.sync().await;
    let mut wakes = world.inventory.wakes();
    world.cloud.lock().instances[0].state = InstanceState::Terminated;
    world.inventory.look_at(&[one.id.clone(), two.id.clone(), InstanceId("i-9".into())]).await.unwrap();
    assert_eq!((world.cloud.count("list"), world.cloud.count("among")), (1, 1));
    assert_eq!(world.inventory.instances_of("one").instances[0].state, InstanceState::Terminated);
    assert_eq!(woken(&mut wakes), uids(&["one"]));
    assert!(world.inventory.has_ended("one", &one.id) && !world.inventory.has_ended("two", &two.id));
}

#[test]
fn a_sync_that_began_before_a_point_read_does_not_overwrite_it() {
    let mut store = Store::<Instance>::default();
    let running = instance("i-1", "one", "t1", InstanceState::Running);
    let ended = Instance { state: InstanceState::Terminated, ..running.clone() };
    store.apply_full_sync(at(0), vec![running.clone()], true);
    assert_eq!(store.refresh(at(11), vec![ended.clone()]), uids(&["one"]));
    assert_eq!(store.apply_full_sync(at(10), vec![running.clone()], true).len(), 0, "nothing changed");
    assert_eq!(store.of("one"), [ended]);
    store.apply_full_sync(at(12), vec![running.clone()], true);
    assert_eq!(store.of("one"), [running]);
}

#[tokio::test]
async fn a_zone_that_ec2_does_not_answer_for_is_known_until_a_sync_is_complete() {
    let mut world = World::new(Kind::Node);
    let healthy =
        Instance { zone: "us-east-1b".into(), ..instance("i-2", "two", "t2", InstanceState::Running) };
    world.cloud.lock().instances = vec![instance("i-1", "one", "t1", InstanceState::Running), healthy];
    world.sync().await;
    world.cloud.lock().error = Some(unavailable());
    world.cloud.lock().zone_down = Some("us-east-1a".into());
    world.next_sync().await;
    assert!(world.inventory.refuses_zone("us-east-1a") && !world.inventory.refuses_zone("us-east-1b"));
    world.cloud.lock().error = None;
    world.next_sync().await;
    assert!(!world.inventory.refuses_zone("us-east-1a"));
}

#[tokio::test]
async fn what_nodes_name_is_read_by_id_while_lists_fail_though_no_list_ever_showed_it() {
    let mut world = World::new(Kind::Node);
    let healthy =
        Instance { zone: "us-east-1b".into(), ..instance("i-2", "two", "t2", InstanceState::Running) };
    {
        let mut shown = world.cloud.lock();
        shown.instances = vec![instance("i-1", "one", "t1", InstanceState::Running), healthy.clone()];
        shown.error = Some(unavailable());
        shown.zone_down = Some("us-east-1a".into());
    }
    let named = |id: &str, zone: &str| Some((InstanceId(id.into()), zone.to_owned()));
    world.inventory.name_instance("one", named("i-1", "us-east-1a"));
    world.inventory.name_instance("two", named("i-2", "us-east-1b"));
    world.inventory.name_instance("three", named("i-3", "us-east-1b"));
    let mut wakes = world.inventory.wakes();
    world.sync().await;
    let view = |uid: &str| world.inventory.instances_of(uid);
    assert_eq!((view("two").instances, view("two").swept_at), (vec![healthy], Some(at(0))));
    assert_eq!(woken(&mut wakes), uids(&["two"]));
    for uid in ["one", "three"] {
        assert_eq!((view(uid).instances, view(uid).swept_at), (vec![], None), "{uid} was not shown");
    }
    assert_eq!(world.inventory.last_complete(Kind::Node), None, "nothing was listed whole");
    assert!(!world.inventory.refuses_zone("us-east-1b"));
}

#[tokio::test]
async fn a_machine_of_a_healthy_zone_is_as_new_as_its_last_read_and_none_that_is_deleted() {
    let mut world = World::new(Kind::Node);
    world.cloud.lock().instances = vec![
        instance("i-1", "one", "t1", InstanceState::Running),
        instance("i-2", "two", "t2", InstanceState::Running),
    ];
    world.inventory.name_instance("one", Some((InstanceId("i-1".into()), "us-east-1a".to_owned())));
    world.sync().await;
    world.cloud.lock().error = Some(unavailable());
    world.advance(Duration::from_secs(600));
    world.sync().await;
    assert_eq!(world.inventory.instances_of("one").swept_at, Some(at(600)));
    assert_eq!(world.inventory.instances_of("two").swept_at, Some(at(0)), "nothing names it");
    world.inventory.name_instance("one", None);
    assert_eq!(world.inventory.instances_of("one").swept_at, Some(at(0)));
}

#[tokio::test]
async fn a_late_kubelets_instance_is_read_by_id_where_ec2_refuses_the_filter() {
    let mut world = World::new(Kind::Node);
    let one = instance("i-1", "one", "t1", InstanceState::Running);
    world.cloud.lock().instances = vec![one.clone()];
    world.sync().await;
    world.cloud.lock().error = Some(unavailable());
    world.cloud.lock().instances[0].state = InstanceState::Terminated;
    world.inventory.look_at(std::slice::from_ref(&one.id)).await.unwrap();
    assert_eq!(world.inventory.instances_of("one").instances[0].state, InstanceState::Terminated);
}

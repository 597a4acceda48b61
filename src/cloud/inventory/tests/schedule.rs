//! When the next sync is due: idle, pending, requested, and after failures.

use std::time::Duration;

use pretty_assertions::assert_eq;

use super::*;
use crate::cloud::Call;
use crate::cloud::turns::{Caller, Priority};

#[tokio::test]
async fn at_the_default_intervals_a_settled_fleet_costs_no_more_than_four_calls_and_a_fifth_a_minute() {
    let mut world = World::new(Kind::Node);
    for n in 0..100 {
        let uid = format!("node-{n}");
        world.cloud.lock().instances.push(instance(&format!("i-{n}"), &uid, &uid, InstanceState::Running));
        world.inventory.set_interest(Kind::Node, &uid, Interest::Settled);
    }
    world.sync().await;
    world.live(Duration::from_secs(600)).await;
    // In ten minutes at 0, 60, … 540 s; `health` stands for three calls.
    assert_eq!(
        (world.cloud.count("list"), world.cloud.count("health"), world.cloud.count("tokens")),
        (10, 10, 0)
    );

    let mut world = World::new(Kind::Volume);
    world.inventory.set_interest(Kind::Volume, "volume", Interest::Settled);
    world.sync().await;
    world.live(Duration::from_secs(600)).await;
    assert_eq!((world.cloud.count("volumes"), world.cloud.count("modifications")), (2, 0));
}

#[tokio::test]
async fn while_something_is_pending_syncs_come_every_few_seconds_but_health_does_not() {
    let mut world = World::new(Kind::Node);
    world.cloud.lock().instances = vec![instance("i-1", "one", "t1", InstanceState::Pending)];
    world.inventory.set_interest(Kind::Node, "one", Interest::changes());
    world.sync().await;
    world.live(Duration::from_secs(60)).await;
    assert_eq!(
        (world.cloud.count("list"), world.cloud.count("health"), world.cloud.count("tokens")),
        (15, 1, 0)
    );

    world.inventory.set_interest(Kind::Node, "one", Interest::Settled);
    assert_eq!(world.inventory.due(&world.schedule), Some(world.schedule.started + Duration::from_secs(60)));
    world.inventory.set_interest(Kind::Node, "one", Interest::changes());
    world.inventory.forget(Kind::Node, "one");
    assert_eq!(
        world.inventory.due(&world.schedule),
        Some(world.schedule.started + Duration::from_secs(60)),
        "who is gone awaits nothing"
    );
}

#[tokio::test]
async fn what_takes_hours_is_synced_once_a_minute_of_every_kind() {
    for (kind, what) in [(Kind::Volume, "volumes"), (Kind::Snapshot, "snapshots")] {
        let mut world = World::new(kind);
        world.inventory.set_interest(kind, "one", Interest::Slow(Awaited::default()));
        world.sync().await;
        world.live(Duration::from_secs(600)).await;
        assert_eq!(world.cloud.count(what), 10, "{what}");
        world.inventory.set_interest(kind, "two", Interest::changes());
        let seconds = Some(world.schedule.started + Duration::from_secs(4));
        assert_eq!(world.inventory.due(&world.schedule), seconds, "another is awaited sooner");
    }
}

#[tokio::test]
async fn a_pending_volume_makes_no_instance_syncs_faster_and_the_other_way_round() {
    let nodes = World::new(Kind::Node);
    nodes.inventory.set_interest(Kind::Volume, "volume", Interest::changes());
    assert_eq!(nodes.inventory.due(&nodes.schedule), Some(nodes.schedule.started + Duration::from_secs(60)));
    let volumes = World::new(Kind::Volume);
    volumes.inventory.set_interest(Kind::Node, "node", Interest::changes());
    assert_eq!(
        volumes.inventory.due(&volumes.schedule),
        Some(volumes.schedule.started + Duration::from_secs(300))
    );
}

#[tokio::test]
async fn many_requests_make_one_sync_soon_and_no_sooner() {
    let mut world = World::new(Kind::Node);
    world.sync().await;
    for _ in 0..100 {
        world.inventory.request_sync(Kind::Node);
    }
    assert_eq!(world.inventory.due(&world.schedule), Some(world.schedule.started + Duration::from_secs(1)));
    world.next_sync().await;
    assert_eq!(world.inventory.due(&world.schedule), Some(world.schedule.started + Duration::from_secs(60)));
}

#[tokio::test]
async fn failing_syncs_are_repeated_soon_and_then_less_and_less_often() {
    let mut world = World::new(Kind::Volume);
    world.cloud.lock().error = Some(CloudError::in_doubt("DescribeVolumes", "no answer"));
    let mut pauses = Vec::new();
    for _ in 0..6 {
        world.next_sync().await;
        pauses.push(
            world.inventory.due(&world.schedule).unwrap().duration_since(world.schedule.started).as_secs(),
        );
    }
    assert_eq!(pauses, [8, 16, 32, 60, 60, 60]);
    world.cloud.lock().error = None;
    world.next_sync().await;
    assert_eq!(world.inventory.due(&world.schedule), Some(world.schedule.started + Duration::from_secs(300)));
}

#[tokio::test]
async fn a_throttled_sync_slows_the_bucket_of_its_call() {
    let mut world = World::new(Kind::Node);
    world.cloud.lock().error =
        Some(CloudError::new("DescribeInstances", Some("RequestLimitExceeded"), "", Some(503), None));
    world.sync().await;
    let caller = Caller { namespace: "", object: "", priority: Priority::Repair };
    let answer = world.inventory.limits.try_take(Call::DescribeInstances, &caller, at(0));
    assert!(answer.is_err());
}

#[tokio::test]
async fn the_loops_sync_at_once_answer_a_request_and_end_when_cancelled() {
    let cloud = Arc::new(Small::default());
    cloud.lock().instances = vec![instance("i-1", "one", "t1", InstanceState::Pending)];
    // So long that only the first sync and a request can be the reason of a call.
    let day = Duration::from_secs(86_400);
    let timing = Timing {
        instance_sync_interval: day,
        volume_sync_interval: day,
        pending_sync_interval: Duration::from_millis(4),
        ..Timing::default()
    };
    let inventory = Inventory::new(
        cloud.clone(),
        Arc::new(Limits::new(1.0, 1.0)),
        Arc::new(crate::clock::SystemClock),
        timing,
        CLUSTER,
    );
    let mut wakes = inventory.wakes();
    let stop = CancellationToken::new();
    let running = tokio::spawn(Arc::clone(&inventory).run(stop.clone()));
    let limit = Duration::from_secs(30);
    let first = tokio::time::timeout(limit, wakes.next()).await.unwrap();
    assert_eq!(first, Some(Wake { kind: Kind::Node, uid: "one".into() }));
    cloud.lock().instances[0].state = InstanceState::Running;
    inventory.request_sync(Kind::Node);
    let second = tokio::time::timeout(limit, wakes.next()).await.unwrap();
    assert_eq!(second, Some(Wake { kind: Kind::Node, uid: "one".into() }));
    assert_eq!(inventory.instances_of("one").instances[0].state, InstanceState::Running);
    stop.cancel();
    tokio::time::timeout(limit, running).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_kind_whose_syncs_fail_is_not_silent_and_one_that_attempts_none_is() {
    let mut world = World::new(Kind::Node);
    let longest = Duration::from_secs(900);
    let silent = |world: &World, after: u64| {
        let now = world.schedule.started + Duration::from_secs(after);
        world.inventory.silent(longest, now).map(|(kind, _)| kind)
    };
    assert_eq!(silent(&world, 100_000), None, "it has not begun");
    world.cloud.lock().error = Some(unavailable());
    world.live(Duration::from_secs(7200)).await;
    assert_eq!((silent(&world, 959), silent(&world, 962)), (None, Some(Kind::Node)));
}

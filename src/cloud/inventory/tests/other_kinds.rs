//! What only volumes and snapshots have: modifications, and no sync without an interest.

use std::time::Duration;

use pretty_assertions::assert_eq;

use super::*;
use crate::cloud::{ModificationState, SnapshotState};

#[tokio::test]
async fn a_modification_is_looked_up_only_while_a_pass_awaits_it() {
    let mut world = World::new(Kind::Volume);
    world.cloud.lock().volumes = vec![volume("vol-1", "one"), volume("vol-2", "two")];
    let modification = Modification {
        volume: VolumeId("vol-1".into()),
        state: ModificationState::Modifying,
        started_at: None,
    };
    world.cloud.lock().modifications = vec![modification.clone()];
    world.sync().await;
    assert_eq!(world.cloud.count("modifications"), 0);

    let mut wakes = world.inventory.wakes();
    let awaited = Awaited { modifying: Some(VolumeId("vol-1".into())), ..Awaited::default() };
    world.inventory.set_interest(Kind::Volume, "one", Interest::Pending(awaited));
    world.next_sync().await;
    assert_eq!(world.inventory.volumes_of("one").modification, Some(modification));
    assert_eq!(world.inventory.volumes_of("two").modification, None);
    assert!(!world.inventory.volumes_of("two").modification_is_known, "no look-up was requested");
    assert_eq!(woken(&mut wakes), uids(&["one"]));
    world.next_sync().await;
    assert_eq!(woken(&mut wakes), uids(&[]), "it did not change");

    world.inventory.set_interest(Kind::Volume, "one", Interest::Settled);
    assert_eq!(
        world.inventory.volumes_of("one").modification,
        None,
        "the next modification does not begin with the last one's end"
    );
    let before = world.cloud.count("modifications");
    world.next_sync().await;
    assert_eq!(world.cloud.count("modifications"), before);

    let awaited = Awaited { modifying: Some(VolumeId("vol-2".into())), ..Awaited::default() };
    world.inventory.set_interest(Kind::Volume, "two", Interest::Pending(awaited));
    world.next_sync().await;
    assert_eq!(woken(&mut wakes), uids(&["two"]), "that there is none is an answer, too");
    let two = world.inventory.volumes_of("two");
    assert_eq!((two.modification, two.modification_is_known), (None, true));
}

#[tokio::test]
async fn snapshots_are_listed_only_while_a_pass_asks_for_one() {
    let mut world = World::new(Kind::Snapshot);
    assert_eq!(world.inventory.due(&world.schedule), None);
    let snapshot = Snapshot {
        id: SnapshotId("snap-1".into()),
        volume: VolumeId("vol-1".into()),
        size: None,
        state: SnapshotState::Pending,
        started_at: None,
        tags: identity::owner_tags(CLUSTER, Kind::Snapshot, "one"),
    };
    world.cloud.lock().snapshots = vec![snapshot.clone()];
    world.inventory.set_interest(Kind::Snapshot, "one", Interest::changes());
    assert_eq!(world.inventory.due(&world.schedule), Some(world.schedule.started + Duration::from_secs(4)));
    world.next_sync().await;
    assert_eq!(world.inventory.snapshots_of("one").snapshots, [snapshot]);
}

#[tokio::test]
async fn the_volumes_of_a_namespace_are_known_by_their_tags_until_ec2_deletes_them() {
    let mut world = World::new(Kind::Volume);
    assert_eq!(world.inventory.tagged_volumes(None), None, "before the first sync nothing is known");
    let of = |id: &str, uid: &str, database: &str, state: VolumeState| {
        let mut volume = EbsVolume { state, ..volume(id, uid) };
        volume.tags.insert("freehold.dev/database".to_owned(), database.to_owned());
        volume
    };
    world.cloud.lock().volumes = vec![
        of("vol-1", "one", "team-a/orders", VolumeState::InUse),
        of("vol-2", "two", "team-b/orders", VolumeState::Available),
        of("vol-3", "three", "team-a/events", VolumeState::Deleting),
    ];
    world.sync().await;
    let uids = |namespace: Option<&str>| -> Vec<String> {
        let volumes = world.inventory.tagged_volumes(namespace).unwrap();
        volumes.into_iter().map(|volume| format!("{}/{}", volume.namespace, volume.volume_uid)).collect()
    };
    assert_eq!(uids(None), ["team-a/one", "team-b/two"]);
    assert_eq!(uids(Some("team-a")), ["team-a/one"]);
}

fn initialization(progress: i32, left: Option<u64>) -> Vec<Initialization> {
    vec![Initialization { volume: VolumeId("vol-1".into()), progress, left: left.map(Duration::from_secs) }]
}

#[tokio::test]
async fn an_initialization_is_asked_for_at_the_idle_interval_however_often_the_syncs_come() {
    let mut world = World::new(Kind::Volume);
    world.cloud.lock().volumes = vec![volume("vol-1", "one"), volume("vol-2", "two")];
    world.cloud.lock().initializations = initialization(7, Some(93));
    world.sync().await;
    assert_eq!(world.cloud.count("initializations"), 0, "nothing is awaited");

    let mut wakes = world.inventory.wakes();
    world.inventory.set_initializing("one", Some(&VolumeId("vol-1".into())));
    world.inventory.set_interest(Kind::Volume, "two", Interest::changes());
    world.next_sync().await;
    let seen = |world: &World| world.inventory.volumes_of("one").initialization;
    let expected = InitializationView { progress: 7, expected_end: Some(at(1 + 93)) };
    assert_eq!(seen(&world), Some(expected));
    assert_eq!(world.inventory.volumes_of("two").initialization, None);
    assert_eq!(woken(&mut wakes), uids(&["one"]));

    world.cloud.lock().initializations = initialization(60, Some(40));
    world.live(Timing::default().volume_sync_interval).await;
    assert_eq!(world.cloud.count("initializations"), 1, "a sync every few seconds asks no more often");
    world.live(Duration::from_secs(10)).await;
    assert_eq!(seen(&world).map(|it| it.progress), Some(60));
    assert_eq!(woken(&mut wakes), uids(&["one"]));

    world.inventory.set_initializing("one", None);
    assert_eq!(seen(&world), None);
    world.live(Timing::default().volume_sync_interval * 3).await;
    assert_eq!(world.cloud.count("initializations"), 2, "it has ended");
}

#[tokio::test]
async fn an_initialization_is_asked_for_only_of_what_ec2_shows_and_at_once_when_another_one_begins() {
    let mut world = World::new(Kind::Volume);
    world.inventory.set_initializing("one", Some(&VolumeId("vol-1".into())));
    world.sync().await;
    assert_eq!(
        world.cloud.count("initializations"),
        0,
        "an id that EC2 does not know fails the call for all"
    );
    world.cloud.lock().volumes = vec![volume("vol-1", "one"), volume("vol-2", "two")];
    world.next_sync().await;
    assert_eq!(world.cloud.count("initializations"), 0, "the next one follows at the idle interval");
    world.inventory.set_initializing("two", Some(&VolumeId("vol-2".into())));
    world.next_sync().await;
    assert_eq!(world.cloud.count("initializations"), 1);
    world.inventory.forget(Kind::Volume, "one");
    world.inventory.forget(Kind::Volume, "two");
    world.live(Timing::default().volume_sync_interval * 2).await;
    assert_eq!(world.cloud.count("initializations"), 1);
}

#[tokio::test]
async fn a_role_that_may_not_read_initializations_keeps_its_lists() {
    let mut world = World::new(Kind::Volume);
    world.cloud.lock().volumes = vec![volume("vol-1", "one")];
    let denied =
        CloudError::new("DescribeVolumeStatus", Some("UnauthorizedOperation"), "no", Some(403), None);
    world.cloud.lock().initialization_error = Some(denied);
    world.inventory.set_initializing("one", Some(&VolumeId("vol-1".into())));
    world.sync().await;
    let stats = world.inventory.stats(Kind::Volume);
    assert_eq!((stats.last_complete, stats.last_error), (Some(at(0)), None));
    assert_eq!(world.inventory.volumes_of("one").volumes.len(), 1);
}

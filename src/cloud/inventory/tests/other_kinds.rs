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

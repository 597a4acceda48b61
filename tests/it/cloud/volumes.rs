//! EBS volumes and snapshots: made, tagged, modified, attached, deleted.

use std::time::Duration;

use freehold::api::VolumeId;
use freehold::cloud::identity::{self, Kind};
use freehold::cloud::{
    Class, CreateVolumeRequest, Initialization, ModificationState, ModifyVolumeRequest, SnapshotState,
    VolumeQuery, VolumeState,
};
use pretty_assertions::assert_eq;

use super::{BOTH, of_cluster};
use crate::world::{CLUSTER, World, create_volume, launch};

#[tokio::test]
async fn a_volume_is_made_once_grown_once_and_deleted() {
    for face in BOTH {
        let world = World::new(face).await;
        let request = create_volume("volume-1");
        let made = world.cloud.create_volume(&request).await.unwrap();
        assert_eq!(made.state, VolumeState::Creating);
        assert_eq!(world.cloud.create_volume(&request).await.unwrap().id, made.id);
        world.advance(10);
        let by_owner = VolumeQuery::Tags(identity::owner_tags(CLUSTER, Kind::Volume, "volume-1"));
        let seen = world.cloud.describe_volumes(&by_owner).await.unwrap();
        assert_eq!(seen.len(), 1);
        assert_eq!(
            (&seen[0].id, seen[0].state, seen[0].zone.as_str()),
            (&made.id, VolumeState::Available, "us-east-1a")
        );
        assert_eq!((seen[0].size, seen[0].iops, seen[0].throughput), (100, Some(3000), Some(125)));
        assert_eq!(seen[0].tags, request.tags);
        assert!(world.simulator.volumes()[0].encrypted);

        assert_eq!(
            world.cloud.describe_modifications(std::slice::from_ref(&made.id)).await.unwrap(),
            [],
            "never modified is no error"
        );
        let grow = ModifyVolumeRequest {
            id: made.id.clone(),
            size: 200,
            volume_type: "gp3".into(),
            iops: Some(6000),
            throughput: Some(500),
        };
        world.cloud.modify_volume(&grow).await.unwrap();
        assert_eq!(
            world.cloud.modify_volume(&grow).await.unwrap_err().class,
            Class::State,
            "the former one is not completed"
        );
        let modification = async || {
            let ids = [made.id.clone(), VolumeId("vol-00000000000000000".into())];
            world
                .cloud
                .describe_modifications(&ids)
                .await
                .unwrap()
                .into_iter()
                .map(|m| m.state)
                .collect::<Vec<_>>()
        };
        assert_eq!(modification().await, [ModificationState::Modifying]);
        world.advance(10);
        assert_eq!(modification().await, [ModificationState::Completed]);
        let ids = VolumeQuery::Ids(vec![made.id.clone(), VolumeId("vol-00000000000000000".into())]);
        let seen = world.cloud.describe_volumes(&ids).await.unwrap();
        assert_eq!(
            seen.iter().map(|volume| (volume.size, volume.iops, volume.throughput)).collect::<Vec<_>>(),
            [(200, Some(6000), Some(500))]
        );

        world.cloud.delete_volume(&made.id).await.unwrap();
        world.advance(10);
        assert_eq!(world.cloud.describe_volumes(&by_owner).await.unwrap(), []);
        assert_eq!(world.cloud.delete_volume(&made.id).await.unwrap_err().class, Class::NotFound);
    }
}

#[tokio::test]
async fn the_fifth_modification_of_a_day_is_refused_as_over_budget() {
    for face in BOTH {
        let world = World::new(face).await;
        let made = world.cloud.create_volume(&create_volume("volume-1")).await.unwrap();
        world.advance(10);
        for size in [110, 120, 130, 140] {
            let request = ModifyVolumeRequest {
                id: made.id.clone(),
                size,
                volume_type: "gp3".into(),
                iops: None,
                throughput: None,
            };
            world.cloud.modify_volume(&request).await.unwrap();
            world.advance(60);
        }
        let request = ModifyVolumeRequest {
            id: made.id.clone(),
            size: 150,
            volume_type: "gp3".into(),
            iops: None,
            throughput: None,
        };
        assert_eq!(world.cloud.modify_volume(&request).await.unwrap_err().class, Class::ModificationBudget);
    }
}

#[tokio::test]
async fn an_attached_volume_is_in_use_and_cannot_be_deleted() {
    for face in BOTH {
        let world = World::new(face).await;
        let instance = world.cloud.run_instance(&launch("node-1")).await.unwrap();
        let made = world.cloud.create_volume(&create_volume("volume-1")).await.unwrap();
        world.advance(10);
        let attach = [
            ("Action", "AttachVolume"),
            ("VolumeId", &made.id.0),
            ("InstanceId", &instance.id.0),
            ("Device", "/dev/xvdba"),
        ];
        world.simulator.call("csi", &attach).unwrap();
        world.advance(10);
        let seen = world.cloud.describe_volumes(&VolumeQuery::Ids(vec![made.id.clone()])).await.unwrap();
        assert_eq!(seen[0].state, VolumeState::InUse);
        assert_eq!(world.cloud.delete_volume(&made.id).await.unwrap_err().class, Class::State);
        let seen = world.cloud.describe_instances(&of_cluster()).await.unwrap();
        assert!(seen[0].volumes.contains(&made.id));
    }
}

#[tokio::test]
async fn a_snapshot_is_found_by_its_tags_and_completes() {
    for face in BOTH {
        let world = World::new(face).await;
        let made = world.cloud.create_volume(&create_volume("volume-1")).await.unwrap();
        world.advance(10);
        let tags = identity::owner_tags(CLUSTER, Kind::Snapshot, "volume-1");
        let taken = world.cloud.create_snapshot(&made.id, &tags).await.unwrap();
        assert_eq!((&taken.volume, taken.state), (&made.id, SnapshotState::Pending));
        world.advance(60);
        let seen = world.cloud.describe_snapshots(&tags).await.unwrap();
        assert_eq!(seen.len(), 1);
        assert_eq!((&seen[0].id, seen[0].state, &seen[0].tags), (&taken.id, SnapshotState::Completed, &tags));
        let other = identity::owner_tags(CLUSTER, Kind::Snapshot, "volume-2");
        assert_eq!(world.cloud.describe_snapshots(&other).await.unwrap(), []);
    }
}

#[tokio::test]
async fn a_snapshot_that_has_lost_its_tags_is_found_by_its_id() {
    for face in BOTH {
        let world = World::new(face).await;
        let made = world.cloud.create_volume(&create_volume("volume-1")).await.unwrap();
        world.advance(10);
        let tags = identity::owner_tags(CLUSTER, Kind::Backup, "backup-1");
        let taken = world.cloud.create_snapshot(&made.id, &tags).await.unwrap();
        world.advance(60);
        world.cloud.untag_resources(std::slice::from_ref(&taken.id.0), &tags).await.unwrap();
        world.advance(60);
        assert_eq!(world.cloud.describe_snapshots(&tags).await.unwrap(), []);
        let seen = world.cloud.describe_snapshot(&taken.id).await.unwrap();
        assert_eq!(seen.map(|it| (it.id, it.tags.len())), Some((taken.id.clone(), 0)));
        world.cloud.delete_snapshot(&taken.id).await.unwrap();
        world.advance(60);
        assert_eq!(world.cloud.describe_snapshot(&taken.id).await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_volume_from_a_snapshot_is_created_with_its_rate_and_says_how_far_it_is_read() {
    for face in BOTH {
        let world = World::new(face).await;
        let empty = world.cloud.create_volume(&create_volume("volume-1")).await.unwrap();
        world.advance(10);
        let tags = identity::owner_tags(CLUSTER, Kind::Backup, "backup-1");
        let snapshot = world.cloud.create_snapshot(&empty.id, &tags).await.unwrap().id;
        world.advance(60);
        let request = CreateVolumeRequest {
            snapshot_id: Some(snapshot),
            initialization_rate: Some(200),
            ..create_volume("volume-2")
        };
        let made = world.cloud.create_volume(&request).await.unwrap();
        assert_eq!(world.cloud.create_volume(&request).await.unwrap().id, made.id);
        let slower = CreateVolumeRequest { initialization_rate: Some(100), ..request.clone() };
        assert_eq!(
            world.cloud.create_volume(&slower).await.unwrap_err().class,
            Class::Token,
            "the rate is part of the request of an attempt"
        );
        world.advance(256);
        let ids = [made.id.clone(), empty.id.clone()];
        let half =
            Initialization { volume: made.id.clone(), progress: 50, left: Some(Duration::from_secs(256)) };
        assert_eq!(world.cloud.describe_initializations(&ids).await.unwrap(), [half]);
        world.advance(256);
        let whole = Initialization { volume: made.id.clone(), progress: 100, left: Some(Duration::ZERO) };
        assert_eq!(world.cloud.describe_initializations(&ids).await.unwrap(), [whole]);
        let ids = [made.id.clone(), VolumeId("vol-00000000000000000".into())];
        assert_eq!(world.cloud.describe_initializations(&ids).await.unwrap_err().class, Class::NotFound);
        assert_eq!(world.cloud.describe_initializations(&[]).await.unwrap(), []);

        let of_nothing = CreateVolumeRequest { initialization_rate: Some(200), ..create_volume("volume-3") };
        assert_eq!(world.cloud.create_volume(&of_nothing).await.unwrap_err().class, Class::Invalid);
    }
}

//! The contract of `Cloud`, on both ways to the same EC2 model, and what only the wire can show: what is
//! sent, how often, and what becomes of answers that are lost or cut.

mod catalog;
mod failures;
mod instances;
mod lists;
mod tags;
mod volumes;

use ec2sim::Effect;
use freehold::cloud::identity::{self, Kind};
use freehold::cloud::{InstanceQuery, ModifyVolumeRequest};
use pretty_assertions::assert_eq;

use crate::world::{CLUSTER, Face, World, create_volume, launch};

const BOTH: [Face; 2] = [Face::Wire, Face::Model];

fn of_cluster() -> InstanceQuery {
    InstanceQuery::Tags(identity::cluster_tags(CLUSTER))
}

fn error(code: &str) -> Effect {
    Effect::Error { code: code.into(), message: "said the test".into() }
}

#[tokio::test]
async fn both_ways_send_the_same_requests() {
    let mut sent = Vec::new();
    for face in BOTH {
        let world = World::new(face).await;
        let instance = world.cloud.run_instance(&launch("node-1")).await.unwrap();
        let volume = world.cloud.create_volume(&create_volume("volume-1")).await.unwrap();
        world.advance(10);
        let request = ModifyVolumeRequest {
            id: volume.id.clone(),
            size: 200,
            volume_type: "gp3".into(),
            iops: Some(6000),
            throughput: Some(500),
        };
        world.cloud.modify_volume(&request).await.unwrap();
        world
            .cloud
            .create_snapshot(&volume.id, &identity::owner_tags(CLUSTER, Kind::Snapshot, "volume-1"))
            .await
            .unwrap();
        world
            .cloud
            .tag_resource(&volume.id.0, &identity::owner_tags(CLUSTER, Kind::Volume, "volume-2"))
            .await
            .unwrap();
        world
            .cloud
            .untag_resources(
                std::slice::from_ref(&instance.id.0),
                &identity::owner_tags(CLUSTER, Kind::Node, "node-1"),
            )
            .await
            .unwrap();
        world.cloud.describe_tagged("freehold.dev/cluster-id", CLUSTER).await.unwrap();
        world.cloud.describe_instances(&InstanceQuery::Ids(vec![instance.id.clone()])).await.unwrap();
        world.cloud.terminate_instances(&[instance.id]).await.unwrap();
        world.cloud.delete_volume(&volume.id).await.unwrap();
        sent.push(
            world
                .simulator
                .journal()
                .into_iter()
                .map(|entry| (entry.action, entry.parameters))
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(sent[0], sent[1]);
}

//! Lists of many: every page or an error, and what a list does not show.

use std::collections::BTreeSet;

use ec2sim::{Effect, Fate, Sight};
use freehold::api::keys;
use freehold::cloud::identity;
use freehold::cloud::{Class, InstanceQuery, VolumeQuery};
use pretty_assertions::assert_eq;

use super::{BOTH, error, of_cluster};
use crate::world::{CLUSTER, Face, World, create_volume, launch};

#[tokio::test]
async fn a_list_whose_answers_are_cut_is_an_error_and_never_a_shorter_list() {
    let world = World::new(Face::Wire).await;
    for n in 0..20 {
        world.cloud.run_instance(&launch(&format!("node-{n}"))).await.unwrap();
        world.cloud.create_volume(&create_volume(&format!("volume-{n}"))).await.unwrap();
    }
    for action in ["DescribeInstances", "DescribeVolumes", "DescribeInstanceStatus", "DescribeSnapshots"] {
        world.fault(action, Effect::TruncatedXml);
    }
    let failures = [
        world.cloud.describe_instances(&of_cluster()).await.map(|list| list.len()),
        world
            .cloud
            .describe_volumes(&VolumeQuery::Tags(identity::cluster_tags(CLUSTER)))
            .await
            .map(|list| list.len()),
        world.cloud.describe_unhealthy_instances().await.map(|list| list.len()),
        world.cloud.describe_snapshots(&identity::cluster_tags(CLUSTER)).await.map(|list| list.len()),
    ];
    for failure in failures {
        let failure = failure.unwrap_err();
        assert_eq!((failure.class, failure.code.as_deref()), (Class::InDoubt, None), "{failure}");
    }
}

#[tokio::test]
async fn a_list_goes_on_after_an_empty_page() {
    for face in BOTH {
        let world = World::new(face).await;
        world.cloud.run_instance(&launch("node-1")).await.unwrap();
        world.fault_once("DescribeInstances", Effect::EmptyPage);
        assert_eq!(world.cloud.describe_instances(&of_cluster()).await.unwrap().len(), 1);
        assert_eq!(world.calls("DescribeInstances").len(), 2);
    }
}

#[tokio::test]
async fn a_list_has_every_page() {
    let world = World::new(Face::Wire).await;
    // As another tool of the same cluster would: quicker than 1,001 launches over the wire.
    let tag =
        [("TagSpecification.1.Tag.1.Key", keys::CLUSTER_ID_TAG), ("TagSpecification.1.Tag.1.Value", CLUSTER)];
    let place = [
        ("ImageId", "ami-0000000000000000a"),
        ("InstanceType", "r7i.large"),
        ("MinCount", "1"),
        ("MaxCount", "1"),
    ];
    for n in 0..1001 {
        let instance = [
            [("Action", "RunInstances"), ("TagSpecification.1.ResourceType", "instance")].as_slice(),
            &tag,
            &place,
        ]
        .concat();
        world.simulator.call("another", &instance).unwrap();
        if n <= 500 {
            let volume = [
                ("Action", "CreateVolume"),
                ("AvailabilityZone", "us-east-1a"),
                ("Size", "1"),
                ("TagSpecification.1.ResourceType", "volume"),
            ];
            world.simulator.call("another", &[volume.as_slice(), &tag].concat()).unwrap();
        }
    }
    let ids: BTreeSet<_> = world
        .cloud
        .describe_instances(&of_cluster())
        .await
        .unwrap()
        .into_iter()
        .map(|instance| instance.id)
        .collect();
    assert_eq!((ids.len(), world.calls("DescribeInstances").len()), (1001, 2));
    let volumes =
        world.cloud.describe_volumes(&VolumeQuery::Tags(identity::cluster_tags(CLUSTER))).await.unwrap();
    let ids: BTreeSet<_> = volumes.into_iter().map(|volume| volume.id).collect();
    assert_eq!(ids.len(), 501);
    assert!(world.calls("DescribeVolumes").len() > 1, "EC2 answers with 500 volumes at most");

    // The second page fails: no list at all.
    world.simulator.add_fault(ec2sim::Fault {
        id: String::new(),
        action: Some("DescribeInstances".into()),
        caller: None,
        resource: None,
        tag: None,
        nth: Some(2),
        count: Some(100),
        probability: None,
        effect: error("InternalError"),
    });
    assert_eq!(world.cloud.describe_instances(&of_cluster()).await.unwrap_err().class, Class::InDoubt);
}

#[tokio::test]
async fn while_a_zone_is_disrupted_only_ids_of_other_zones_are_answered() {
    for face in BOTH {
        let world = World::new(face).await;
        let healthy = world.cloud.run_instance(&launch("node-1")).await.unwrap();
        let other = freehold::cloud::LaunchRequest {
            subnet_id: "subnet-0b000000000000000".into(),
            ..launch("node-2")
        };
        let disrupted = world.cloud.run_instance(&other).await.unwrap();
        world.fault("DescribeInstances", Effect::ZoneDown { zone: disrupted.zone.clone() });
        let failure = world.cloud.describe_instances(&of_cluster()).await.unwrap_err();
        assert!(failure.class == Class::InDoubt && failure.code.is_some(), "{failure}");
        assert!(world.cloud.describe_instances(&InstanceQuery::Ids(vec![disrupted.id])).await.is_err());
        let seen =
            world.cloud.describe_instances(&InstanceQuery::Ids(vec![healthy.id.clone()])).await.unwrap();
        assert_eq!(seen[0].id, healthy.id);
    }
}

#[tokio::test]
async fn a_new_instance_that_lists_do_not_show_yet_is_no_error() {
    for face in BOTH {
        let world = World::new(face).await;
        world.fault("RunInstances", Effect::Invisible { sight: Sight::All, seconds: 60.0 });
        let launched = world.cloud.run_instance(&launch("node-1")).await.unwrap();
        assert_eq!(world.cloud.describe_instances(&of_cluster()).await.unwrap(), []);
        let by_id = world.cloud.describe_instances(&InstanceQuery::Ids(vec![launched.id.clone()])).await;
        assert_eq!(by_id.unwrap_err().class, Class::NotFound);
        assert_eq!(
            world.cloud.terminate_instances(std::slice::from_ref(&launched.id)).await.unwrap_err().class,
            Class::NotFound
        );
        world.advance(61);
        assert_eq!(world.cloud.describe_instances(&of_cluster()).await.unwrap().len(), 1);
        assert!(world.calls("RunInstances").iter().all(|entry| entry.fate == Fate::Committed));
    }
}

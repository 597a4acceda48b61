//! Tags of what exists already: put on, and taken off.

use std::collections::BTreeMap;

use freehold::api::VolumeId;
use freehold::cloud::identity::{self, Kind};
use freehold::cloud::{Class, VolumeQuery};
use pretty_assertions::assert_eq;

use super::BOTH;
use crate::world::{CLUSTER, World, create_volume, launch};

#[tokio::test]
async fn tags_that_are_put_on_later_take_the_place_of_those_of_their_keys_and_the_others_stay() {
    for face in BOTH {
        let world = World::new(face).await;
        let volume = world.cloud.create_volume(&create_volume("volume-1")).await.unwrap();
        let anew = identity::owner_tags(CLUSTER, Kind::Volume, "volume-2");
        for _ in 0..2 {
            world.cloud.tag_resource(&volume.id.0, &anew).await.unwrap();
        }
        let wanted: BTreeMap<_, _> =
            volume.tags.iter().chain(&anew).map(|(key, value)| (key.clone(), value.clone())).collect();
        assert_eq!(world.simulator.volumes()[0].tags, wanted, "{face:?}");
        let of_former = VolumeQuery::Tags(identity::owner_tags(CLUSTER, Kind::Volume, "volume-1"));
        assert_eq!(world.cloud.describe_volumes(&of_former).await.unwrap().len(), 0);
        let unknown = VolumeId("vol-00000000000000000".into());
        assert_eq!(world.cloud.tag_resource(&unknown.0, &anew).await.unwrap_err().class, Class::NotFound);
    }
}

#[tokio::test]
async fn tags_are_taken_off_where_they_have_the_named_value_and_the_others_stay() {
    for face in BOTH {
        let world = World::new(face).await;
        let request = launch("node-1");
        let id = world.cloud.run_instance(&request).await.unwrap().id;
        world.advance(10);
        let mut named = identity::owner_tags(CLUSTER, Kind::Node, "node-1");
        named.insert("Name".to_owned(), "of another".to_owned());
        for _ in 0..2 {
            world.cloud.untag_resources(std::slice::from_ref(&id.0), &named).await.unwrap();
        }
        let owner = identity::owner_tags(CLUSTER, Kind::Node, "node-1");
        let left: BTreeMap<_, _> =
            request.tags.clone().into_iter().filter(|(key, _)| !owner.contains_key(key)).collect();
        assert_eq!(world.simulator.instances()[0].tags, left, "{face:?}");
        let unknown = world.cloud.untag_resources(&["i-00000000000000000".to_owned()], &owner).await;
        let unknown = unknown.unwrap_err();
        assert_eq!(unknown.class, Class::NotFound);
        let sent = world.calls("DeleteTags");
        assert_eq!(sent.len(), 3, "{face:?}: each one attempt on the wire");
    }
}

#[tokio::test]
async fn what_a_launch_tagged_is_found_by_one_tag_and_untagged_at_once() {
    for face in BOTH {
        let world = World::new(face).await;
        let launched = world.cloud.run_instance(&launch("node-1")).await.unwrap().id;
        let other = world.cloud.run_instance(&launch("node-2")).await.unwrap().id;
        world.cloud.create_volume(&create_volume("volume-1")).await.unwrap();
        world.advance(10);
        let mut found = world.cloud.describe_tagged("freehold.dev/node-uid", "node-1").await.unwrap();
        let of_it = |held: &ec2sim::VolumeView| {
            held.attachment.as_ref().is_some_and(|attachment| attachment.instance_id == launched.0)
        };
        let disks = world.simulator.volumes().into_iter().filter(of_it);
        let mut wanted: Vec<String> = disks.map(|disk| disk.id).collect();
        wanted.push(launched.0.clone());
        wanted.sort();
        found.sort();
        assert_eq!(found, wanted, "{face:?}: the instance and its disk");
        let owner = identity::owner_tags(CLUSTER, Kind::Node, "node-1");
        world.cloud.check_untag(&found, &owner).await.unwrap();
        let still = world.cloud.describe_tagged("freehold.dev/node-uid", "node-1").await.unwrap();
        assert_eq!(still.len(), found.len(), "{face:?}: a dry run changes nothing");
        let unknown = world.cloud.check_untag(&["i-00000000000000000".to_owned()], &owner).await;
        assert_eq!(unknown.unwrap_err().class, Class::NotFound, "{face:?}");
        world.cloud.untag_resources(&found, &owner).await.unwrap();
        world.advance(10);
        let left = world.cloud.describe_tagged("freehold.dev/node-uid", "node-1").await.unwrap();
        assert_eq!(left, [] as [&str; 0], "{face:?}");
        let of_other = world.cloud.describe_tagged("freehold.dev/node-uid", "node-2").await.unwrap();
        assert!(of_other.contains(&other.0), "{face:?}");
        assert_eq!(world.calls("DeleteTags").len(), 3, "{face:?}: each one attempt on the wire");
    }
}

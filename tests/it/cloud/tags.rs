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
            world.cloud.untag_resource(&id.0, &named).await.unwrap();
        }
        let owner = identity::owner_tags(CLUSTER, Kind::Node, "node-1");
        let left: BTreeMap<_, _> =
            request.tags.clone().into_iter().filter(|(key, _)| !owner.contains_key(key)).collect();
        assert_eq!(world.simulator.instances()[0].tags, left, "{face:?}");
        let unknown = world.cloud.untag_resource("i-00000000000000000", &owner).await.unwrap_err();
        assert_eq!(unknown.class, Class::NotFound);
        let sent = world.calls("DeleteTags");
        assert_eq!(sent.len(), 3, "{face:?}: each one attempt on the wire");
    }
}

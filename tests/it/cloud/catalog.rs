//! What EC2 offers: the same on both ways, and what EC2 does not know is left out instead of failing the
//! call.

use freehold::cloud::catalog::{InstanceType, Subnet};
use pretty_assertions::assert_eq;

use super::BOTH;
use crate::world::World;

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

#[tokio::test]
async fn an_image_is_shown_with_its_architecture_and_its_disks() {
    let mut images = Vec::new();
    for face in BOTH {
        let world = World::new(face).await;
        assert_eq!(world.cloud.describe_image("ami-00000000000000fff").await.unwrap(), None);
        images.push(world.cloud.describe_image("ami-0000000000000000b").await.unwrap().unwrap());
    }
    assert_eq!(images[0], images[1]);
    let image = &images[0];
    assert_eq!((image.architecture.as_str(), image.root_device.as_str()), ("arm64", "/dev/xvda"));
    assert!(image.is_available);
    let disks: Vec<_> = image.disks.iter().map(|disk| (disk.device.as_str(), disk.size)).collect();
    assert_eq!(disks, [("/dev/xvda", Some(8))]);
}

#[tokio::test]
async fn subnets_and_security_groups_are_shown_with_their_vpcs() {
    for face in BOTH {
        let world = World::new(face).await;
        let ids = texts(&["subnet-0b000000000000000", "subnet-0f000000000000000"]);
        let subnets = world.cloud.describe_subnets(&ids).await.unwrap();
        let expected = Subnet {
            id: "subnet-0b000000000000000".to_owned(),
            vpc_id: "vpc-00000000000000001".to_owned(),
            zone: "us-east-1b".to_owned(),
            free_addresses: 4091,
        };
        assert_eq!(subnets, [expected]);
        let ids = texts(&["sg-00000000000000001", "sg-00000000000000009"]);
        let groups = world.cloud.describe_security_groups(&ids).await.unwrap();
        let shown: Vec<_> = groups.iter().map(|group| (group.id.as_str(), group.vpc_id.as_str())).collect();
        assert_eq!(shown, [("sg-00000000000000001", "vpc-00000000000000001")]);
    }
}

#[tokio::test]
async fn instance_types_are_found_by_patterns() {
    for face in BOTH {
        let world = World::new(face).await;
        let patterns = texts(&["r7g.*", "m7i.large", "r7x.*"]);
        let mut types = world.cloud.describe_instance_types(&patterns).await.unwrap();
        types.sort_by(|one, other| one.name.cmp(&other.name));
        let expected = |(name, architecture): (&str, &str)| InstanceType {
            name: name.to_owned(),
            architectures: texts(&[architecture]),
        };
        let all = [
            ("m7i.large", "x86_64"),
            ("r7g.2xlarge", "arm64"),
            ("r7g.large", "arm64"),
            ("r7g.xlarge", "arm64"),
        ];
        assert_eq!(types, all.map(expected));
    }
}

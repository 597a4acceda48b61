//! Requests that EC2 refuses for what they say, each with EC2's code, and tags.

use ec2sim::{Options, Response, Truths};

use super::kit::{Kit, SUBNET, ZONE, equal, options};

fn kit() -> Kit {
    Kit::new(Truths::all())
}

/// Source: EC2 error-code reference; `API_RunInstances`.
#[test]
fn a_launch_that_names_what_is_not_there_is_refused() {
    let kit = kit();
    let too_long = data_encoding::BASE64.encode("x".repeat(16_385).as_bytes());
    for (key, value, code) in [
        ("ImageId", "ami-00000000000000000", "InvalidAMIID.NotFound"),
        ("ImageId", "image", "InvalidAMIID.Malformed"),
        ("ImageId", "ami-0000000000000000b", "InvalidParameterValue"),
        ("InstanceType", "r99.huge", "InvalidParameterValue"),
        ("SubnetId", "subnet-00000000000000000", "InvalidSubnetID.NotFound"),
        ("SecurityGroupId.1", "sg-00000000000000000", "InvalidGroup.NotFound"),
        ("IamInstanceProfile.Name", "nobody", "InvalidParameterValue"),
        ("IamInstanceProfile.Arn", "arn:aws:iam::1:instance-profile/nodes", "InvalidParameterValue"),
        ("KeyName", "nobody", "InvalidKeyPair.NotFound"),
        ("Placement.AvailabilityZone", "us-east-1z", "InvalidParameterValue"),
        ("Placement.AvailabilityZone", "us-east-1b", "InvalidParameterValue"),
        ("MaxCount", "0", "InvalidParameterValue"),
        ("MinCount", "one", "InvalidParameterValue"),
        ("UserData", "***", "InvalidParameterValue"),
        ("UserData", &too_long, "InvalidParameterValue"),
        ("MetadataOptions.HttpTokens", "maybe", "InvalidParameterValue"),
        ("InstanceMarketOptions.MarketType", "spot", "UnsupportedOperation"),
        ("NetworkInterface.1.SubnetId", SUBNET, "UnsupportedOperation"),
    ] {
        let mut params =
            vec![("MinCount", "1"), ("MaxCount", "1"), ("InstanceType", "r7i.large"), ("SubnetId", SUBNET)];
        params.push(("ImageId", "ami-0000000000000000a"));
        params.retain(|(other, _)| *other != key);
        params.push((key, value));
        assert_eq!((key, kit.code("RunInstances", &params).as_str()), (key, code));
    }
    assert_eq!(kit.sim.instances(), []);
}

/// Source: EC2 error-code reference, `InsufficientFreeAddressesInSubnet` and `Unsupported`.
#[test]
fn a_subnet_runs_out_of_addresses_and_a_zone_may_lack_a_type() {
    let mut options: Options = options(Truths::all());
    options.world.subnets[0].addresses = 1;
    options.world.instance_types[0].zones = vec!["us-east-1b".into()];
    let kind = options.world.instance_types[0].name.clone();
    let kit = Kit::with(options);
    assert_eq!(kit.run(&[("InstanceType", &kind)]), Err("Unsupported".to_owned()));
    let first = kit.run(&[("InstanceType", "m7i.large")]).unwrap();
    let full = Err("InsufficientFreeAddressesInSubnet".to_owned());
    assert_eq!(kit.run(&[("InstanceType", "m7i.large")]), full);
    let address = kit.instance(&first).unwrap().private_ip;
    kit.call("TerminateInstances", &[("InstanceId.1", &first)]).unwrap();
    kit.pass(10);
    let second = kit.run(&[("InstanceType", "m7i.large")]).unwrap();
    assert_eq!(kit.instance(&second).unwrap().private_ip, address, "addresses and names are used again");
}

/// Source: EC2 user guide, "Tag your Amazon EC2 resources"; `API_CreateTags`, `API_DeleteTags`.
#[test]
fn tags_are_set_removed_and_limited() {
    let kit = kit();
    let id = kit.create_volume(&[]).unwrap();
    let set = |key: &str, value: &str| {
        kit.code("CreateTags", &[("ResourceId.1", &id), ("Tag.1.Key", key), ("Tag.1.Value", value)])
    };
    for number in 0..50 {
        assert_eq!(set(&format!("key-{number}"), "a"), "ok");
    }
    assert_eq!(set("one more", "a"), "TagLimitExceeded");
    assert_eq!(set("key-1", "b"), "ok");
    assert_eq!(set("aws:mine", "a"), "InvalidParameterValue");
    let delete = |key, value| {
        kit.code("DeleteTags", &[("ResourceId.1", id.as_str()), ("Tag.1.Key", key), ("Tag.1.Value", value)])
    };
    assert_eq!(delete("key-1", "a"), "ok");
    assert_eq!(kit.volume(&id).unwrap().tags.len(), 50, "another value is another tag");
    assert_eq!(delete("key-1", "b"), "ok");
    let listed =
        kit.call("DescribeTags", &[("Filter.1.Name", "resource-id"), ("Filter.1.Value.1", &id)]).unwrap();
    let Response::Tags(page) = listed else { panic!("{listed:?}") };
    assert_eq!(page.items.len(), 49);
    let unknown = [("ResourceId.1", "vol-00000000000000000"), ("ResourceId.2", &id), ("Tag.1.Key", "a")];
    assert_eq!(kit.code("CreateTags", &unknown), "InvalidVolume.NotFound");
}

/// Source: `API_CreateVolume`.
#[test]
fn a_volume_that_names_what_is_not_there_is_refused() {
    let kit = kit();
    for (key, value, code) in [
        ("AvailabilityZone", "us-east-1z", "InvalidZone.NotFound"),
        ("VolumeType", "gp9", "UnknownVolumeType"),
        ("SnapshotId", "snap-00000000000000000", "InvalidSnapshot.NotFound"),
        ("KmsKeyId", "a-key", "InvalidParameterDependency"),
        ("MultiAttachEnabled", "true", "UnsupportedOperation"),
        ("TagSpecification.1.ResourceType", "instance", "InvalidParameterValue"),
    ] {
        let mut params = vec![("AvailabilityZone", ZONE), ("Size", "10")];
        params.retain(|(other, _)| *other != key);
        params.push((key, value));
        assert_eq!((key, kit.code("CreateVolume", &params).as_str()), (key, code));
    }
}

/// Source: this simulator's own promise: everything is drawn from the seed.
#[test]
fn the_same_seed_and_calls_give_the_same_world() {
    let play = |seed| {
        let kit = Kit::with(Options { seed, ..options(Truths::all()) });
        kit.running().unwrap();
        kit.available(&[]).unwrap();
        (kit.sim.instances(), kit.sim.volumes())
    };
    assert_eq!(play(7), play(7));
    equal(play(7) == play(8), false).unwrap();
}

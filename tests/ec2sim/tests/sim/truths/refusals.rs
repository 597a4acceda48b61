//! Dry runs, and everything that is not modelled.

use ec2sim::Truth;

use super::kit::{Kit, SUBNET, ZONE, both_ways, equal};

/// Source: API reference, "Common request parameters", `DryRun`: `DryRunOperation` if it would have gone
/// through.
#[test]
fn a_dry_run_changes_nothing_and_says_what_would_have_happened() {
    both_ways(Truth::DryRun, |truths| {
        let kit = Kit::new(truths);
        let (instance, volume) = (kit.running()?, kit.available(&[])?);
        let (free, dry) = (kit.available(&[])?, ("DryRun", "true"));
        kit.call("CreateSnapshot", &[("VolumeId", &volume)])?;
        let snapshot = kit.sim.snapshots()[0].id.clone();
        let run = [("ImageId", "ami-0000000000000000a"), ("InstanceType", "r7i.large"), ("SubnetId", SUBNET)];
        let before = (kit.sim.instances(), kit.sim.volumes(), kit.sim.snapshots());
        for (action, params) in [
            ("RunInstances", [&run[..], &[("MinCount", "1"), ("MaxCount", "1")]].concat()),
            ("CreateVolume", vec![("AvailabilityZone", ZONE), ("Size", "1")]),
            ("CreateSnapshot", vec![("VolumeId", &free)]),
            ("ModifyVolume", vec![("VolumeId", &volume), ("Size", "20")]),
            (
                "AttachVolume",
                vec![("VolumeId", &volume), ("InstanceId", &instance), ("Device", "/dev/xvdba")],
            ),
            ("CreateTags", vec![("ResourceId.1", &volume), ("Tag.1.Key", "a"), ("Tag.1.Value", "b")]),
            ("DeleteTags", vec![("ResourceId.1", &volume)]),
            ("DeleteVolume", vec![("VolumeId", &free)]),
            ("DeleteSnapshot", vec![("SnapshotId", &snapshot)]),
            ("RebootInstances", vec![("InstanceId.1", &instance)]),
            ("StopInstances", vec![("InstanceId.1", &instance)]),
            ("StartInstances", vec![("InstanceId.1", &instance)]),
            ("TerminateInstances", vec![("InstanceId.1", &instance)]),
        ] {
            equal(
                (action, kit.code(action, &[&params[..], &[dry]].concat()).as_str()),
                (action, "DryRunOperation"),
            )?;
        }
        equal((kit.sim.instances(), kit.sim.volumes(), kit.sim.snapshots()), before)
    });
}

/// Source: EC2 answers a dry run of a launch with what is wrong in it (`InvalidParameterValue` for a profile,
/// `InvalidSubnetID.NotFound`, `InvalidGroup.NotFound`) before `DryRunOperation`, and the token of one can be
/// used for a launch: floci-io/floci#3599. Keys are used only when the volumes are made (`KmsRefusalIsLate`),
/// so that no dry run tells of them.
#[test]
fn a_dry_run_of_a_launch_names_what_is_wrong_in_it_and_looks_at_no_key_and_no_token() {
    let kit = Kit::new(ec2sim::Truths::all());
    let run = [
        ("ImageId", "ami-0000000000000000a"),
        ("InstanceType", "r7i.large"),
        ("SubnetId", SUBNET),
        ("MinCount", "1"),
        ("MaxCount", "1"),
        ("ClientToken", "once"),
    ];
    let dry =
        |more: &[(&str, &str)]| kit.code("RunInstances", &[&run[..], &[("DryRun", "true")], more].concat());
    for (more, code) in [
        (("IamInstanceProfile.Name", "nobody"), "InvalidParameterValue"),
        (("IamInstanceProfile.Name", "nodes"), "DryRunOperation"),
        (("SecurityGroupId.1", "sg-00000000000000fff"), "InvalidGroup.NotFound"),
        (("UserData", "!"), "InvalidParameterValue"),
    ] {
        assert_eq!(dry(&[more]), code, "{more:?}");
    }
    let key = [
        ("BlockDeviceMapping.1.DeviceName", "/dev/xvda"),
        ("BlockDeviceMapping.1.Ebs.Encrypted", "true"),
        ("BlockDeviceMapping.1.Ebs.KmsKeyId", "alias/none"),
    ];
    assert_eq!(dry(&key), "DryRunOperation");
    assert_eq!(kit.sim.instances().len(), 0);
    kit.call("RunInstances", &run).unwrap();
    assert_eq!(kit.sim.instances().len(), 1);
}

/// Source: this simulator's own promise: what it does not model is refused, as EC2 would refuse what it does
/// not know.
#[test]
fn what_is_not_modelled_is_refused() {
    both_ways(Truth::UnknownRefused, |truths| {
        let kit = Kit::new(truths);
        kit.refuses("UnsupportedOperation", "CreateFleet", &[])?;
        let volume = [("AvailabilityZone", ZONE), ("Size", "1")];
        kit.refuses(
            "UnsupportedOperation",
            "CreateVolume",
            &[&volume[..], &[("OutpostArn", "arn:…")]].concat(),
        )?;
        let filter = [("Filter.1.Name", "colour"), ("Filter.1.Value.1", "red")];
        kit.refuses("InvalidParameterValue", "DescribeInstances", &filter)
    });
}

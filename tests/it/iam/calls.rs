//! The calls of the golden file: what the operator does, and what a taken-over operator might try.

use super::account::{Call, OTHER_CLUSTER, OTHER_KEY};
use super::shipped::{CLUSTER, KEY};

/// A call with a name; the outcome is in the golden file.
pub struct Row {
    pub name: &'static str,
    pub region: &'static str,
    /// Whether the policy is the variant without `DeleteVolumes`.
    pub deletes_nothing: bool,
    pub call: fn() -> Call,
}

const fn row(name: &'static str, call: fn() -> Call) -> Row {
    Row { name, region: "us-east-1", deletes_nothing: false, call }
}

const fn elsewhere(name: &'static str, call: fn() -> Call) -> Row {
    Row { name, region: "us-west-2", deletes_nothing: false, call }
}

const fn no_delete(name: &'static str, call: fn() -> Call) -> Row {
    Row { name, region: "us-east-1", deletes_nothing: true, call }
}

const OURS: &str = "freehold.dev/cluster-id";
const CONSISTENCY: &str = "freehold.dev/consistency";
const HOP_LIMIT: &str = "MetadataOptions.HttpPutResponseHopLimit";
const ROOT: &str = "BlockDeviceMapping.1.Ebs";

pub static CALLS: &[Row] = &[
    // Reading.
    row("DescribeInstances", || call("DescribeInstances", &[])),
    row("DescribeInstances by id, of another cluster", || {
        on("DescribeInstances", "InstanceId.1", "{i:other}")
    }),
    row("DescribeInstanceStatus", || call("DescribeInstanceStatus", &[])),
    row("DescribeVolumes", || call("DescribeVolumes", &[])),
    row("DescribeVolumesModifications", || call("DescribeVolumesModifications", &[])),
    row("DescribeVolumeStatus", || call("DescribeVolumeStatus", &[])),
    row("DescribeSnapshots", || call("DescribeSnapshots", &[("Owner.1", "self")])),
    row("DescribeSubnets", || call("DescribeSubnets", &[])),
    row("DescribeImages", || call("DescribeImages", &[])),
    row("DescribeSecurityGroups", || call("DescribeSecurityGroups", &[])),
    row("DescribeInstanceTypes", || call("DescribeInstanceTypes", &[])),
    elsewhere("DescribeInstances in another Region", || call("DescribeInstances", &[])),
    // Launching.
    row("RunInstances", || launch(&[])),
    row("RunInstances, dry run", || launch(&[("DryRun", "true")])),
    row("RunInstances without an instance profile", || launch(&[("IamInstanceProfile.Name", "")])),
    row("RunInstances with AWS's own key", || launch(&[("BlockDeviceMapping.1.Ebs.KmsKeyId", "")])),
    row("RunInstances with further tags", || launch(&[("TagSpecification.1.Tag.2.Key", "team")])),
    row("RunInstances without tags", || launch(&[("TagSpecification", "")])),
    row("RunInstances, instance not tagged", || launch(&[("TagSpecification.1", "")])),
    row("RunInstances, volume not tagged", || launch(&[("TagSpecification.2", "")])),
    row("RunInstances, network interface not tagged", || launch(&[("TagSpecification.3", "")])),
    row("RunInstances, instance of another cluster", || {
        launch(&[("TagSpecification.1.Tag.1.Value", OTHER_CLUSTER)])
    }),
    row("RunInstances, volume of another cluster", || {
        launch(&[("TagSpecification.2.Tag.1.Value", OTHER_CLUSTER)])
    }),
    row("RunInstances, network interface of another cluster", || {
        launch(&[("TagSpecification.3.Tag.1.Value", OTHER_CLUSTER)])
    }),
    row("RunInstances with hop limit 2", || launch(&[(HOP_LIMIT, "2")])),
    row("RunInstances with no hop limit", || launch(&[(HOP_LIMIT, "")])),
    row("RunInstances with IMDSv1", || launch(&[("MetadataOptions.HttpTokens", "optional")])),
    row("RunInstances with no word on IMDS", || launch(&[("MetadataOptions", "")])),
    row("RunInstances, root volume not encrypted", || {
        launch(&[("BlockDeviceMapping.1.Ebs.Encrypted", "false"), ("BlockDeviceMapping.1.Ebs.KmsKeyId", "")])
    }),
    row("RunInstances with no word on the root volume", || launch(&[("BlockDeviceMapping", "")])),
    row("RunInstances, second volume not encrypted", || {
        launch(&[
            ("BlockDeviceMapping.2.DeviceName", "/dev/xvdb"),
            ("BlockDeviceMapping.2.Ebs.VolumeSize", "8"),
        ])
    }),
    row("RunInstances, second volume from a snapshot of ours", || {
        launch(&[
            ("BlockDeviceMapping.2.DeviceName", "/dev/xvdb"),
            ("BlockDeviceMapping.2.Ebs.SnapshotId", "{snap:ours}"),
            ("BlockDeviceMapping.2.Ebs.Encrypted", "true"),
        ])
    }),
    row("RunInstances with another role", || launch(&[("IamInstanceProfile.Name", "admin")])),
    row("RunInstances with a key pair", || launch(&[("KeyName", "me")])),
    row("RunInstances with another key", || launch(&[("BlockDeviceMapping.1.Ebs.KmsKeyId", OTHER_KEY)])),
    elsewhere("RunInstances in another Region", || launch(&[])),
    // Instances that exist.
    row("StopInstances, ours", || on("StopInstances", "InstanceId.1", "{i:ours}")),
    row("StopInstances, of another cluster", || on("StopInstances", "InstanceId.1", "{i:other}")),
    row("StopInstances, not tagged", || on("StopInstances", "InstanceId.1", "{i:none}")),
    row("TerminateInstances, ours", || on("TerminateInstances", "InstanceId.1", "{i:ours}")),
    row("TerminateInstances, of another cluster", || on("TerminateInstances", "InstanceId.1", "{i:other}")),
    row("TerminateInstances, not tagged", || on("TerminateInstances", "InstanceId.1", "{i:none}")),
    row("TerminateInstances, gone", || on("TerminateInstances", "InstanceId.1", "i-00000000000000000")),
    row("TerminateInstances, ours and not tagged", || {
        call("TerminateInstances", &[("InstanceId.1", "{i:ours}"), ("InstanceId.2", "{i:none}")])
    }),
    row("StartInstances, ours", || on("StartInstances", "InstanceId.1", "{i:ours}")),
    row("GetConsoleOutput, ours", || on("GetConsoleOutput", "InstanceId", "{i:ours}")),
    row("GetConsoleOutput, not tagged", || on("GetConsoleOutput", "InstanceId", "{i:none}")),
    // Volumes.
    row("CreateVolume", || volume(&[])),
    row("CreateVolume, not encrypted", || volume(&[("Encrypted", "false"), ("KmsKeyId", "")])),
    row("CreateVolume, not tagged", || volume(&[("TagSpecification", "")])),
    row("CreateVolume, of another cluster", || volume(&[("TagSpecification.1.Tag.1.Value", OTHER_CLUSTER)])),
    row("CreateVolume with another key", || volume(&[("KmsKeyId", OTHER_KEY)])),
    row("CreateVolume from a snapshot of ours", || volume(&[("SnapshotId", "{snap:ours}")])),
    row("CreateVolume from a snapshot of another cluster", || volume(&[("SnapshotId", "{snap:other}")])),
    row("CreateVolume from a backup", || volume(&[("SnapshotId", "{snap:backup}")])),
    row("CreateVolume from a final snapshot", || volume(&[("SnapshotId", "{snap:final}")])),
    row("CreateVolume from a backup of another cluster", || {
        volume(&[("SnapshotId", "{snap:backup elsewhere}")])
    }),
    row("ModifyVolume, ours", || call("ModifyVolume", &[("VolumeId", "{vol:ours}"), ("Size", "20")])),
    row("ModifyVolume, not tagged", || call("ModifyVolume", &[("VolumeId", "{vol:none}"), ("Size", "20")])),
    row("AttachVolume, ours to ours", || attach("{vol:ours}", "{i:ours}")),
    row("AttachVolume, ours to a foreign instance", || attach("{vol:ours}", "{i:none}")),
    row("DeleteVolume, ours", || on("DeleteVolume", "VolumeId", "{vol:ours}")),
    row("DeleteVolume, of another cluster", || on("DeleteVolume", "VolumeId", "{vol:other}")),
    row("DeleteVolume, not tagged", || on("DeleteVolume", "VolumeId", "{vol:none}")),
    no_delete("DeleteVolume, ours, without the right to delete", || {
        on("DeleteVolume", "VolumeId", "{vol:ours}")
    }),
    // Snapshots.
    row("CreateSnapshot, of a volume of ours", || snapshot("{vol:ours}", CLUSTER)),
    row("CreateSnapshot, of a foreign volume", || snapshot("{vol:none}", CLUSTER)),
    row("CreateSnapshot, for another cluster", || snapshot("{vol:ours}", OTHER_CLUSTER)),
    row("CreateSnapshot, not tagged", || on("CreateSnapshot", "VolumeId", "{vol:ours}")),
    row("DeleteSnapshot, of a Backup", || on("DeleteSnapshot", "SnapshotId", "{snap:backup}")),
    row("DeleteSnapshot, of a Backup of another cluster", || {
        on("DeleteSnapshot", "SnapshotId", "{snap:backup elsewhere}")
    }),
    row("DeleteSnapshot, a final one", || on("DeleteSnapshot", "SnapshotId", "{snap:final}")),
    row("DeleteSnapshot, ours", || on("DeleteSnapshot", "SnapshotId", "{snap:ours}")),
    // Tags.
    row("CreateTags, as adoption does", || adopt("{vol:ours}", &[])),
    row("CreateTags, adopting a foreign volume", || adopt("{vol:none}", &[])),
    row("CreateTags, giving our volume away", || adopt("{vol:ours}", &[("Tag.1.Value", OTHER_CLUSTER)])),
    row("CreateTags, without the cluster's tag", || tag("{vol:ours}", "freehold.dev/volume-uid", "b")),
    row("CreateTags, another key on our volume", || adopt("{vol:ours}", &[("Tag.5.Key", "team")])),
    row("CreateTags, on our instance", || tag("{i:ours}", OURS, CLUSTER)),
    row("CreateTags, a foreign instance as ours", || tag("{i:none}", OURS, CLUSTER)),
    row("CreateTags, on our snapshot", || tag("{snap:ours}", OURS, CLUSTER)),
    row("CreateTags, on a backup", || tag("{snap:backup}", CONSISTENCY, "EngineCheckpoint")),
    row("CreateTags, on a backup of another cluster", || {
        tag("{snap:backup elsewhere}", CONSISTENCY, "EngineCheckpoint")
    }),
    row("CreateTags, as on a backup on another snapshot", || {
        tag("{snap:ours}", CONSISTENCY, "EngineCheckpoint")
    }),
    row("CreateTags, on a final snapshot", || tag("{snap:final}", CONSISTENCY, "EngineCheckpoint")),
    row("CreateTags, another key on a backup", || tag("{snap:backup}", "team", "a")),
    row("CreateTags, an instance that may be adopted", || take("{i:allowed}", &[])),
    row("CreateTags, a volume that may be adopted", || take("{vol:allowed}", &[])),
    row("CreateTags, what may be adopted in another cluster", || take("{i:allowed elsewhere}", &[])),
    row("CreateTags, what may be adopted and is another cluster's", || take("{i:adopted elsewhere}", &[])),
    row("CreateTags, what may be adopted, for another cluster", || {
        take("{i:allowed}", &[("Tag.1.Value", OTHER_CLUSTER)])
    }),
    row("CreateTags, what may be adopted, with another key", || {
        take("{i:allowed}", &[("Tag.3.Key", "team")])
    }),
    row("CreateTags, allowing an adoption", || {
        take("{i:none}", &[("Tag.3.Key", "freehold.dev/adopt"), ("Tag.3.Value", "a")])
    }),
    row("DeleteTags, of what was adopted", || untake("{i:adopted}", &[])),
    row("DeleteTags, of a volume that was adopted", || untake("{vol:adopted}", &[])),
    row("DeleteTags, of what is another cluster's", || untake("{i:adopted elsewhere}", &[])),
    row("DeleteTags, the tag of adoption", || untake("{i:adopted}", &[("Tag.3.Key", "freehold.dev/adopt")])),
    row("DeleteTags, every tag of what was adopted", || on("DeleteTags", "ResourceId.1", "{i:adopted}")),
    row("DeleteTags, of what was launched", || {
        untake("{i:ours}", &[("Tag.4.Key", "freehold.dev/attempt"), ("Tag.4.Value", "1")])
    }),
    row("DeleteTags, of a volume that was created", || untake("{vol:ours}", &[])),
    row("DeleteTags, of a machine and a disk that has none of ours", || {
        untake("{i:ours}", &[("ResourceId.2", "{vol:none}")])
    }),
    row("DeleteTags, another key of ours", || untake("{i:ours}", &[("Tag.3.Key", "team")])),
    row("DeleteTags, of a snapshot of ours", || untake("{snap:ours}", &[])),
    row("DescribeTags", || call("DescribeTags", &[("Filter.1.Name", "key"), ("Filter.1.Value.1", OURS)])),
    row("DeleteTags, ours", || call("DeleteTags", &[("ResourceId.1", "{vol:ours}"), ("Tag.1.Key", OURS)])),
];

fn call(action: &str, params: &[(&str, &str)]) -> Call {
    let all = [&[("Action", action)], params].concat();
    all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// An action on one thing.
fn on(action: &str, key: &str, id: &str) -> Call {
    call(action, &[(key, id)])
}

/// A call with other values for some parameters; an empty one takes away all parameters of that name.
fn changed(mut call: Call, changes: &[(&str, &str)]) -> Call {
    for (name, value) in changes {
        let below = format!("{name}.");
        call.retain(|(key, _)| key != name && !(value.is_empty() && key.starts_with(&below)));
        if !value.is_empty() {
            call.push(((*name).to_owned(), (*value).to_owned()));
        }
    }
    call
}

/// A launch as the operator makes it, with its tags on the network interface, too.
fn launch(changes: &[(&str, &str)]) -> Call {
    let mut all = call(
        "RunInstances",
        &[
            ("ClientToken", "token"),
            ("MinCount", "1"),
            ("MaxCount", "1"),
            ("SubnetId", "subnet-0a000000000000000"),
            ("InstanceType", "r7i.large"),
            ("ImageId", "ami-0000000000000000a"),
            ("SecurityGroupId.1", "sg-00000000000000001"),
            ("IamInstanceProfile.Name", "nodes"),
            ("BlockDeviceMapping.1.DeviceName", "/dev/xvda"),
            ("MetadataOptions.HttpTokens", "required"),
            (HOP_LIMIT, "1"),
            ("MetadataOptions.InstanceMetadataTags", "disabled"),
        ],
    );
    for (name, value) in [
        ("VolumeSize", "20"),
        ("VolumeType", "gp3"),
        ("Encrypted", "true"),
        ("KmsKeyId", KEY),
        ("DeleteOnTermination", "true"),
    ] {
        all.push((format!("{ROOT}.{name}"), value.to_owned()));
    }
    for (number, kind) in (1..).zip(["instance", "volume", "network-interface"]) {
        all.extend(tags_at_creation(number, kind, CLUSTER));
    }
    changed(all, changes)
}

fn tags_at_creation(number: usize, kind: &str, cluster: &str) -> Call {
    let at = format!("TagSpecification.{number}");
    vec![
        (format!("{at}.ResourceType"), kind.to_owned()),
        (format!("{at}.Tag.1.Key"), OURS.to_owned()),
        (format!("{at}.Tag.1.Value"), cluster.to_owned()),
    ]
}

/// A volume as the operator makes it.
fn volume(changes: &[(&str, &str)]) -> Call {
    let usual = [
        ("AvailabilityZone", "us-east-1a"),
        ("Size", "10"),
        ("VolumeType", "gp3"),
        ("Encrypted", "true"),
        ("KmsKeyId", KEY),
    ];
    let mut all = call("CreateVolume", &usual);
    all.extend(tags_at_creation(1, "volume", CLUSTER));
    changed(all, changes)
}

fn snapshot(volume: &str, cluster: &str) -> Call {
    let mut all = on("CreateSnapshot", "VolumeId", volume);
    all.extend(tags_at_creation(1, "snapshot", cluster));
    all
}

fn attach(volume: &str, instance: &str) -> Call {
    call("AttachVolume", &[("VolumeId", volume), ("InstanceId", instance), ("Device", "/dev/xvdba")])
}

fn tag(id: &str, key: &str, value: &str) -> Call {
    call("CreateTags", &[("ResourceId.1", id), ("Tag.1.Key", key), ("Tag.1.Value", value)])
}

/// The tags of a volume that the operator adopts, as `cloud::identity::adoption_tags` has them.
fn adopt(volume: &str, changes: &[(&str, &str)]) -> Call {
    let mut all = on("CreateTags", "ResourceId.1", volume);
    for (number, (key, value)) in (1..).zip([
        (OURS, CLUSTER),
        ("freehold.dev/volume-uid", "6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11"),
        ("freehold.dev/database", "team-a/orders"),
        ("Name", "orders-k3f9q"),
    ]) {
        all.push((format!("Tag.{number}.Key"), key.to_owned()));
        all.push((format!("Tag.{number}.Value"), value.to_owned()));
    }
    changed(all, changes)
}

/// The tags of an instance or a volume that ran before, as `cloud::identity::ownership_tags` has them.
fn take(id: &str, changes: &[(&str, &str)]) -> Call {
    owned("CreateTags", id, changes)
}

/// The same tags, taken off.
fn untake(id: &str, changes: &[(&str, &str)]) -> Call {
    owned("DeleteTags", id, changes)
}

fn owned(action: &str, id: &str, changes: &[(&str, &str)]) -> Call {
    let uid = if id.starts_with("{i:") { "freehold.dev/node-uid" } else { "freehold.dev/volume-uid" };
    let mut all = on(action, "ResourceId.1", id);
    for (number, (key, value)) in (1..).zip([
        (OURS, CLUSTER),
        (uid, "6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11"),
        ("freehold.dev/database", "team-a/orders"),
    ]) {
        all.push((format!("Tag.{number}.Key"), key.to_owned()));
        all.push((format!("Tag.{number}.Value"), value.to_owned()));
    }
    changed(all, changes)
}

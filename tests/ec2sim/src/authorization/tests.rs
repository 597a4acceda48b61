//! What each call must be allowed: its actions, its resources, and the keys of their contexts.

use std::collections::BTreeSet;

use pretty_assertions::assert_eq;

use super::of_call;
use crate::{
    Delays, Limits, Model, Options, Response,
    iam::{Request, keys},
    model::Effects,
};

const KEY: &str = "arn:aws:kms:us-east-1:123456789012:key/00000000-0000-0000-0000-000000000001";

/// An account with an instance, a volume and a snapshot, and their ids.
struct Account {
    model: Model,
    instance: String,
    volume: String,
    snapshot: String,
}

impl Account {
    fn new() -> Self {
        let limits = Limits::NONE;
        let options = Options { limits, delays: Delays::zero(), ..Options::default() };
        let now = "2026-03-01T00:00:00Z".parse().unwrap();
        let mut model = Model::new(&options, now);
        let mut make = |params: &[(&str, &str)]| -> Response {
            model.call(now, &owned(params), &Effects::default()).unwrap()
        };
        let profile = [("IamInstanceProfile.Name", "nodes"), ("TagSpecification.1.ResourceType", "instance")];
        let tag = [("TagSpecification.1.Tag.1.Key", "Owner"), ("TagSpecification.1.Tag.1.Value", "me")];
        let instance = make(&[&LAUNCH[..], &profile, &tag].concat()).resource_ids().remove(0);
        let volume = make(&[
            ("Action", "CreateVolume"),
            ("AvailabilityZone", "us-east-1a"),
            ("Size", "10"),
            ("VolumeType", "gp3"),
            ("Encrypted", "true"),
            ("KmsKeyId", KEY),
        ]);
        let volume = volume.resource_ids().remove(0);
        make(&[("Action", "DescribeVolumes")]);
        let snapshot = make(&[("Action", "CreateSnapshot"), ("VolumeId", &volume)]).resource_ids().remove(0);
        let restored =
            [("Action", "CreateVolume"), ("AvailabilityZone", "us-east-1a"), ("SnapshotId", &snapshot)];
        let restored = make(&restored).resource_ids().remove(0);
        make(&[("Action", "DeleteVolume"), ("VolumeId", &volume)]);
        Self { model, instance, volume: restored, snapshot }
    }

    /// The requests of a call; `{i}`, `{vol}` and `{snap}` in the values are the ids.
    fn requests(&self, action: &str, params: &[(&str, &str)]) -> Vec<Request> {
        let ids = [("{i}", &self.instance), ("{vol}", &self.volume), ("{snap}", &self.snapshot)];
        let mut all = vec![("Action".to_owned(), action.to_owned())];
        all.extend(
            owned(params).into_iter().map(|(key, value)| {
                (key, ids.iter().fold(value, |value, (name, id)| value.replace(name, id)))
            }),
        );
        of_call(&self.model, &all)
    }
}

const LAUNCH: [(&str, &str); 6] = [
    ("Action", "RunInstances"),
    ("ImageId", "ami-0000000000000000a"),
    ("InstanceType", "r7i.large"),
    ("MinCount", "1"),
    ("MaxCount", "1"),
    ("SubnetId", "subnet-0a000000000000000"),
];

fn owned(params: &[(&str, &str)]) -> Vec<(String, String)> {
    params.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Everything that a launch can name.
const WHOLE: [(&str, &str); 19] = [
    ("KeyName", "me"),
    ("SecurityGroupId.1", "sg-00000000000000001"),
    ("IamInstanceProfile.Name", "nodes"),
    ("MetadataOptions.HttpTokens", "required"),
    ("MetadataOptions.HttpPutResponseHopLimit", "1"),
    ("MetadataOptions.HttpEndpoint", "enabled"),
    ("MetadataOptions.InstanceMetadataTags", "disabled"),
    ("BlockDeviceMapping.1.DeviceName", "/dev/xvda"),
    ("BlockDeviceMapping.1.Ebs.Encrypted", "true"),
    ("BlockDeviceMapping.1.Ebs.KmsKeyId", KEY),
    ("BlockDeviceMapping.2.DeviceName", "/dev/xvdb"),
    ("BlockDeviceMapping.2.Ebs.SnapshotId", "{snap}"),
    ("BlockDeviceMapping.2.Ebs.Iops", "3000"),
    ("BlockDeviceMapping.2.Ebs.Throughput", "125"),
    ("TagSpecification.1.ResourceType", "instance"),
    ("TagSpecification.1.Tag.1.Key", "owner"),
    ("TagSpecification.1.Tag.1.Value", "me"),
    ("TagSpecification.2.ResourceType", "network-interface"),
    ("TagSpecification.2.Tag.1.Key", "owner"),
];

fn said(requests: &[Request]) -> Vec<String> {
    let short = |resource: &str| resource.rsplit(':').next().unwrap_or_default().to_owned();
    requests.iter().map(|request| format!("{} {}", request.action, short(&request.resource))).collect()
}

#[test]
fn a_launch_is_authorised_on_all_that_it_uses_and_makes() {
    let account = Account::new();
    let short = account.requests("RunInstances", &LAUNCH[1..]);
    assert_eq!(
        said(&short),
        [
            "ec2:RunInstances image/ami-0000000000000000a",
            "ec2:RunInstances instance/*",
            "ec2:RunInstances network-interface/*",
            "ec2:RunInstances security-group/*",
            "ec2:RunInstances subnet/subnet-0a000000000000000",
            "ec2:RunInstances volume/*",
        ]
    );
    assert_eq!(short[0].resource, "arn:aws:ec2:us-east-1::image/ami-0000000000000000a");
    assert_eq!(short[1].resource, "arn:aws:ec2:us-east-1:123456789012:instance/*");
    assert_eq!(short[5].context.get("ec2:Encrypted"), Some(["false".to_owned()].as_slice()));
    assert_eq!(short[5].context.get("ec2:VolumeSize"), Some(["8".to_owned()].as_slice()));
    assert_eq!(short[1].context.get("ec2:MetadataHttpTokens"), None, "what is not named is not there");

    let whole = account.requests("RunInstances", &[&LAUNCH[1..], &WHOLE].concat());
    let kms = ["CreateGrant", "Decrypt", "DescribeKey", "GenerateDataKeyWithoutPlaintext", "ReEncryptFrom"];
    let kms = kms.into_iter().chain(["ReEncryptTo"]);
    let kms = kms.map(|action| format!("kms:{action} key/00000000-0000-0000-0000-000000000001"));
    let expected = [
        "ec2:RunInstances image/ami-0000000000000000a",
        "ec2:RunInstances instance/*",
        "ec2:RunInstances key-pair/me",
        "ec2:RunInstances network-interface/*",
        "ec2:RunInstances security-group/sg-00000000000000001",
        &format!("ec2:RunInstances snapshot/{}", account.snapshot),
        "ec2:RunInstances subnet/subnet-0a000000000000000",
        "ec2:RunInstances volume/*",
        "ec2:RunInstances volume/*",
        "ec2:CreateTags instance/*",
        "ec2:CreateTags network-interface/*",
        "iam:PassRole role/nodes",
    ];
    let expected: Vec<String> = expected.into_iter().map(str::to_owned).chain(kms).collect();
    assert_eq!(said(&whole), expected);
    assert_eq!(whole[8].context.get("ec2:Encrypted"), Some(["true".to_owned()].as_slice()));
}

#[test]
fn each_other_call_is_authorised_on_what_it_names() {
    let account = Account::new();
    let (i, vol, snap) = (&account.instance, &account.volume, &account.snapshot);
    let tag = ("Tag.1.Key", "a");
    let volume = [("AvailabilityZone", "us-east-1a"), ("Size", "1")];
    let tagged = [("TagSpecification.1.ResourceType", "volume"), ("TagSpecification.1.Tag.1.Key", "a")];
    for (action, params, expected) in [
        ("DescribeInstances", &[("InstanceId.1", "{i}")][..], "DescribeInstances *".to_owned()),
        ("StopInstances", &[("InstanceId.1", "{i}")], format!("StopInstances instance/{i}")),
        (
            "TerminateInstances",
            &[("InstanceId.1", "{i}"), ("InstanceId.2", "i-0")],
            format!("TerminateInstances instance/{i}, TerminateInstances instance/i-0"),
        ),
        ("GetConsoleOutput", &[("InstanceId", "{i}")], format!("GetConsoleOutput instance/{i}")),
        ("ModifyVolume", &[("VolumeId", "{vol}")], format!("ModifyVolume volume/{vol}")),
        ("DeleteVolume", &[("VolumeId", "{vol}")], format!("DeleteVolume volume/{vol}")),
        ("DeleteSnapshot", &[("SnapshotId", "{snap}")], format!("DeleteSnapshot snapshot/{snap}")),
        (
            "AttachVolume",
            &[("VolumeId", "{vol}"), ("InstanceId", "{i}")],
            format!("AttachVolume instance/{i}, AttachVolume volume/{vol}"),
        ),
        ("DetachVolume", &[("VolumeId", "{vol}")], format!("DetachVolume volume/{vol}")),
        (
            "CreateTags",
            &[("ResourceId.1", "{snap}"), ("ResourceId.2", "{i}"), tag],
            format!("CreateTags snapshot/{snap}, CreateTags instance/{i}"),
        ),
        ("DeleteTags", &[("ResourceId.1", "{vol}"), tag], format!("DeleteTags volume/{vol}")),
        ("CreateVolume", &volume, "CreateVolume volume/*".to_owned()),
        (
            "CreateVolume",
            &[&volume[..], &tagged, &[("SnapshotId", "{snap}")]].concat(),
            format!("CreateVolume snapshot/{snap}, CreateVolume volume/*, CreateTags volume/*"),
        ),
        (
            "CreateSnapshot",
            &[("VolumeId", "{vol}")],
            format!("CreateSnapshot snapshot/*, CreateSnapshot volume/{vol}"),
        ),
        ("CreateFleet", &[], String::new()),
        ("CreateTags", &[("ResourceId.1", "ami-0"), tag], String::new()),
    ] {
        let said = said(&account.requests(action, params)).join(", ").replace("ec2:", "");
        assert_eq!(said, expected, "{action}");
    }
}

#[test]
fn the_keys_that_a_policy_may_name_are_those_that_requests_have() {
    let account = Account::new();
    let tag = [("Tag.1.Key", "owner"), ("Tag.1.Value", "me")];
    let mut all = account.requests("RunInstances", &[&LAUNCH[1..], &WHOLE].concat());
    all.extend(account.requests("TerminateInstances", &[("InstanceId.1", "{i}")]));
    let ids = [("ResourceId.1", "{i}"), ("ResourceId.2", "{vol}"), ("ResourceId.3", "{snap}")];
    all.extend(account.requests("CreateTags", &[&ids[..], &tag].concat()));
    all.extend(account.requests("CreateVolume", &[("SnapshotId", "{snap}"), ("KmsKeyId", KEY)]));
    all.extend(account.requests("CreateSnapshot", &[("VolumeId", "{vol}")]));
    let lower = |name: &str| name.to_lowercase();
    let had: BTreeSet<String> =
        all.iter().flat_map(|request| request.context.all().keys().cloned()).collect();
    let tags: Vec<String> = keys::TAGS.iter().map(|prefix| lower(&format!("{prefix}owner"))).collect();
    let known: BTreeSet<String> =
        keys::SINGLE.iter().chain([&keys::TAG_KEYS]).map(|name| lower(name)).chain(tags).collect();
    assert_eq!(had, known);
}

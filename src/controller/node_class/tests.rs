//! What a NodeClass reports about what it names: faults, conditions, sentences.

mod launch_check;
mod launches;
mod messages;

use jiff::Timestamp;
use k8s_openapi::api::storage::v1::StorageClass;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use self::launch_check::{no_profile, refusal, refused};
use super::catalog::Catalog;
use super::fault::Fault;
use super::launch_check::LaunchCheck;
use super::observe::Observed;
use super::plan::{Action, plan};
use super::status::{changes, status};
use super::user_data::mistake::Mistake;
use super::wait::ClassWait;
use crate::api::node_class_status::DryRun;
use crate::api::{ConditionType, EventReason, InstanceId, NodeClass, NodeClassStatus, Reason};
use crate::cloud::Class;
use crate::cloud::CloudError;
use crate::cloud::call::Call;
use crate::cloud::catalog::{Image, ImageDisk, InstanceType, SecurityGroup, Subnet};
use crate::controller::call_blocked::CallBlocked;
use crate::controller::conditions;
use crate::controller::pass::acted::Acted;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn class() -> NodeClass {
    serde_json::from_value(json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "NodeClass",
        "metadata": {"name": "default", "generation": 3, "finalizers": ["freehold.dev/finalizer"]},
        "spec": {
            "imageID": "ami-1",
            "subnets": [{"id": "subnet-a", "zone": "us-east-1a"}, {"id": "subnet-b", "zone": "us-east-1b"}],
            "securityGroupIDs": ["sg-1"],
            "userData": "boot",
            "instanceTypes": ["r7i.*", "m7i.large"],
        },
    }))
    .unwrap()
}

fn subnet(letter: char) -> Subnet {
    Subnet {
        id: format!("subnet-{letter}"),
        vpc_id: "vpc-1".to_owned(),
        zone: format!("us-east-1{letter}"),
        free_addresses: 100,
    }
}

fn instance_type(name: &str, architecture: &str) -> InstanceType {
    InstanceType { name: name.to_owned(), architectures: vec![architecture.to_owned()] }
}

fn storage_class() -> Value {
    json!({"metadata": {"name": "freehold"}, "provisioner": "ebs.csi.aws.com", "allowVolumeExpansion": true})
}

/// A world in which everything is there and fits.
fn world() -> Observed {
    Observed {
        class: class(),
        catalog: Ok(Catalog {
            image: Some(Image {
                id: "ami-1".to_owned(),
                name: "al2023".to_owned(),
                is_available: true,
                architecture: "x86_64".to_owned(),
                root_device: "/dev/xvda".to_owned(),
                disks: vec![ImageDisk { device: "/dev/xvda".to_owned(), size: Some(20) }],
            }),
            subnets: vec![subnet('b'), subnet('a')],
            security_groups: vec![SecurityGroup { id: "sg-1".to_owned(), vpc_id: "vpc-1".to_owned() }],
            instance_types: vec![
                instance_type("r7i.large", "x86_64"),
                instance_type("r7i.xlarge", "x86_64"),
                instance_type("m7i.large", "x86_64"),
            ],
        }),
        storage_class: Some(serde_json::from_value(storage_class()).unwrap()),
        launch_check: LaunchCheck { answer: Some(DryRun::default()), ..LaunchCheck::default() },
        launches: Vec::new(),
        ended_launch: None,
        users: Vec::new(),
    }
}

fn with(change: impl FnOnce(&mut Observed)) -> Observed {
    let mut world = world();
    change(&mut world);
    world
}

fn with_catalog(change: impl FnOnce(&mut Catalog)) -> Observed {
    with(|it| change(it.catalog.as_mut().unwrap()))
}

fn with_image(change: impl FnOnce(&mut Image)) -> Observed {
    with_catalog(|it| change(it.image.as_mut().unwrap()))
}

fn with_storage_class(changes: &[(&str, Value)]) -> Observed {
    let mut shown = storage_class();
    for (key, value) in changes {
        shown[*key] = value.clone();
    }
    with(|it| it.storage_class = Some(serde_json::from_value::<StorageClass>(shown).unwrap()))
}

fn unread() -> CallBlocked {
    let error = CloudError::in_doubt("DescribeImages", "no answer");
    assert_eq!(error.class, Class::InDoubt);
    CallBlocked::Refused { call: Call::DescribeImages, error, until: Some(at(60)) }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn what_is_not_there_or_does_not_fit_is_named() {
    let other_vpc = "vpc-2".to_owned();
    let rows: Vec<(&str, Observed, Vec<Fault>)> = vec![
        ("everything fits", world(), Vec::new()),
        ("no image", with_catalog(|it| it.image = None), vec![Fault::ImageNotFound("ami-1".into())]),
        (
            "an image that is not available",
            with_image(|it| it.is_available = false),
            vec![Fault::ImageNotAvailable("ami-1".into())],
        ),
        (
            "another root device",
            with_image(|it| it.root_device = "/dev/sda1".into()),
            vec![Fault::RootDevice { image: "/dev/sda1".into(), class: "/dev/xvda".into() }],
        ),
        (
            "a root disk that is too small for the image",
            with_image(|it| it.disks[0].size = Some(31)),
            vec![Fault::DiskTooSmall { device: "/dev/xvda".into(), image: 31, class: 30 }],
        ),
        ("a root disk of the image's own size", with_image(|it| it.disks[0].size = Some(30)), Vec::new()),
        (
            "a disk of the image that the class does not name",
            with_image(|it| it.disks.push(ImageDisk { device: "/dev/xvdb".into(), size: Some(20) })),
            vec![Fault::DiskNotNamed("/dev/xvdb".into())],
        ),
        (
            "a second disk that is too small",
            with(|it| {
                let image = it.catalog.as_mut().unwrap().image.as_mut().unwrap();
                image.disks.push(ImageDisk { device: "/dev/xvdb".into(), size: Some(20) });
                let volume = json!({"deviceName": "/dev/xvdb", "size": 19, "type": "gp3"});
                it.class.spec.additional_volumes = vec![serde_json::from_value(volume).unwrap()];
            }),
            vec![Fault::DiskTooSmall { device: "/dev/xvdb".into(), image: 20, class: 19 }],
        ),
        (
            "a subnet that is not there",
            with_catalog(|it| it.subnets.truncate(1)),
            vec![Fault::SubnetNotFound("subnet-a".into())],
        ),
        (
            "a subnet in another zone",
            with_catalog(|it| it.subnets[0].zone = "us-east-1c".into()),
            vec![Fault::SubnetZone {
                subnet: "subnet-b".into(),
                zone: "us-east-1c".into(),
                class: "us-east-1b".into(),
            }],
        ),
        (
            "subnets of two VPCs",
            with_catalog(|it| it.subnets[0].vpc_id.clone_from(&other_vpc)),
            vec![Fault::SubnetVpc {
                one: ("subnet-a".into(), "vpc-1".into()),
                other: ("subnet-b".into(), "vpc-2".into()),
            }],
        ),
        (
            "a subnet without a free address",
            with_catalog(|it| it.subnets[1].free_addresses = 0),
            vec![Fault::NoFreeAddresses(texts(&["subnet-a"]))],
        ),
        (
            "a security group that is not there",
            with_catalog(|it| it.security_groups.clear()),
            vec![Fault::SecurityGroupNotFound("sg-1".into())],
        ),
        (
            "a security group of another VPC",
            with_catalog(|it| it.security_groups[0].vpc_id.clone_from(&other_vpc)),
            vec![Fault::SecurityGroupVpc {
                group: "sg-1".into(),
                vpc: "vpc-2".into(),
                subnets: "vpc-1".into(),
            }],
        ),
        (
            "a pattern without a type",
            with_catalog(|it| it.instance_types.truncate(2)),
            vec![Fault::NoSuchType("m7i.large".into())],
        ),
        (
            "types of another architecture",
            with_image(|it| it.architecture = "arm64".into()),
            vec![Fault::Architecture { image: "arm64".into(), patterns: texts(&["r7i.*", "m7i.large"]) }],
        ),
        (
            "a pattern of both architectures",
            with_catalog(|it| it.instance_types[0].architectures = vec!["arm64".into()]),
            Vec::new(),
        ),
        (
            "no StorageClass",
            with(|it| it.storage_class = None),
            vec![Fault::StorageClassNotFound("freehold".into())],
        ),
        (
            "another driver's StorageClass",
            with_storage_class(&[("provisioner", json!("efs.csi.aws.com"))]),
            vec![Fault::StorageClassDriver {
                name: "freehold".into(),
                provisioner: "efs.csi.aws.com".into(),
            }],
        ),
        (
            "a StorageClass whose volumes cannot grow",
            with_storage_class(&[("allowVolumeExpansion", Value::Null)]),
            vec![Fault::StorageClassFixed("freehold".into())],
        ),
        (
            "a profile that EC2 does not know",
            with(|it| {
                it.class.spec.instance_profile = Some("nodes".into());
                it.launch_check.answer = Some(no_profile());
            }),
            vec![Fault::ProfileNotFound("nodes".into())],
        ),
        (
            "a launch that the role may not make",
            with(|it| it.launch_check.answer = Some(refused("UnauthorizedOperation", "no"))),
            vec![Fault::LaunchForbidden(refusal("UnauthorizedOperation", "no"))],
        ),
        (
            "another refusal",
            with(|it| it.launch_check.answer = Some(refused("InvalidParameterCombination", "no"))),
            vec![Fault::LaunchRefused(refusal("InvalidParameterCombination", "no"))],
        ),
        (
            "a refusal of what is named already",
            with(|it| {
                it.launch_check.answer = Some(refused("InvalidAMIID.NotFound", "no"));
                it.catalog.as_mut().unwrap().image = None;
            }),
            vec![Fault::ImageNotFound("ami-1".into())],
        ),
        ("no answer to a dry run yet", with(|it| it.launch_check.answer = None), Vec::new()),
        (
            "a launch that EC2 ended",
            with(|it| it.ended_launch = Some(launches::ended_launch(0))),
            vec![Fault::LaunchEnded { instance: InstanceId("i-1".into()), has_key: false }],
        ),
        (
            "user data that EC2 refuses",
            with(|it| it.class.spec.user_data = "é".repeat(8193)),
            vec![Fault::UserData(Mistake::TooLong(16_386))],
        ),
        (
            "several",
            with(|it| {
                it.storage_class = None;
                it.catalog.as_mut().unwrap().image = None;
            }),
            vec![Fault::ImageNotFound("ami-1".into()), Fault::StorageClassNotFound("freehold".into())],
        ),
    ];
    for (name, observed, faults) in rows {
        let plan = plan(&observed);
        assert_eq!(plan.faults, faults, "{name}");
        let prevented = faults.iter().any(Fault::prevents_launches);
        assert_eq!((plan.launchable, plan.waiting, plan.actions), (Some(!prevented), None, vec![]), "{name}");
    }
}

#[test]
fn the_finalizer_comes_first_and_goes_when_nothing_uses_the_class() {
    let new = with(|it| it.class.metadata.finalizers = None);
    assert_eq!(plan(&new).actions, [Action::AddFinalizer]);
    let deleted = |users: &[&str]| {
        with(|it| {
            let deleted = json!({"deletionTimestamp": "2027-01-01T00:00:00Z"});
            it.class.metadata.deletion_timestamp =
                serde_json::from_value(deleted["deletionTimestamp"].clone()).unwrap();
            it.users = texts(users);
        })
    };
    assert_eq!(plan(&deleted(&[])).actions, [Action::RemoveFinalizer]);
    let used = plan(&deleted(&["Database team-a/orders"]));
    assert_eq!(used.actions, []);
    assert_eq!(used.waiting, Some(ClassWait::InUse(texts(&["Database team-a/orders"]))));
    // Its machines are launched as before.
    assert_eq!(used.launchable, Some(true));
}

/// The status that follows `old`, in this world.
fn next(observed: &Observed, old: Option<NodeClassStatus>) -> NodeClassStatus {
    let mut class = observed.class.clone();
    class.status = old;
    status(observed, &plan(observed), &Acted::new(class), at(0))
}

fn condition(status: &NodeClassStatus, kind: ConditionType) -> (&str, &str) {
    let condition = conditions::find(&status.conditions, kind).unwrap();
    (&condition.status, &condition.reason)
}

#[test]
fn the_conditions_say_where_the_fault_is() {
    let fits = next(&world(), None);
    assert!(conditions::is_true(&fits.conditions, ConditionType::Ready));
    assert_eq!(condition(&fits, ConditionType::Stalled), ("False", "Progressing"));
    let zones: Vec<&str> = fits.subnets.iter().map(|subnet| subnet.zone.as_str()).collect();
    assert_eq!(zones, ["us-east-1a", "us-east-1b"]);
    assert_eq!(fits.image.as_ref().unwrap().architecture, "x86_64");

    let no_storage_class = next(&with(|it| it.storage_class = None), Some(fits.clone()));
    for (kind, expected) in [
        (ConditionType::Ready, ("False", "StorageClassUnusable")),
        (ConditionType::Stalled, ("True", "StorageClassUnusable")),
        (ConditionType::StorageClassReady, ("False", "StorageClassUnusable")),
        (ConditionType::ImageReady, ("True", "AsExpected")),
        (ConditionType::NetworkReady, ("True", "AsExpected")),
        (ConditionType::InstanceTypesReady, ("True", "AsExpected")),
    ] {
        assert_eq!(condition(&no_storage_class, kind), expected, "{kind:?}");
    }
    assert_eq!(no_storage_class.launchable, Some(true));
    let no_profile = next(&with(|it| it.launch_check.answer = Some(no_profile())), Some(fits.clone()));
    assert_eq!(condition(&no_profile, ConditionType::LaunchAccepted), ("False", "InvalidRequest"));
    assert_eq!(condition(&no_profile, ConditionType::UserDataReady), ("True", "AsExpected"));
    // A dry run that has to wait keeps nothing from being ready.
    let unchecked = next(&with(|it| it.launch_check.answer = None), None);
    assert_eq!(condition(&unchecked, ConditionType::LaunchAccepted), ("False", "Progressing"));
    assert_eq!(condition(&unchecked, ConditionType::Ready), ("True", "AsExpected"));
    // Addresses become free by themselves.
    let full = next(&with_catalog(|it| it.subnets[1].free_addresses = 0), None);
    assert_eq!(condition(&full, ConditionType::Ready), ("False", "NoFreeAddresses"));
    assert_eq!(condition(&full, ConditionType::Stalled), ("False", "Progressing"));
}

#[test]
fn while_ec2_cannot_be_read_what_was_found_of_this_spec_stands() {
    let blind = with(|it| it.catalog = Err(unread()));
    let fits = next(&world(), None);
    assert_eq!(next(&blind, Some(fits.clone())), fits);
    let changed = with(|it| {
        it.catalog = Err(unread());
        it.class.metadata.generation = Some(4);
    });
    let unknown = next(&changed, Some(fits));
    assert_eq!((unknown.launchable, unknown.observed_generation), (None, Some(4)));
    assert_eq!(condition(&unknown, ConditionType::Ready), ("False", Reason::InDoubt.as_str()));
    assert_eq!(condition(&unknown, ConditionType::StorageClassReady), ("False", Reason::InDoubt.as_str()));
}

#[test]
fn an_event_tells_of_each_change_once() {
    let (fits, wrong) = (next(&world(), None), next(&with_catalog(|it| it.image = None), None));
    let reason = |old: &NodeClassStatus, new: &NodeClassStatus| {
        changes(old, new).map(|happened| (happened.reason, happened.warning))
    };
    let none = NodeClassStatus::default();
    assert_eq!(reason(&none, &fits), Some((EventReason::NodeClassReady, false)));
    assert_eq!(reason(&fits, &fits), None);
    assert_eq!(reason(&fits, &wrong), Some((EventReason::NodeClassFaulty, true)));
    assert_eq!(reason(&wrong, &wrong), None);
    let blind = next(&with(|it| it.catalog = Err(unread())), None);
    assert_eq!(reason(&none, &blind), None);
}

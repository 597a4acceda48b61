//! Every sentence about a NodeClass, in a golden file: a changed one shows in a review.

use super::launch_check::refusal;
use super::{texts, unread};
use crate::api::InstanceId;
use crate::controller::node_class::fault::Fault;
use crate::controller::node_class::messages;
use crate::controller::node_class::user_data::form::{Form, Platform};
use crate::controller::node_class::user_data::mistake::Mistake;
use crate::controller::node_class::wait::ClassWait;
use crate::controller::tests::golden::{Sentence, compare_sentences, complete, variant};

fn faults() -> Vec<Fault> {
    complete([
        Fault::ImageNotFound("ami-1".into()),
        Fault::ImageNotAvailable("ami-1".into()),
        Fault::RootDevice { image: "/dev/sda1".into(), class: "/dev/xvda".into() },
        Fault::DiskTooSmall { device: "/dev/xvda".into(), image: 40, class: 30 },
        Fault::DiskNotNamed("/dev/xvdb".into()),
        Fault::SubnetNotFound("subnet-a".into()),
        Fault::SubnetZone {
            subnet: "subnet-a".into(),
            zone: "us-east-1b".into(),
            class: "us-east-1a".into(),
        },
        Fault::SubnetVpc {
            one: ("subnet-a".into(), "vpc-1".into()),
            other: ("subnet-b".into(), "vpc-2".into()),
        },
        Fault::NoFreeAddresses(texts(&["subnet-a", "subnet-b"])),
        Fault::SecurityGroupNotFound("sg-1".into()),
        Fault::SecurityGroupVpc { group: "sg-1".into(), vpc: "vpc-2".into(), subnets: "vpc-1".into() },
        Fault::NoSuchType("r7x.*".into()),
        Fault::Architecture { image: "arm64".into(), patterns: texts(&["r7i.*", "m7i.large"]) },
        Fault::StorageClassNotFound("freehold".into()),
        Fault::StorageClassDriver { name: "efs".into(), provisioner: "efs.csi.aws.com".into() },
        Fault::StorageClassFixed("gp2".into()),
        Fault::ProfileNotFound("nodes".into()),
        Fault::LaunchForbidden(refusal(
            "UnauthorizedOperation",
            "You are not authorized to perform this operation. User: assumed-role/… is not authorized to \
             perform: iam:PassRole on resource: role/…",
        )),
        Fault::LaunchRefused(refusal(
            "InvalidParameterCombination",
            "The parameter KmsKeyId cannot be combined with this image",
        )),
        Fault::LaunchEnded { instance: InstanceId("i-1".into()), has_key: true },
        Fault::LaunchEnded { instance: InstanceId("i-1".into()), has_key: false },
        Fault::UserData(Mistake::TooLong(16_390)),
    ])
}

fn mistakes() -> Vec<Mistake> {
    complete([
        Mistake::TooLong(16_390),
        Mistake::Form { platform: Platform::Bottlerocket, form: Form::Script },
        Mistake::Form { platform: Platform::Al2023, form: Form::Bottlerocket },
        Mistake::Syntax { form: Form::Bottlerocket, error: "duplicate key in line 13".into() },
        Mistake::Syntax { form: Form::Mime, error: "its Content-Type has no boundary".into() },
        Mistake::Incomplete(texts(&["spec.cluster.name", "spec.cluster.cidr"])),
        Mistake::Label("yes".into()),
        Mistake::Taint("team=data:NoExecute".into()),
        Mistake::MaxPods(2),
    ])
}

fn waits() -> Vec<ClassWait> {
    let users: Vec<String> = (1..=7).map(|number| format!("Database team-a/orders-{number}")).collect();
    complete([
        ClassWait::AddingFinalizer,
        ClassWait::Unread(unread()),
        ClassWait::InUse(texts(&["Database team-a/orders", "Node team-a/orders-k3f9q-1"])),
        ClassWait::InUse(users),
        ClassWait::Unused,
    ])
}

#[test]
fn the_sentences_of_a_node_class_are_those_of_the_golden_file() {
    let mut sentences: Vec<Sentence> = waits()
        .iter()
        .map(|wait| Sentence::wait(variant(wait), wait.reason(), wait.is_stalled(), wait.message()))
        .collect();
    sentences.extend(
        faults()
            .iter()
            .map(|fault| Sentence::wait(variant(fault), fault.reason(), fault.is_stalled(), fault.message())),
    );
    let user_data = |it: &Mistake| {
        let fault = Fault::UserData(it.clone());
        Sentence::wait(variant(it), fault.reason(), fault.is_stalled(), fault.message())
    };
    sentences.extend(mistakes().iter().map(user_data));
    sentences.extend([
        Sentence::other("Ready", messages::READY.to_owned()),
        Sentence::other("ImageReady", messages::IMAGE_READY.to_owned()),
        Sentence::other("NetworkReady", messages::NETWORK_READY.to_owned()),
        Sentence::other("InstanceTypesReady", messages::INSTANCE_TYPES_READY.to_owned()),
        Sentence::other("StorageClassReady", messages::STORAGE_CLASS_READY.to_owned()),
        Sentence::other("UserDataReady", messages::USER_DATA_READY.to_owned()),
        Sentence::other("LaunchAccepted", messages::LAUNCH_ACCEPTED.to_owned()),
        Sentence::other("LaunchAccepted, before the first answer", messages::LAUNCH_NOT_CHECKED.to_owned()),
    ]);
    compare_sentences("node_class", &sentences);
}

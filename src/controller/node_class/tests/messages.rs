//! Every sentence about a NodeClass, in a golden file: a changed one shows in a review.

use super::{texts, unread};
use crate::controller::node_class::fault::Fault;
use crate::controller::node_class::messages;
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
    sentences.extend([
        Sentence::other("Ready", messages::READY.to_owned()),
        Sentence::other("ImageReady", messages::IMAGE_READY.to_owned()),
        Sentence::other("NetworkReady", messages::NETWORK_READY.to_owned()),
        Sentence::other("InstanceTypesReady", messages::INSTANCE_TYPES_READY.to_owned()),
        Sentence::other("StorageClassReady", messages::STORAGE_CLASS_READY.to_owned()),
    ]);
    compare_sentences("node_class", &sentences);
}

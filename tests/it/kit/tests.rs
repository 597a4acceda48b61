//! The checks of the kit are seen to fail: a rule that nothing can break is no rule.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ec2sim::{Options, Simulator};
use freehold::cloud::identity::{self, Kind};

use super::invariants::{self, Judged};
use super::process::OPERATOR;

const CLUSTER: &str = "kit";

/// What EC2 is asked in the operator's name, though no rule allows it, and what the failure says.
fn is_noticed(call: &[(&str, &str)], says: &str) {
    let ec2 = Simulator::new(Options::default()).unwrap();
    let judge = || {
        invariants::judge(&Judged {
            cluster: CLUSTER,
            ec2: &ec2,
            seen: Vec::new(),
            deleted: &[],
            nodes: Vec::new(),
            volumes: Vec::new(),
        });
    };
    judge();
    let _ = ec2.call(OPERATOR, call);
    let panic = catch_unwind(AssertUnwindSafe(judge)).expect_err(says);
    let said = panic.downcast_ref::<String>().unwrap();
    assert!(said.contains(says), "{said}, and not {says:?}");
}

const RUN: [(&str, &str); 6] = [
    ("Action", "RunInstances"),
    ("ImageId", "ami-0000000000000000a"),
    ("InstanceType", "r7i.large"),
    ("SubnetId", "subnet-0a000000000000000"),
    ("MinCount", "1"),
    ("MaxCount", "1"),
];

#[test]
fn every_rule_that_is_broken_is_noticed() {
    let attach =
        [("Action", "AttachVolume"), ("VolumeId", "vol-1"), ("InstanceId", "i-1"), ("Device", "/dev/sdf")];
    is_noticed(&attach, "the operator never calls these");
    is_noticed(&RUN, "a creating call without its owner's tag");
    let tags = [
        ("TagSpecification.1.ResourceType", "instance"),
        ("TagSpecification.1.Tag.1.Key", "freehold.dev/node-uid"),
        ("TagSpecification.1.Tag.1.Value", "a-node"),
        ("TagSpecification.1.Tag.2.Key", "freehold.dev/attempt"),
        ("TagSpecification.1.Tag.2.Value", "1"),
        ("TagSpecification.1.Tag.3.Key", "freehold.dev/cluster-id"),
        ("TagSpecification.1.Tag.3.Value", CLUSTER),
    ];
    let other_token = [&RUN[..], &tags, &[("ClientToken", "of-its-own")]].concat();
    is_noticed(&other_token, "the token is the identity's");
    let token = identity::token(CLUSTER, Kind::Node, "a-node", 1).0;
    let no_intent = [&RUN[..], &tags, &[("ClientToken", token.as_str())]].concat();
    is_noticed(&no_intent, "was written before the call");
}

//! The checks of the kit are seen to fail: a rule that nothing can break is no rule.

use crate::kit::env::Env as _;
use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use serde_json::json;

use super::invariants;
use super::tap::{Point, Which};
use super::test_env::{OPERATOR, Options, TestEnv, run};

/// What EC2 is asked in the operator's name, though no rule allows it.
async fn is_noticed(name: &str, calls: &[&[(&str, &str)]]) {
    let env = TestEnv::build(name, Options::default()).await;
    invariants::check(&env).await;
    for call in calls {
        let _ = env.ec2().call(OPERATOR, call);
    }
    assert!(
        AssertUnwindSafe(invariants::check(&env)).catch_unwind().await.is_err(),
        "{name} was not noticed"
    );
    env.close_unchecked().await;
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
    run(async {
        is_noticed(
            "kit-attach",
            &[&[
                ("Action", "AttachVolume"),
                ("VolumeId", "vol-1"),
                ("InstanceId", "i-1"),
                ("Device", "/dev/sdf"),
            ]],
        )
        .await;
        is_noticed("kit-untagged", &[&RUN]).await;
        let tags = [
            ("TagSpecification.1.ResourceType", "instance"),
            ("TagSpecification.1.Tag.1.Key", "freehold.dev/node-uid"),
            ("TagSpecification.1.Tag.1.Value", "a-node"),
            ("TagSpecification.1.Tag.2.Key", "freehold.dev/attempt"),
            ("TagSpecification.1.Tag.2.Value", "1"),
            ("TagSpecification.1.Tag.3.Key", "freehold.dev/cluster-id"),
            ("TagSpecification.1.Tag.3.Value", "kit-no-intent"),
        ];
        let other_token = [&RUN[..], &tags, &[("ClientToken", "of-its-own")]].concat();
        is_noticed("kit-token", &[&other_token]).await;
        let token = freehold::cloud::identity::token(
            "kit-no-intent",
            freehold::cloud::identity::Kind::Node,
            "a-node",
            1,
        )
        .0;
        let no_intent = [&RUN[..], &tags, &[("ClientToken", token.as_str())]].concat();
        is_noticed("kit-no-intent", &[&no_intent]).await;
    });
}

#[test]
fn a_request_that_is_stopped_before_it_is_sent_was_never_carried_out() {
    run(async {
        let mut env = TestEnv::build("kit-before", Options::default()).await;
        let finalizer = Which { method: "PATCH", path: "/databases/", body: &["\"finalizers\""] };
        let reached = env.tap.stop_at(finalizer, Point::Before);
        env.start_operator();
        env.create("orders", &json!({})).await;
        reached.await.unwrap();
        env.kill_operator();
        env.tap.thaw();
        let database = env.api::<freehold::api::Database>().get("orders").await.unwrap();
        assert_eq!(database.metadata.finalizers, None);

        let reached = env.tap.stop_at(finalizer, Point::AnswerLost);
        env.start_operator();
        reached.await.unwrap();
        env.kill_operator();
        env.tap.thaw();
        let database = env.api::<freehold::api::Database>().get("orders").await.unwrap();
        assert!(database.metadata.finalizers.is_some());
        env.close().await;
    });
}

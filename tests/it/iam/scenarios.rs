//! The operator under its IAM policy: with a key of the class' own, and without rights that it uses.

use ec2sim::{Limits, Options, Policy};
use freehold::api::{Database, Node, Volume};
use freehold_box::account::policy;
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::ResourceExt as _;
use pretty_assertions::assert_eq;
use serde_json::json;

use super::shipped;
use crate::kit::env::Env as _;
use crate::kit::objects::Told as _;
use crate::kit::process::OPERATOR;
use crate::kit::rig_env::{self, RigEnv};
use crate::kit::statements;
use crate::kit::wait::{seen, within};
use crate::lives::house::{CLUSTER, NAMESPACE};
use crate::lives::life::CALM;

/// An operator with the shipped policy, from which something is taken.
async fn without(changed: impl FnOnce(&str) -> String) -> RigEnv {
    let mut account = Options { limits: Limits::NONE, ..Options::default() };
    let policy = Policy::read(&changed(&policy::text(&account.world, CLUSTER))).unwrap();
    account.policies.insert(OPERATOR.to_owned(), policy);
    RigEnv::start_in(&["--namespace", NAMESPACE], account).await
}

#[test]
fn with_a_key_of_the_class_a_database_is_made_grown_and_snapshotted() {
    rig_env::run(|| async {
        let mut env = RigEnv::build().await;
        let key = env.ec2().world().kms_keys[0].clone();
        env.edit_class(&json!({"kmsKeyID": key})).await;
        env.start_operator();
        env.create("orders", &json!({"deletionPolicy": "Snapshot"})).await;
        env.ready("orders").await;
        let used = env.ec2().used_statements(OPERATOR);
        assert!(
            ["EncryptWithKeys", "GrantKeysToInstances"].iter().all(|sid| used.contains(*sid)),
            "{used:?}"
        );
        env.edit("orders", &json!({"storage": {"size": "200Gi"}})).await;
        env.ready("orders").await;
        env.delete("orders").await;
        env.gone("orders").await;
        env.close().await;
    });
}

#[test]
fn without_the_right_to_delete_volumes_the_volume_stays_until_the_policy_is_one_that_keeps_it() {
    rig_env::run(|| async {
        let env = without(|policy| shipped::without_statement(policy, "DeleteVolumes")).await;
        env.create("orders", &json!({"deletionPolicy": "Delete"})).await;
        env.ready("orders").await;
        env.delete("orders").await;
        let message = within(CALM, "the Volume reporting what is not allowed", || async {
            let volumes = env.list::<Volume>().await;
            let conditions: Vec<_> = volumes.iter().map(|volume| volume.condition("Ready")).collect();
            let refused = conditions.iter().find(|condition| condition.2.contains("ec2:DeleteVolume"));
            seen(refused.map(|condition| condition.2.clone()), || format!("{conditions:?}"))
        })
        .await;
        // A tenant reads the message: it names no account and no role.
        assert!(!message.contains("123456789012") && !message.contains("arn:"), "{message}");
        assert_eq!(env.data_volumes().len(), 1);

        env.edit("orders", &json!({"deletionPolicy": "Retain"})).await;
        env.gone("orders").await;
        assert_eq!(env.data_volumes().len(), 1);
        assert!(env.list::<Database>().await.is_empty());
        env.close().await;
    });
}

#[test]
fn without_the_right_to_read_tags_nothing_is_released_and_the_database_names_the_right() {
    rig_env::run(|| async {
        let env = without(|policy| shipped::without_action(policy, "ec2:DescribeTags")).await;
        env.create("orders", &json!({})).await;
        env.ready("orders").await;
        // Their status checks go on meanwhile.
        let shown = |env: &RigEnv| -> Vec<_> {
            env.ec2().instances().into_iter().map(|it| (it.id, it.state, it.tags)).collect()
        };
        let instances = shown(&env);
        env.edit("orders", &json!({"release": true})).await;
        env.delete("orders").await;
        within(CALM, "the Node and the Database reporting what is not allowed", || async {
            let nodes: Vec<_> = env.list::<Node>().await.iter().map(|node| node.condition("Ready")).collect();
            let ready = env.list::<Database>().await[0].condition("Ready");
            let is_told = nodes.iter().all(|it| it.1 == "Forbidden") && ready.2.contains("ec2:DescribeTags");
            seen(is_told.then_some(()), || format!("{nodes:?} {ready:?}"))
        })
        .await;
        assert_eq!(env.list::<StatefulSet>().await[0].owner_references().len(), 1, "nothing is released");
        assert_eq!(shown(&env), instances);

        env.edit("orders", &json!({"release": false})).await;
        env.gone("orders").await;
        assert!(env.live_instances().is_empty(), "it is deleted as any other");
        env.close().await;
    });
}

#[test]
#[ignore = "it judges a whole run of the other tests: .ci/run runs it after them"]
fn the_operator_has_no_statement_that_it_does_not_use() {
    let granted = Policy::read(&shipped::policy()).unwrap().sids();
    let used = statements::used();
    assert!(!used.is_empty(), "nothing was noted: run `cargo test` first");
    let unused: Vec<_> = granted.difference(&used).collect();
    assert!(
        unused.is_empty(),
        "no test made the operator use these statements (terraform/modules/iam/policy.json.tftpl): {unused:?}"
    );
}

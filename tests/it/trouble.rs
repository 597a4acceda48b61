//! Bad input, and an EC2 that refuses, answers in half or is away: a condition with its reason, few calls,
//! and everything right afterwards without a hand.

use std::time::Duration;

use ec2sim::{Effect, Fault};
use freehold::api::Database;
use kube::Api;
use pretty_assertions::assert_eq;
use serde_json::json;
use tokio::time::sleep;

use crate::kit::env::Env as _;
use crate::kit::objects::Told as _;
use crate::kit::rig_env::{RigEnv, run};
use crate::kit::wait::{each, seen, within};
use crate::lives::blow::Blow;
use crate::lives::life::CALM;
use crate::world::OPERATOR;

/// A fault on the operator's calls only: the box has its own.
fn on(action: Option<&str>, effect: Effect) -> Fault {
    Fault { action: action.map(str::to_owned), caller: Some(OPERATOR.to_owned()), ..Fault::always(effect) }
}

fn refused(code: &str) -> Effect {
    Effect::Error { code: code.to_owned(), message: "said the test".to_owned() }
}

/// How many calls of this action the operator made, whatever became of them.
fn calls(env: &RigEnv, action: &str) -> usize {
    env.calls_since(0).iter().filter(|entry| entry.action == action).count()
}

/// The rest of the story of a launch that EC2 refuses at first: one machine, one disk.
async fn recovers(env: RigEnv) {
    env.ready("orders").await;
    assert_eq!((env.live_instances().len(), env.data_volumes().len()), (1, 1));
    env.close().await;
}

#[test]
fn a_node_class_that_ec2_refuses_stalls_the_database_until_it_is_mended() {
    let cases = [
        ("wrong-image", json!({"imageID": "ami-0ffffffffffffffff"}), "ami-0ffffffffffffffff"),
        (
            "wrong-subnet",
            json!({"subnets": [{"id": "subnet-0ffffffffffffffff", "zone": "us-east-1a"}]}),
            "subnet-0ffffffffffffffff",
        ),
    ];
    let cases = cases.map(|(name, class, says)| (name.to_owned(), (class, says))).to_vec();
    run(|| {
        each(cases, |_, (wrong, says)| async move {
            let env = RigEnv::start().await;
            let right = env.node_class("default")["spec"].clone();
            env.edit_class(&wrong).await;
            env.create("orders", &json!({})).await;
            let message = env.until_condition("orders", "Stalled", "True", "InvalidRequest").await;
            assert!(message.contains(says) && message.contains("NodeClass default"), "{message}");
            assert_eq!(env.until_condition("orders", "Ready", "False", "InvalidRequest").await, message);
            assert_eq!(
                env.calls_within("RunInstances", Duration::from_mins(5)).await,
                0,
                "the same is not asked again"
            );
            assert!(calls(&env, "RunInstances") <= 2, "one refusal is enough");
            env.edit_class(&right).await;
            recovers(env).await;
        })
    });
}

#[test]
fn a_missing_node_class_stalls_the_database_until_it_is_there() {
    run(|| async {
        let env = RigEnv::start().await;
        env.create("orders", &json!({"nodeClassName": "no-class-yet"})).await;
        let message = env.until_condition("orders", "Stalled", "True", "NodeClassNotFound").await;
        assert!(message.contains("NodeClass no-class-yet does not exist: create it"), "{message}");
        assert_eq!(calls(&env, "RunInstances"), 0);
        let class = serde_json::from_value(env.node_class("no-class-yet")).unwrap();
        Api::<freehold::api::NodeClass>::all(env.client())
            .create(&kube::api::PostParams::default(), &class)
            .await
            .unwrap();
        recovers(env).await;
    });
}

#[test]
fn what_ec2_refuses_for_a_while_is_told_and_tried_again_calmly() {
    let nowhere = Effect::CapacityOut { instance_type: None, zone: None };
    let quota = Effect::Quota { code: "VcpuLimitExceeded".to_owned() };
    // The most calls in ten minutes: the pauses are 3 min for each of nine offers, 10 min, and 5 min.
    let cases = [
        ("no-capacity", (nowhere, "InsufficientCapacity", "r7i.large", 9 * 5)),
        ("quota", (quota, "QuotaExceeded", "quota", 3)),
        ("no-permission", (refused("UnauthorizedOperation"), "Forbidden", "UnauthorizedOperation", 4)),
    ];
    let cases = cases.map(|(name, case)| (name.to_owned(), case)).to_vec();
    run(|| {
        each(cases, |_, (effect, reason, says, most)| async move {
            let env = RigEnv::start().await;
            let fault = env.ec2().add_fault(on(Some("RunInstances"), effect));
            env.create("orders", &json!({})).await;
            // Of several types that are refused the message names the last one.
            let database = within(CALM, "the condition with the refusal", || async {
                let database =
                    env.api::<Database>().get("orders").await.map_err(|error| error.to_string())?;
                let ready = database.condition("Ready");
                let is_told = ready.0 == "False" && ready.1 == reason && ready.2.contains(says);
                seen(is_told.then_some(database), || format!("{ready:?}"))
            })
            .await;
            assert_eq!(database.condition("Stalled").0, "False", "it will pass by itself");
            let calls = env.calls_within("RunInstances", Duration::from_mins(10)).await;
            assert!(calls <= most, "{calls} launches in ten minutes");
            assert_eq!(env.ec2().instances().len(), 0);
            env.ec2().clear_fault(&fault);
            recovers(env).await;
        })
    });
}

#[test]
fn a_launch_falls_back_over_types_and_zones_in_the_order_of_preference() {
    run(|| async {
        let env = RigEnv::start().await;
        let out = |instance_type: &str, zone: Option<&str>| {
            let effect = Effect::CapacityOut {
                instance_type: Some(instance_type.to_owned()),
                zone: zone.map(str::to_owned),
            };
            env.ec2().add_fault(on(Some("RunInstances"), effect));
        };
        out("r7i.large", None);
        out("r6i.large", Some("us-east-1a"));
        out("r6i.large", Some("us-east-1b"));
        env.create("orders", &json!({"instanceTypes": ["r7i.large", "r6i.large", "m7i.large"]})).await;
        let status = env.ready("orders").await.status.unwrap();
        assert_eq!(
            (status.instance_type.as_deref(), status.zone.as_deref()),
            (Some("r6i.large"), Some("us-east-1c"))
        );
        assert_eq!(env.data_volumes().remove(0).zone, "us-east-1c");
        let asked: Vec<(String, String)> = env
            .calls_since(0)
            .into_iter()
            .filter(|entry| entry.action == "RunInstances")
            .map(|entry| (entry.parameters["InstanceType"].clone(), entry.answer))
            .collect();
        let no = "InsufficientInstanceCapacity";
        let expected = [
            ("r7i.large", no),
            ("r7i.large", no),
            ("r7i.large", no),
            ("r6i.large", no),
            ("r6i.large", no),
            ("r6i.large", "ok"),
        ];
        assert_eq!(
            asked,
            expected.map(|(name, answer)| (name.to_owned(), answer.to_owned())),
            "fast, each once"
        );
        env.close().await;
    });
}

#[test]
fn an_answer_that_is_lost_cut_or_unclear_is_followed_by_the_same_call_and_not_by_another() {
    let mut cases = Vec::new();
    for action in ["RunInstances", "CreateVolume"] {
        for (how, effect) in [
            ("never-sent", Effect::DropBefore),
            ("lost", Effect::ApplyThenDrop),
            ("cut", Effect::TruncatedXml),
            ("unclear", refused("InternalError")),
        ] {
            cases.push((format!("{how}-{}", action.to_lowercase()), (action, effect)));
        }
    }
    run(|| {
        each(cases, |_, (action, effect)| async move {
            let env = RigEnv::start().await;
            env.ec2().add_fault(on(Some(action), effect).nth(1));
            env.create("orders", &json!({})).await;
            env.ready("orders").await;
            let sent = env.calls_since(0).into_iter().filter(|entry| entry.action == action);
            let sent: std::collections::BTreeSet<_> =
                sent.map(|entry| (entry.token, entry.params_hash)).collect();
            assert_eq!(sent.len(), 1, "one token and one request, however often it was sent: {sent:?}");
            assert_eq!((env.ec2().instances().len(), env.data_volumes().len()), (1, 1));
            env.close().await;
        })
    });
}

#[test]
fn ec2_away_for_minutes_is_waited_out() {
    run(|| async {
        let env = RigEnv::start().await;
        env.create("first", &json!({})).await;
        env.ready("first").await;
        let away = env.ec2().add_fault(on(None, Effect::DropBefore));
        env.create("orders", &json!({})).await;
        within(CALM, "the new database saying what it waits for", || async {
            let database = env.api::<Database>().get("orders").await.unwrap();
            let (status, reason, message) = database.condition("NodeReady");
            seen((status == "False" && reason != "Pending" && !message.is_empty()).then_some(()), || {
                format!("{status} {reason} {message}")
            })
        })
        .await;
        let mutating = calls(&env, "TerminateInstances") + calls(&env, "DeleteVolume");
        let launches = env.calls_within("RunInstances", Duration::from_mins(10)).await;
        assert!(launches <= 20, "{launches} sends of a launch in ten minutes without EC2");
        assert_eq!(
            mutating,
            calls(&env, "TerminateInstances") + calls(&env, "DeleteVolume"),
            "no answer is no reason to destroy"
        );
        env.ec2().clear_fault(&away);
        env.ready("orders").await;
        env.ready("first").await;
        assert_eq!((env.ec2().instances().len(), env.data_volumes().len()), (2, 2));
        env.close().await;
    });
}

#[test]
fn the_api_server_away_for_minutes_is_waited_out() {
    run(|| async {
        let env = RigEnv::start().await;
        env.create("first", &json!({})).await;
        env.ready("first").await;
        // In the middle of the second one's creation.
        let away = Duration::from_mins(5);
        env.house.chaos.strike_at("CreateVolume", Blow::CutOff, away);
        env.create("orders", &json!({})).await;
        env.house.until("the operator is cut off", CALM, |it| it.chaos.struck_first().is_some()).await;
        let mark = env.mark();
        sleep(away).await;
        let calls = env.calls_since(mark);
        let mutating: Vec<_> = calls.iter().filter(|entry| !ec2sim::reads(&entry.action)).collect();
        assert!(mutating.len() <= 1, "calls of which nothing can be written down: {mutating:?}");
        env.ready("orders").await;
        env.ready("first").await;
        assert_eq!((env.ec2().instances().len(), env.data_volumes().len()), (2, 2));
        env.close().await;
    });
}

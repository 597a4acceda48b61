//! Volumes that change: while the database is paused, while EBS is busy, and when its budget is used up, by
//! us or by others.

use std::time::Duration;

use freehold::api::{Database, Volume};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use pretty_assertions::assert_eq;
use serde_json::json;
use tokio::time::sleep;

use crate::kit::env::Env as _;
use crate::kit::objects::Told as _;
use crate::kit::rig_env::{RigEnv, run};
use crate::kit::wait::{seen, within};
use crate::lives::life::CALM;

/// The ModifyVolume calls that EC2 carried out.
fn modifications(env: &RigEnv) -> usize {
    env.mutations().get("ModifyVolume").copied().unwrap_or_default()
}

/// All ModifyVolume calls that the operator sent.
fn sent(env: &RigEnv) -> usize {
    env.calls_since(0).iter().filter(|entry| entry.action == "ModifyVolume").count()
}

/// Waits until EC2 shows the one data volume with these IOPS.
async fn has_iops(env: &RigEnv, iops: u32) {
    within(CALM, &format!("the volume having {iops} IOPS"), || async {
        let shape = env.data_volumes().remove(0).shape;
        seen((shape.iops == Some(iops)).then_some(()), || format!("{shape:?}"))
    })
    .await;
}

/// How long EBS optimizes after a change, and more.
const SETTLED: Duration = Duration::from_mins(15);

/// A day, and the last modification is no longer one of its last 24 hours.
const NEXT_DAY: Duration = Duration::from_hours(25);

#[test]
fn a_paused_database_grows_and_its_file_system_follows_when_it_is_resumed() {
    run(|| async {
        let env = RigEnv::start().await;
        env.create("orders", &json!({})).await;
        env.ready("orders").await;
        env.edit("orders", &json!({"running": false})).await;
        env.until_condition("orders", "Ready", "False", "Paused").await;
        within(CALM, "the machine being gone", || async {
            let left = env.live_instances();
            seen(left.is_empty().then_some(()), || format!("{left:?}"))
        })
        .await;
        env.edit("orders", &json!({"storage": {"size": "200Gi", "iops": 6000}})).await;
        within(CALM, "the file system being awaited", || async {
            let condition = env
                .api::<Database>()
                .get("orders")
                .await
                .map_err(|error| error.to_string())?
                .condition("VolumeReady");
            seen(
                (condition.1 == "AwaitingFileSystem" && condition.2.contains("the pod must be running"))
                    .then_some(()),
                || format!("{condition:?}"),
            )
        })
        .await;
        let shape = env.data_volumes().remove(0).shape;
        assert_eq!((shape.size, shape.iops), (200, Some(6000)));
        let claim = env.list::<PersistentVolumeClaim>().await.remove(0);
        assert_eq!(claim.spec.unwrap().resources.unwrap().requests.unwrap()["storage"].0, "200Gi");
        let database = env.api::<Database>().get("orders").await.unwrap();
        let condition = |kind: &str| database.condition(kind);
        assert_eq!(
            (condition("Ready").1.as_str(), condition("Stalled").0.as_str()),
            ("Paused", "False"),
            "it is paused, not stuck"
        );

        // Another change while EBS optimizes and the file system of the last one is awaited: gathered, and
        // one more call.
        for iops in [7000, 8000, 9000] {
            env.edit("orders", &json!({"storage": {"iops": iops}})).await;
            within(CALM, "the Volume following the edit", || async {
                let wanted = env.list::<Volume>().await.remove(0).spec.iops;
                seen((wanted == Some(iops)).then_some(()), || format!("{wanted:?}"))
            })
            .await;
        }
        assert_eq!(sent(&env), 1, "EC2 is not asked for what it would refuse");
        has_iops(&env, 9000).await;
        assert_eq!(modifications(&env), 2, "three edits, one call");

        env.edit("orders", &json!({"running": true})).await;
        env.ready("orders").await;
        let claim = env.list::<PersistentVolumeClaim>().await.remove(0);
        assert_eq!(claim.status.unwrap().capacity.unwrap()["storage"].0, "200Gi");
        assert_eq!((modifications(&env), sent(&env)), (2, 2));
        env.close().await;
    });
}

#[test]
fn a_change_waits_for_the_one_before_and_the_fifth_of_a_day_for_the_next_day() {
    run(|| async {
        let env = RigEnv::start().await;
        env.create("orders", &json!({"storage": {"iops": 3000}})).await;
        env.ready("orders").await;
        env.edit("orders", &json!({"storage": {"iops": 4000}})).await;
        has_iops(&env, 4000).await;
        // EBS still optimizes for the last change: the next one waits, and EC2 is never asked for what it
        // would refuse.
        for iops in [5000, 6000, 7000] {
            env.edit("orders", &json!({"storage": {"iops": iops}})).await;
            has_iops(&env, iops).await;
        }
        sleep(SETTLED).await;
        env.edit("orders", &json!({"storage": {"size": "150Gi", "iops": 8000}})).await;
        let message = env.until_condition("orders", "VolumeReady", "False", "ModificationBudget").await;
        assert!(message.contains("is modified after 20"), "the next allowed time is named: {message}");
        assert_eq!((modifications(&env), sent(&env)), (4, 4), "EC2 was not asked for what it would refuse");
        assert_eq!(env.list::<Volume>().await[0].status.as_ref().unwrap().modifications.len(), 4);

        env.house.chaos.kill(NEXT_DAY);
        sleep(NEXT_DAY).await;
        env.ready("orders").await;
        let shape = env.data_volumes().remove(0).shape;
        assert_eq!((shape.size, shape.iops), (150, Some(8000)));
        assert_eq!((modifications(&env), sent(&env)), (5, 5));
        env.close().await;
    });
}

#[test]
fn ec2s_word_on_the_budget_is_obeyed_where_others_have_used_it() {
    run(|| async {
        let env = RigEnv::start().await;
        env.create("orders", &json!({"storage": {"iops": 3000}})).await;
        env.ready("orders").await;
        let id = env.data_volumes().remove(0).id;
        // Or it would change back what the person has changed.
        env.house.chaos.kill(4 * SETTLED);
        for iops in ["3100", "3000", "3100", "3000"] {
            env.ec2()
                .call("a-person", &[("Action", "ModifyVolume"), ("VolumeId", id.as_str()), ("Iops", iops)])
                .unwrap();
            sleep(SETTLED).await;
        }
        env.edit("orders", &json!({"storage": {"iops": 6000}})).await;
        let message = env.until_condition("orders", "VolumeReady", "False", "ModificationBudget").await;
        assert!(
            message.contains("VolumeModificationRateExceeded") && message.contains("made again after 20"),
            "{message}"
        );
        assert_eq!(sent(&env), 1);
        assert_eq!(
            env.list::<Volume>().await[0].status.as_ref().unwrap().modifications,
            [],
            "EC2 does not count what it refuses"
        );
        sleep(Duration::from_mins(20)).await;
        assert_eq!(sent(&env), 1, "no call is wasted");

        env.house.chaos.kill(NEXT_DAY);
        sleep(NEXT_DAY).await;
        env.ready("orders").await;
        assert_eq!((modifications(&env), sent(&env)), (1, 2));
        env.close().await;
    });
}

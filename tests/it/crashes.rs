//! SIGKILL of the shipped binary before, during and after every effect that costs money or remembers it; and
//! long outages after it.

use std::time::Duration;

use ec2sim::{Outside, VolumeState};
use freehold::api::{DeletionPolicy, Node, Volume};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::outage;
use crate::kit::tap::{Point, Which, at_each_point};
use crate::kit::test_env::{Options, TestEnv, run};
use crate::kit::wait::{each, seen, until};

/// The effects of the two creations, in their order.
const EFFECTS: [(&str, Which); 6] = [
    ("node-intent", Which { method: "PATCH", path: "/nodes/", body: &["\"creation\"", "\"clientToken\""] }),
    ("run-instances", Which { method: "POST", path: "/", body: &["Action=RunInstances"] }),
    ("node-id", Which { method: "PATCH", path: "/nodes/", body: &["\"instanceID\""] }),
    (
        "volume-intent",
        Which { method: "PATCH", path: "/volumes/", body: &["\"creation\"", "\"clientToken\""] },
    ),
    ("create-volume", Which { method: "POST", path: "/", body: &["Action=CreateVolume"] }),
    ("volume-id", Which { method: "PATCH", path: "/volumes/", body: &["\"volumeID\""] }),
];

/// The effects of giving a machine up and freeing what it held, in their order.
const REPAIR: [(&str, Which); 5] = [
    ("given-up", Which { method: "PATCH", path: "/nodes/", body: &["\"fence\"", "\"startedAt\""] }),
    ("stopped", Which { method: "POST", path: "/", body: &["Action=StopInstances"] }),
    (
        "tainted",
        Which { method: "PATCH", path: "/api/v1/nodes/", body: &["node.kubernetes.io/out-of-service"] },
    ),
    ("pod-deleted", Which { method: "DELETE", path: "/pods/", body: &["\"gracePeriodSeconds\":0"] }),
    ("released", Which { method: "DELETE", path: "/api/v1/nodes/", body: &[] }),
];

/// A test environment whose operator was killed at this point of making the database `orders`; nothing runs
/// there now.
async fn killed_at(
    name: &str,
    which: Which,
    point: Point,
    boot: Duration,
    policy: DeletionPolicy,
) -> TestEnv {
    // An outage makes a machine's launch hours older: it may still join.
    let mut env = TestEnv::build(
        name,
        Options { tapped_ec2: true, boot, ..Options::with([("registration-timeout", 86400)]) },
    )
    .await;
    let reached = env.tap.stop_at(which, point);
    env.start_operator();
    env.create("orders", &json!({"deletionPolicy": policy})).await;
    env.kill_at(which, reached).await;
    env
}

/// The end of every one of these stories: one machine and one disk were ever made, and the database runs.
async fn one_of_each(env: TestEnv) {
    env.ready("orders").await;
    assert_eq!((env.live_instances().len(), env.ec2().instances().len()), (1, 1));
    assert_eq!(env.data_volumes().len(), 1);
    env.close().await;
}

#[test]
fn a_kill_at_any_point_of_a_creation_leaves_one_machine_and_one_disk() {
    let cases = at_each_point("kill", &EFFECTS);
    run(each(cases, |name, (which, point)| async move {
        let mut env = killed_at(&name, which, point, Options::default().boot, DeletionPolicy::Retain).await;
        env.start_operator();
        one_of_each(env).await;
    }));
}

#[test]
fn a_kill_at_any_point_of_a_repair_leaves_one_machine_and_the_same_disk() {
    let cases = at_each_point("repair", &REPAIR);
    run(each(cases, |name, (which, point)| async move {
        let mut env = TestEnv::start_with(
            &name,
            Options { tapped_ec2: true, ..Options::with([("loss-grace-period", 300)]) },
        )
        .await;
        env.create("orders", &json!({})).await;
        env.ready("orders").await;
        let (machine, disk) = (env.live_instances().remove(0).id, env.data_volumes().remove(0).id);
        let reached = env.tap.stop_at(which, point);
        env.ec2().outside(&Outside::Impair.to(&machine)).unwrap();
        env.kill_at(which, reached).await;
        env.start_operator();
        until("another machine serving with the same disk", || async {
            let live = env.live_instances();
            let holder = env.data_volumes().remove(0).attachment.map(|held| held.instance_id);
            let is_other = live.len() == 1 && live[0].id != machine && holder.as_ref() == Some(&live[0].id);
            seen(is_other.then_some(()), || format!("{live:?}"))
        })
        .await;
        env.ready("orders").await;
        assert_eq!(env.data_volumes().into_iter().map(|volume| volume.id).collect::<Vec<_>>(), [disk]);
        assert_eq!(env.ec2().instances().len(), 2, "one machine and one in its place");
        env.close().await;
    }));
}

#[test]
fn an_outage_of_minutes_or_of_half_a_day_after_a_lost_answer_changes_nothing() {
    let mut cases = Vec::new();
    for (effect, which) in EFFECTS {
        cases.push((format!("away-30m-{effect}"), (which, Duration::from_mins(30))));
        cases.push((format!("away-13h-{effect}"), (which, Duration::from_hours(13))));
    }
    run(each(cases, |name, (which, away)| async move {
        let mut env =
            killed_at(&name, which, Point::AnswerLost, Options::default().boot, DeletionPolicy::Retain).await;
        outage::pass(&env, away).await;
        env.start_operator();
        one_of_each(env).await;
    }));
}

#[test]
fn a_spec_that_was_edited_during_the_outage_is_reached_with_one_machine_and_one_disk() {
    let cases = EFFECTS.map(|(effect, which)| (format!("edited-{effect}"), which)).to_vec();
    run(each(cases, |name, which| async move {
        // A type can change until the machine has joined: where that is edited, it joins long after the
        // operator is back.
        let is_of_machine = which.path == "/nodes/" || which.body.contains(&"Action=RunInstances");
        let boot = if is_of_machine { Duration::from_secs(30) } else { Options::default().boot };
        let mut env = killed_at(&name, which, Point::AnswerLost, boot, DeletionPolicy::Retain).await;
        let mut edit = json!({"storage": {"size": "150Gi", "iops": 4000}});
        if is_of_machine {
            edit["instanceTypes"] = json!(["m7i.large"]);
        }
        env.edit("orders", &edit).await;
        env.start_operator();
        env.ready("orders").await;
        let machines = env.live_instances();
        let wanted = if is_of_machine { "m7i.large" } else { "r7i.large" };
        assert_eq!(
            machines.iter().map(|machine| machine.instance_type.as_str()).collect::<Vec<_>>(),
            [wanted]
        );
        let disks = env.data_volumes();
        assert_eq!(
            disks.iter().map(|disk| (disk.shape.size, disk.shape.iops)).collect::<Vec<_>>(),
            [(150, Some(4000))]
        );
        assert_eq!((env.list::<Node>().await.len(), env.list::<Volume>().await.len()), (1, 1));
        env.close().await;
    }));
}

#[test]
fn a_database_that_was_deleted_during_the_outage_leaves_what_its_policy_says() {
    let mut cases = Vec::new();
    for (effect, which) in EFFECTS {
        let has_disk = ["create-volume", "volume-id"].contains(&effect);
        for policy in [DeletionPolicy::Retain, DeletionPolicy::Delete] {
            if has_disk || policy == DeletionPolicy::Delete {
                let left = usize::from(policy == DeletionPolicy::Retain);
                cases.push((
                    format!("deleted-{}-{effect}", policy.as_str().to_lowercase()),
                    (which, policy, left),
                ));
            }
        }
    }
    run(each(cases, |name, (which, policy, left)| async move {
        let mut env = killed_at(&name, which, Point::AnswerLost, Options::default().boot, policy).await;
        env.delete("orders").await;
        env.start_operator();
        env.gone("orders").await;
        assert_eq!(env.live_instances().len(), 0);
        until("the disk being as the policy says", || async {
            let disks = env.data_volumes();
            let is_so = disks.len() == left && disks.iter().all(|disk| disk.state == VolumeState::Available);
            seen(is_so.then_some(()), || format!("{disks:?}"))
        })
        .await;
        env.close().await;
    }));
}

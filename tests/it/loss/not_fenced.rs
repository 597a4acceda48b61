//! A fence that does not go as it should: a stop that EC2 refuses, and one that hangs.

use std::time::Duration;

use ec2sim::{Effect, Fate, Fault, Outside};
use freehold::api::keys::DATABASE_NODE_LABEL;
use k8s_openapi::api::core::v1::{Node as CoreNode, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt as _};
use pretty_assertions::assert_eq;

use super::{OUT_OF_SERVICE, attached_to, happens, hold, running, serves_elsewhere, until_condition};
use crate::kit::env::Env as _;
use crate::kit::rig_env::{self, RigEnv};
use crate::kit::test_env::{OPERATOR, Options, TestEnv, run};
use crate::kit::wait::{seen, until};

#[test]
fn nothing_moves_while_ec2_does_not_show_a_machine_stopped_whatever_is_done() {
    run(async {
        // A grace of five seconds of the wall clock, and stages of a fence of twenty, so that a busy host
        // does not go past one.
        let repairing = Options::with([("loss-grace-period", 300), ("fence-step-timeout", 1200)]);
        let env = TestEnv::start_with("lost-unfenced", repairing).await;
        let old = running(&env, "orders").await;
        hold(&env, &old.node, true).await;
        let refuse = |action: &str| Fault {
            action: Some(action.to_owned()),
            caller: Some(OPERATOR.to_owned()),
            resource: Some(old.instance.clone()),
            ..Fault::always(Effect::Error {
                code: "OperationNotPermitted".to_owned(),
                message: "it is protected".to_owned(),
            })
        };
        let faults =
            ["StopInstances", "TerminateInstances"].map(|action| env.ec2().add_fault(refuse(action)));
        happens(&env, Outside::Impair, &old.instance);
        until_condition(&env, &old.node, "Fenced", "False", "Fencing").await;
        let message = until_condition(&env, &old.node, "Fenced", "False", "FenceFailed").await;
        assert!(message.contains("the volume is not moved"), "{message}");

        env.api::<Pod>().delete("orders-0", &DeleteParams::default().grace_period(0)).await.unwrap();
        let (failed, until_then) = (env.mark(), env.ec2().now() + Duration::from_mins(10));
        let asks = |since: u64| {
            let is_ask = |entry: &ec2sim::JournalEntry| {
                ["StopInstances", "TerminateInstances"].contains(&entry.action.as_str())
            };
            env.calls_since(since).into_iter().filter(is_ask).collect::<Vec<_>>()
        };
        // Force-deleted, the pod may be gone for a moment before the next one wants its volume: then the
        // living kubelet lets it go, and takes it again. What may not be is a word of the volume at another
        // machine.
        let disk = env.list::<PersistentVolumeClaim>().await.remove(0).spec.unwrap().volume_name.unwrap();
        let attachments = Api::<VolumeAttachment>::all(env.client.clone());
        until("ten minutes in which nothing moves, and EC2 is asked three times more", || async {
            let held = attachments.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            let is_of_volume =
                |it: &&VolumeAttachment| it.spec.source.persistent_volume_name.as_ref() == Some(&disk);
            for attachment in held.items.iter().filter(is_of_volume) {
                assert_eq!(attachment.spec.node_name, old.core_node, "the volume is asked for elsewhere");
            }
            let holder = env.data_volumes().remove(0).attachment.map(|held| held.instance_id);
            assert!(holder.is_none_or(|holder| holder == old.instance), "the volume is elsewhere");
            let core_node = Api::<CoreNode>::all(env.client.clone()).get(&old.core_node).await.unwrap();
            assert!(core_node.labels().contains_key(DATABASE_NODE_LABEL), "the label stays");
            assert!(
                core_node.spec.unwrap().taints.iter().flatten().all(|taint| taint.key != OUT_OF_SERVICE),
                "not out of service"
            );
            let is_held = attached_to(&env, &old.instance) == [old.volume.clone()];
            let (now, asked) = (env.ec2().now(), asks(failed).len());
            seen((is_held && now >= until_then && asked >= 3).then_some(()), || {
                format!("{now}, held: {is_held}, asked: {asked}")
            })
        })
        .await;
        for pair in asks(failed).windows(2) {
            assert_ne!(pair[0].action, pair[1].action, "alternately");
            assert!(pair[1].time.duration_since(pair[0].time).as_secs() > 19 * 60, "calmly: {pair:?}");
        }
        let asked: Vec<(String, Option<String>)> =
            asks(0).into_iter().map(|entry| (entry.action, entry.parameters.get("Force").cloned())).collect();
        let first = |action: &str, force: Option<&str>| {
            asked.iter().position(|(it, by)| it == action && (force.is_none() || by.as_deref() == force))
        };
        let (stop, force, end) = (
            first("StopInstances", Some("false")),
            first("StopInstances", Some("true")),
            first("TerminateInstances", None),
        );
        assert!(stop.is_some() && stop < force && force < end, "{asked:?}");
        assert!(asked.len() < 40, "calmly: {asked:?}");

        for fault in faults {
            env.ec2().clear_fault(&fault);
        }
        until_condition(&env, &old.node, "Fenced", "True", "AsExpected").await;
        serves_elsewhere(&env, "orders", &old).await;
        env.close().await;
    });
}

#[test]
fn a_stop_that_hangs_is_forced() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        let old = running(&env, "orders").await;
        env.ec2()
            .add_fault(Fault { action: Some("StopInstances".to_owned()), ..Fault::always(Effect::Hangs) });
        happens(&env, Outside::Impair, &old.instance);
        serves_elsewhere(&env, "orders", &old).await;
        let forced = |entry: &ec2sim::JournalEntry| {
            entry.action == "StopInstances"
                && entry.fate == Fate::Committed
                && entry.parameters.get("Force").is_some_and(|it| it == "true")
        };
        assert!(env.calls_since(0).iter().any(forced));
        env.close().await;
    });
}

//! Machines with two disks of their own, as Bottlerocket's: they live and end like any other.

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::env::Env;
use crate::kit::rig_env::{self, RigEnv};
use crate::kit::wait::{seen, within};
use crate::lives::life::CALM;

/// A second disk for every machine of the class.
async fn second_disk(env: &impl Env) {
    env.edit_class(&json!({"additionalVolumes": [{"deviceName": "/dev/xvdb", "size": 20}]})).await;
}

#[test]
fn a_machine_with_two_disks_is_paused_resumed_moved_and_deleted_and_leaves_the_data_alone() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        second_disk(&env).await;
        env.create("orders", &json!({})).await;
        env.ready("orders").await;
        let machine = env.live_instances().remove(0);
        let data = env.data_volumes().remove(0).id;
        let own = env.ec2().volumes().into_iter().filter(|disk| disk.id != data);
        let own: Vec<_> = own.map(|disk| (disk.encrypted, disk.shape.size)).collect();
        assert_eq!(own, [(true, 30), (true, 20)]);
        assert_eq!(machine.attachments.len(), 3);

        env.edit("orders", &json!({"running": false})).await;
        env.until_condition("orders", "Ready", "False", "Paused").await;
        env.edit("orders", &json!({"running": true})).await;
        env.ready("orders").await;
        env.edit("orders", &json!({"instanceTypes": ["m7i.large"]})).await;
        env.moved_to("m7i.large").await;
        env.delete("orders").await;
        env.gone("orders").await;
        let left: Vec<String> = env.ec2().volumes().into_iter().map(|disk| disk.id).collect();
        assert_eq!((env.live_instances().len(), left), (0, vec![data]));
        env.close().await;
    });
}

#[test]
fn a_machine_with_two_disks_that_never_joins_is_read_terminated_and_leaves_no_disk() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        second_disk(&env).await;
        env.edit_class(&json!({"userData": "#!/bin/sh\necho no node\n"})).await;
        env.create("orders", &json!({})).await;
        within(CALM, "the console of the machine being read, and the machine terminated", || async {
            let calls: Vec<String> = env.calls_since(0).into_iter().map(|entry| entry.action).collect();
            let is_read = calls.iter().any(|action| action == "GetConsoleOutput");
            let is_terminated = calls.iter().any(|action| action == "TerminateInstances");
            seen((is_read && is_terminated).then_some(()), || format!("{calls:?}"))
        })
        .await;
        env.delete("orders").await;
        env.gone("orders").await;
        let left = env.ec2().volumes().len();
        assert_eq!(
            (env.live_instances().len(), left),
            (0, env.data_volumes().len()),
            "its own disks are gone"
        );
        env.close().await;
    });
}

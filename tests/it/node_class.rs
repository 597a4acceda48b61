//! A NodeClass: what it names and is not there shows in its status and launches nothing,
//! and a class in use is not deleted.

use ec2sim::{Effect, Fault};
use freehold::api::node_class_status::DryRun;
use freehold::api::{NodeClass, NodeClassStatus};
use kube::Api;
use kube::api::DeleteParams;
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::env::Env as _;
use crate::kit::objects::Told as _;
use crate::kit::rig_env::{RigEnv, run};
use crate::kit::wait::{seen, within};
use crate::lives::life::CALM;

/// Waits until the status of the class' newest generation has this reason for `Ready`; gives the message.
async fn until_reason(env: &RigEnv, reason: &str) -> (NodeClassStatus, String) {
    within(CALM, &format!("the NodeClass being {reason}"), || async {
        let class = Api::<NodeClass>::all(env.client()).get(env.class()).await;
        let class = class.map_err(|error| error.to_string())?;
        let ready = class.condition("Ready");
        let status = class.status.unwrap_or_default();
        let is_so = ready.1 == reason && status.observed_generation == class.metadata.generation;
        seen(is_so.then(|| (status, ready.2.clone())), || format!("{ready:?}"))
    })
    .await
}

fn launches(env: &RigEnv) -> usize {
    env.calls_since(0).iter().filter(|entry| entry.action == "RunInstances" && !entry.dry_run).count()
}

#[test]
fn a_class_that_names_what_is_not_there_launches_nothing_and_one_in_use_stays() {
    run(|| async {
        let env = RigEnv::start_of_all().await;
        let image = env.ec2().world().images[0].id.clone();

        let (status, _) = until_reason(&env, "AsExpected").await;
        assert_eq!(status.launchable, Some(true));
        assert_eq!(status.image.unwrap().architecture, "x86_64");
        assert_eq!(status.subnets.len(), 3);

        // An image that this account cannot see.
        env.edit_class(&json!({"imageID": "ami-00000000000000fff"})).await;
        let (status, message) = until_reason(&env, "ImageUnusable").await;
        assert_eq!(status.launchable, Some(false), "{message}");
        env.create("orders", &json!({})).await;
        let message = env.until_condition("orders", "Stalled", "True", "NodeClassNotReady").await;
        assert!(message.contains("ami-00000000000000fff"), "{message}");
        assert_eq!(launches(&env), 0);
        env.edit_class(&json!({"imageID": image})).await;
        env.ready("orders").await;

        // What is needed later is told now, and what runs goes on.
        env.edit_class(&json!({"storageClassName": "nowhere"})).await;
        let (status, message) = until_reason(&env, "StorageClassUnusable").await;
        assert_eq!(status.launchable, Some(true), "{message}");
        env.ready("orders").await;

        // Of an image of another architecture, the types that do not run it are named.
        let other = env.ec2().world().images[1].id.clone();
        env.edit_class(&json!({"imageID": other, "instanceTypes": ["r7i.*", "r7g.*"]})).await;
        let (_, message) = until_reason(&env, "InstanceTypeUnusable").await;
        assert!(message.contains("arm64, and no instance type of r7i.*"), "{message}");

        let classes = Api::<NodeClass>::all(env.client());
        classes.delete(env.class(), &DeleteParams::default()).await.unwrap();
        let (_, message) = until_reason(&env, "InUse").await;
        assert!(message.contains("Database team-a/orders"), "{message}");
        env.ready("orders").await;
        env.delete("orders").await;
        env.gone("orders").await;
        within(CALM, "the NodeClass being gone", || async {
            let left = classes.get_opt(env.class()).await.map_err(|error| error.to_string())?;
            seen(left.is_none().then_some(()), || format!("{:?}", left.map(|class| class.condition("Ready"))))
        })
        .await;
        env.close().await;
    });
}

#[test]
fn a_class_whose_launch_ec2_would_refuse_says_so_before_one_is_needed_and_of_a_key_after_the_first() {
    run(|| async {
        let env = RigEnv::start_of_all().await;
        // A pattern without a family names no type to ask for.
        env.edit_class(&json!({"instanceProfile": "nobody", "instanceTypes": ["r7i.*", "r6i.*", "m7i.*"]}))
            .await;

        // The profile is refused by a dry run alone, and nothing is kept from being launched.
        let (status, message) = until_reason(&env, "InstanceProfileUnusable").await;
        assert!(message.contains("instance profile nobody"), "{message}");
        assert_eq!((status.launchable, launches(&env)), (Some(true), 0));
        let refusal =
            status.dry_run.and_then(|dry_run| dry_run.refusal).expect("the refusal is in the status");
        assert_eq!(refusal.code, "InvalidParameterValue");
        env.edit_class(&json!({"instanceProfile": "nodes"})).await;
        within(CALM, "another dry run that EC2 accepts", || async {
            let (status, _) = until_reason(&env, "AsExpected").await;
            seen((status.dry_run == Some(DryRun::default())).then_some(()), || {
                format!("{:?}", status.dry_run)
            })
        })
        .await;
        assert_eq!(launches(&env), 0);

        // A mistake in the user data is named before a machine fails to join by it.
        let class = Api::<NodeClass>::all(env.client()).get(env.class()).await.unwrap();
        let script = class.spec.user_data;
        env.edit_class(&json!({"userData": "[settings.kubernetes]\nmax-pods = 1\n"})).await;
        let (_, message) = until_reason(&env, "UserDataUnusable").await;
        assert!(message.contains("1 pods"), "{message}");
        env.edit_class(&json!({"userData": script})).await;
        until_reason(&env, "AsExpected").await;

        // A key that may not be used: EC2 accepts the dry run, and each launch, and ends the instance.
        let dies = Effect::LaunchDies { code: "Client.InternalError".to_owned() };
        let fault = Fault { action: Some("RunInstances".to_owned()), ..Fault::always(dies) };
        let fault = env.ec2().add_fault(fault);
        env.create("orders", &json!({})).await;
        let (status, message) = until_reason(&env, "KmsKeyUnusable").await;
        assert!(status.ended_launch.is_some() && message.contains("Client.InternalError"), "{message}");
        assert_eq!(status.launchable, Some(true));
        env.ec2().clear_fault(&fault);
        // The Node may be stalled by now, until the class changes.
        env.edit_class(&json!({"tags": {"key": "enabled"}})).await;
        env.ready("orders").await;
        let (status, _) = until_reason(&env, "AsExpected").await;
        assert_eq!(status.ended_launch, None);
        env.close().await;
    });
}

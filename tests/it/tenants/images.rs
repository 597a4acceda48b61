//! Where images are pulled from is the platform team's, and so is which images of tenants run.

use freehold::api::Database;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::env::Env as _;
use crate::kit::rig_env::{RigEnv, run};
use crate::kit::wait::{seen, within};
use crate::lives::life::CALM;

const PUBLISHED: &str = "questdb/questdb:9.3.4";
const MIRRORED: &str = "mirror.example/questdb/questdb:9.3.4";

/// The UID of the pod, and the image of its engine.
async fn pod(env: &RigEnv) -> (String, String) {
    let pod = env.api::<Pod>().get("orders-0").await.unwrap();
    let image = pod.spec.as_ref().unwrap().containers[0].image.clone();
    (pod.uid().unwrap(), image.unwrap())
}

#[test]
fn another_registry_restarts_nothing_and_the_next_pod_pulls_from_it() {
    run(|| async {
        let env = RigEnv::start().await;
        env.create("orders", &json!({})).await;
        env.ready("orders").await;
        let before = pod(&env).await;
        assert_eq!(before.1, PUBLISHED);

        env.edit_class(&json!({"images": {"registry": "mirror.example", "pullSecrets": ["pull"]}})).await;
        within(CALM, "the template pulling from the mirror", || async {
            let set = env.api::<StatefulSet>().get("orders").await.map_err(|error| error.to_string())?;
            let pod = set.spec.and_then(|spec| spec.template.spec).unwrap();
            let image = pod.containers[0].image.clone();
            seen((image.as_deref() == Some(MIRRORED)).then_some(()), || format!("{image:?}"))
        })
        .await;
        env.ready("orders").await;
        assert_eq!(pod(&env).await, before, "the running pod is left alone");

        env.edit("orders", &json!({"instanceTypes": ["m7i.large"]})).await;
        let moved: Database = env.ready("orders").await;
        assert_eq!(moved.status.unwrap().instance_type.as_deref(), Some("m7i.large"));
        let after = pod(&env).await;
        assert_eq!(after.1, MIRRORED);
        assert_ne!(after.0, before.0);
        env.close().await;
    });
}

#[test]
fn an_image_that_the_class_does_not_permit_costs_nothing_and_one_that_runs_goes_on() {
    run(|| async {
        let env = RigEnv::start().await;
        let engine = |image: &str| {
            json!({"engine": {"type": "custom", "version": null,
                "custom": {"image": image, "port": 5555, "dataPath": "/data"}}})
        };
        env.edit_class(&json!({"custom": {"allowedImages": ["registry.example/*"]}})).await;
        env.create("orders", &engine("10.0.0.5:5000/x:1")).await;
        let message = env.until_condition("orders", "Stalled", "True", "NotPermitted").await;
        assert!(message.contains("10.0.0.5:5000/x:1") && message.contains("registry.example/*"), "{message}");
        assert_eq!(env.mutations().len(), 0, "{:?}", env.mutations());

        env.edit("orders", &engine("registry.example/x:1")).await;
        env.ready("orders").await;
        let running = pod(&env).await;
        env.edit_class(&json!({"custom": {"enabled": false, "allowedImages": null}})).await;
        env.until_condition("orders", "NotPermitted", "True", "NotPermitted").await;
        env.ready("orders").await;
        env.edit("orders", &engine("registry.example/x:2")).await;
        env.until_condition("orders", "Stalled", "True", "NotPermitted").await;
        assert_eq!(pod(&env).await, running, "nothing restarts for what is not permitted");
        env.edit_class(&json!({"custom": {"enabled": true}})).await;
        env.ready("orders").await;
        assert_eq!(pod(&env).await.1, "registry.example/x:2");
        env.close().await;
    });
}

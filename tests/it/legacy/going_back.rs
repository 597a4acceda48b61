//! An adopted database that does not start as its spec requests goes back to what it ran as before.

use pretty_assertions::assert_eq;

use super::*;

/// An image that no kubelet can pull.
const NOT_THERE: &str = "registry.example/does-not-exist:2";

/// The spec of the engine's container, as the pod has it.
async fn engine(env: &RigEnv, found: &Found) -> Value {
    let pod = env.api::<Pod>().get(&format!("{}-0", found.legacy.name)).await.unwrap();
    json!(pod.spec.unwrap().containers[0])
}

#[test]
fn an_adopted_database_that_does_not_start_as_requested_goes_back_and_serves() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        let found = found(&env).await;
        permit(&env, &found, "orders");
        let before = engine(&env, &found).await;
        let custom = |image: &Value| {
            json!({"type": "custom", "version": null,
                "custom": {"image": image, "port": 8812, "dataPath": "/var/lib/questdb"}})
        };
        let mut spec = spec(&found);
        spec["engine"] = custom(&before["image"]);
        env.create("orders", &spec).await;
        env.ready("orders").await;
        let next = env.until_condition("orders", "RestartPending", "True", "AtNextStart").await;
        assert!(next.contains("spec.nodeSelector") && !next.contains("containers["), "{next}");
        assert_eq!(pod_run(&env, &found.legacy).await, found.run);

        env.edit("orders", &json!({"engine": custom(&json!(NOT_THERE))})).await;
        let message = env.until_condition("orders", "Stalled", "True", "WentBack").await;
        assert!(message.contains("ErrImagePull"), "{message}");
        env.until_condition("orders", "EngineReady", "True", "AsExpected").await;
        assert_eq!(engine(&env, &found).await["image"], before["image"]);
        let run = pod_run(&env, &found.legacy).await;
        env.edit("orders", &json!({"engine": custom(&before["image"])})).await;
        env.ready("orders").await;
        assert_eq!(pod_run(&env, &found.legacy).await, run, "set back, nothing restarts");

        // Resources that no machine has end nothing; then others, which are tried.
        let requests = |memory: &str| json!({"resources": {"requests": {"memory": memory}}});
        env.edit("orders", &requests("64Ti")).await;
        let message = env.until_condition("orders", "Stalled", "True", "RestartPending").await;
        assert!(message.contains("the pod that runs is kept"), "{message}");
        assert_eq!(pod_run(&env, &found.legacy).await, run);
        env.edit("orders", &requests("64Mi")).await;
        env.ready("orders").await;
        assert_eq!(
            engine(&env, &found).await["resources"]["requests"],
            json!({"cpu": "100m", "memory": "64Mi"})
        );
        env.until_condition("orders", "RestartPending", "False", "UpToDate").await;
        env.close().await;
    });
}

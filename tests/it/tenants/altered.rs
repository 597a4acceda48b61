//! A user of the namespace writes the ConfigMap and the StatefulSet of a database: it is reported and
//! restored, and what runs is what was declared.

use freehold::api::Database;
use freehold::api::database::Occurrence;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::kit::env::Env;
use crate::kit::rig_env::{self, RigEnv};
use crate::kit::wait::{seen, within};
use crate::lives::life::CALM;

/// Who may edit ConfigMaps and StatefulSets of the namespace, and nothing else.
const TENANT: &str = "mallory";

const PUBLISHED: &str = "questdb/questdb:9.3.4";
const PROGRAM: &str = "registry.example/program:1";

/// Edits an object of the namespace by strategic merge patch, as `kubectl edit` does.
async fn edit<K>(client: &Client, env: &impl Env, name: &str, patch: Value)
where
    K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + serde::de::DeserializeOwned
        + std::fmt::Debug,
{
    let api = Api::<K>::namespaced(client.clone(), env.namespace());
    api.patch(name, &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
}

/// Of what decides what runs: the content of the ConfigMap, and the spec of the StatefulSet.
async fn content(env: &impl Env) -> Result<(Value, Value), String> {
    let files = env.api::<ConfigMap>().get("orders-config").await.map_err(|error| error.to_string())?;
    let set = env.api::<StatefulSet>().get("orders").await.map_err(|error| error.to_string())?;
    Ok((json!([files.data, files.binary_data]), json!(set.spec)))
}

async fn until_restored(env: &impl Env, expected: &(Value, Value)) {
    within(env.limit(), "the content that Freehold applied", || async {
        let content = content(env).await?;
        seen((content == *expected).then_some(()), || format!("{content:?}"))
    })
    .await;
}

/// Waits until the history holds these, in this order.
async fn until_history(env: &impl Env, expected: &[Occurrence]) {
    within(env.limit(), &format!("the history {expected:?}"), || async {
        let database = env.api::<Database>().get("orders").await.map_err(|error| error.to_string())?;
        let history = database.status.unwrap_or_default().history;
        let what: Vec<Occurrence> = history.iter().map(|entry| entry.what).collect();
        seen((what == expected).then_some(()), || format!("{history:?}"))
    })
    .await;
}

/// The UID of the pod, and the image of its engine.
async fn pod(env: &impl Env) -> Result<(String, String), String> {
    let pod = env.api::<Pod>().get("orders-0").await.map_err(|error| error.to_string())?;
    let image = pod.spec.as_ref().and_then(|spec| spec.containers[0].image.clone());
    Ok((pod.uid().unwrap_or_default(), image.unwrap_or_default()))
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "engine", "image": image}]}}}})
}

#[test]
fn what_a_tenant_writes_into_the_objects_of_a_database_is_reported_and_restored_without_a_restart() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        env.create("orders", &json!({})).await;
        env.ready("orders").await;
        let tenant = env.house.server.client(TENANT);
        let (applied, running) = (content(&env).await.unwrap(), pod(&env).await.unwrap());

        let files = json!({"data": {"start.sh": "a program"}, "binaryData": {"more": "AAAA"},
            "immutable": true});
        edit::<ConfigMap>(&tenant, &env, "orders-config", files).await;
        until_history(&env, &[Occurrence::ConfigMapAltered]).await;
        until_restored(&env, &applied).await;

        let program = json!([{"name": "program", "image": PROGRAM}]);
        let mut patch = image(PROGRAM);
        patch["spec"]["template"]["spec"]["initContainers"] = program;
        edit::<StatefulSet>(&tenant, &env, "orders", patch).await;
        until_history(&env, &[Occurrence::ConfigMapAltered, Occurrence::StatefulSetAltered]).await;
        until_restored(&env, &applied).await;
        env.ready("orders").await;
        assert_eq!(pod(&env).await.unwrap(), running, "no pod is restarted for it");
        env.close().await;
    });
}

/// Whether the Database ever had the condition that it is altered.
fn was_reported(env: &RigEnv) -> bool {
    let changes = env.house.server.changes();
    let databases = changes.iter().filter(|it| it.resource == "databases.freehold.dev");
    let conditions = databases.filter_map(|it| it.new.as_ref()?["status"]["conditions"].as_array());
    conditions.flatten().any(|it| it["type"] == "Altered" && it["status"] == "True")
}

#[test]
fn a_pod_that_was_started_from_a_tenants_template_is_reported_and_replaced() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        env.create("orders", &json!({})).await;
        env.ready("orders").await;
        let tenant = env.house.server.client(TENANT);
        let (applied, running) = (content(&env).await.unwrap(), pod(&env).await.unwrap());
        assert_eq!(running.1, PUBLISHED);

        // Kubernetes restarts the pod from it, since the tenant has changed the update strategy, too.
        env.kill_operator();
        let mut patch = image(PROGRAM);
        patch["spec"]["updateStrategy"] = json!({"type": "RollingUpdate"});
        edit::<StatefulSet>(&tenant, &env, "orders", patch).await;
        let altered = within(CALM, "a pod of the tenant's template", || async {
            let pod = pod(&env).await?;
            seen((pod.1 == PROGRAM).then(|| pod.clone()), || format!("{pod:?}"))
        })
        .await;

        // The operator is back after an hour.
        let replaced = within(CALM, "a pod of what Freehold applied", || async {
            let pod = pod(&env).await?;
            seen((pod.1 == PUBLISHED).then(|| pod.clone()), || format!("{pod:?}"))
        })
        .await;
        assert!(was_reported(&env));
        assert!(replaced.0 != altered.0 && replaced.0 != running.0);
        until_restored(&env, &applied).await;
        let database = env.ready("orders").await;
        assert!(database.conditions().iter().all(|condition| condition.type_ != "Altered"));
        let history = database.status.unwrap_or_default().history;
        let restarted = history.iter().find(|entry| entry.what == Occurrence::Restarted).unwrap();
        assert!(restarted.cause.contains("changed outside Freehold"), "{history:?}");
        env.close().await;
    });
}

#[test]
fn an_operator_that_finds_no_record_applies_both_anew_and_restarts_nothing() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        env.create("orders", &json!({})).await;
        env.ready("orders").await;
        let tenant = env.house.server.client(TENANT);
        let (applied, running) = (content(&env).await.unwrap(), pod(&env).await.unwrap());

        env.kill_operator();
        let forgotten = Patch::Merge(json!({"status": {"applied": null}}));
        env.api::<Database>().patch_status("orders", &PatchParams::default(), &forgotten).await.unwrap();
        edit::<StatefulSet>(&tenant, &env, "orders", image(PROGRAM)).await;
        edit::<ConfigMap>(&tenant, &env, "orders-config", json!({"data": {"start.sh": "a program"}})).await;

        until_restored(&env, &applied).await;
        within(CALM, "the record of what is applied", || async {
            let database = env.api::<Database>().get("orders").await.map_err(|error| error.to_string())?;
            let status = database.status.unwrap_or_default();
            let known =
                status.applied.clone().filter(|it| it.config_map.is_some() && it.stateful_set.is_some());
            seen(known.map(drop), || format!("{:?}", status.applied))
        })
        .await;
        until_history(&env, &[]).await;
        assert_eq!(pod(&env).await.unwrap(), running, "no pod is restarted for it");
        env.close().await;
    });
}

#[test]
fn an_engine_that_was_started_with_a_tenants_files_is_restarted_with_those_of_freehold() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        env.create("orders", &json!({})).await;
        env.ready("orders").await;
        let tenant = env.house.server.client(TENANT);
        let (applied, first) = (content(&env).await.unwrap(), pod(&env).await.unwrap());

        env.kill_operator();
        edit::<ConfigMap>(&tenant, &env, "orders-config", json!({"data": {"start.sh": "a program"}})).await;
        env.api::<Pod>().delete("orders-0", &DeleteParams::default()).await.unwrap();
        let altered = within(CALM, "another pod", || async {
            let pod = pod(&env).await?;
            seen((pod.0 != first.0).then(|| pod.clone()), || format!("{pod:?}"))
        })
        .await;

        let cause = within(CALM, "the restart of the engine", || async {
            let database = env.api::<Database>().get("orders").await.map_err(|error| error.to_string())?;
            let history = database.status.unwrap_or_default().history;
            let restarted = history.iter().find(|entry| entry.what == Occurrence::Restarted);
            seen(restarted.map(|entry| entry.cause.clone()), || format!("{history:?}"))
        })
        .await;
        assert_eq!(cause, "the engine was started while its ConfigMap was changed outside Freehold");
        until_restored(&env, &applied).await;
        within(CALM, "a third pod", || async {
            let pod = pod(&env).await?;
            seen((pod.0 != altered.0).then_some(()), || format!("{pod:?}"))
        })
        .await;
        env.ready("orders").await;
        env.close().await;
    });
}

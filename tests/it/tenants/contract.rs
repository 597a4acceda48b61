//! The NodeClass is the contract with tenants: what it does not permit costs nothing, and what runs goes on.

use ec2sim::Outside;
use freehold::api::Database;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::kit::env::Env as _;
use crate::kit::rig_env::{RigEnv, run};
use crate::kit::wait::within;
use crate::lives::life::CALM;

/// Labels the namespace of the test environment.
async fn label(env: &RigEnv, labels: &Value) {
    let namespaces = Api::<Namespace>::all(env.client());
    let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
    namespaces.patch(env.namespace(), &PatchParams::default(), &patch).await.unwrap();
}

#[test]
fn beyond_the_contract_nothing_is_called_and_within_it_the_database_is_created() {
    run(|| async {
        let env = RigEnv::start().await;
        let contract = json!({
            "namespaceSelector": {"matchLabels": {"tenant": "yes"}},
            "limits": {"databases": 1, "storage": "200Gi", "volumeTypes": ["gp3"]},
        });
        env.edit_class(&contract).await;
        env.create("orders", &json!({"storage": {"size": "1Ti"}})).await;
        let message = env.until_condition("orders", "Stalled", "True", "NotPermitted").await;
        assert!(message.contains("namespace team-a"), "{message}");
        label(&env, &json!({"tenant": "yes"})).await;
        within(CALM, "the limit being named", || async {
            let message = env.until_condition("orders", "Stalled", "True", "NotPermitted").await;
            if message.contains("storage up to 200Gi") { Ok(()) } else { Err(message) }
        })
        .await;
        assert!(env.mutations().is_empty(), "{:?}", env.mutations());
        env.close().await;
    });
}

#[test]
fn a_narrower_contract_refuses_new_databases_and_growth_and_repairs_what_runs() {
    run(|| async {
        let env = RigEnv::start().await;
        env.create("orders", &json!({})).await;
        let ready = env.ready("orders").await;
        let narrow = json!({
            "namespaceSelector": {"matchLabels": {"tenant": "yes"}},
            "limits": {"databases": 1, "storage": "100Gi"},
        });
        env.edit_class(&narrow).await;
        env.until_condition("orders", "NotPermitted", "True", "NotPermitted").await;
        env.ready("orders").await;
        env.create("events", &json!({})).await;
        env.until_condition("events", "Stalled", "True", "NotPermitted").await;
        env.edit("orders", &json!({"storage": {"size": "200Gi"}})).await;
        env.until_condition("orders", "Stalled", "True", "NotPermitted").await;
        assert!(!env.mutations().contains_key("ModifyVolume"), "{:?}", env.mutations());

        let before = ready.status.unwrap().node_name;
        let machine = env.live_instances().pop().unwrap();
        env.ec2().outside(&Outside::Terminate.to(&machine.id)).unwrap();
        within(CALM, "another machine in its place", || async {
            let database = env.api::<Database>().get("orders").await.map_err(|it| it.to_string())?;
            let status = database.status.unwrap_or_default();
            let serves = status.conditions.iter().any(|it| it.type_ == "EngineReady" && it.status == "True");
            if serves && status.node_name != before { Ok(()) } else { Err(format!("{:?}", status.node_name)) }
        })
        .await;

        label(&env, &json!({"tenant": "yes"})).await;
        env.edit_class(&json!({"limits": {"storage": "200Gi"}})).await;
        env.ready("orders").await;
        env.until_condition("events", "Stalled", "True", "NotPermitted").await;
        env.delete("orders").await;
        env.ready("events").await;
        env.close().await;
    });
}

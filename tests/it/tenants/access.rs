//! Who may connect to a database, and as what its engine runs.

use k8s_openapi::api::core::v1::{Pod, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::kit::env::Env as _;
use crate::kit::rig_env::{RigEnv, run};
use crate::kit::wait::{seen, within};
use crate::lives::life::CALM;

/// Waits until clients may come from here.
async fn admits(env: &RigEnv, expected: &Value) {
    within(CALM, &format!("clients from {expected}"), || async {
        let policy = env.api::<NetworkPolicy>().get("orders").await.map_err(|error| error.to_string())?;
        let from = json!(policy.spec.unwrap().ingress.unwrap()[0].from);
        seen((from == *expected).then_some(()), || from.to_string())
    })
    .await;
}

#[test]
fn clients_are_those_of_the_own_namespace_or_those_that_the_spec_names() {
    run(|| async {
        let env = RigEnv::start().await;
        env.create("orders", &json!({})).await;
        env.ready("orders").await;
        let own_namespace = json!([{"podSelector": {}}]);
        admits(&env, &own_namespace).await;

        let wider = json!({"spec": {"ingress": [{"ports": [{"port": 9000}]}], "egress": [{}]}});
        let policies = env.api::<NetworkPolicy>();
        policies.patch("orders", &PatchParams::default(), &Patch::Merge(wider)).await.unwrap();
        admits(&env, &own_namespace).await;
        let egress = policies.get("orders").await.unwrap().spec.unwrap().egress.unwrap();
        let dns = json!([
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
                "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}}},
            {"ipBlock": {"cidr": "169.254.20.10/32"}},
        ]);
        assert_eq!(json!(egress[0].to), dns);

        let web = json!({"namespaceSelector": {"matchLabels": {"team": "web"}}});
        env.edit("orders", &json!({"access": {"from": [web], "cidrs": ["10.20.0.0/16"]}})).await;
        admits(&env, &json!([web, {"ipBlock": {"cidr": "10.20.0.0/16"}}])).await;
        env.ready("orders").await;
        let ports = env.api::<Service>().get("orders").await.unwrap().spec.unwrap().ports.unwrap();
        let metrics = ports.iter().find(|port| port.name.as_deref() == Some("metrics"));
        assert_eq!(metrics.map(|port| port.port), Some(9003));
        env.close().await;
    });
}

#[test]
fn the_engine_runs_as_an_account_of_its_own_that_has_no_aws_role() {
    run(|| async {
        let env = RigEnv::start().await;
        env.create("orders", &json!({})).await;
        let name = env.ready("orders").await.status.unwrap().volume_name.unwrap();
        let pod = env.api::<Pod>().get("orders-0").await.unwrap().spec.unwrap();
        assert_eq!(pod.service_account_name.as_ref(), Some(&name));
        assert_eq!(pod.automount_service_account_token, Some(false));

        let role = "eks.amazonaws.com/role-arn";
        let accounts = env.api::<ServiceAccount>();
        let annotated =
            json!({"metadata": {"annotations": {role: "arn:aws:iam::1:role/admin", "team": "a"}}});
        accounts.patch(&name, &PatchParams::default(), &Patch::Merge(annotated)).await.unwrap();
        within(CALM, "the role being taken out", || async {
            let account = accounts.get(&name).await.map_err(|error| error.to_string())?;
            let keys: Vec<&String> = account.annotations().keys().collect();
            seen((keys == ["team"]).then_some(()), || format!("{keys:?}"))
        })
        .await;
        env.close().await;
    });
}

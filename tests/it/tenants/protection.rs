//! A Database that is protected from deletion: by the API server where the chart's policy is, and by the
//! operator where it is not.

use freehold::api::{Database, Volume};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolume, Pod};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt as _};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::chart::{of_kind, template};
use crate::kit::env::Env as _;
use crate::kit::rig_env::{self, RigEnv};
use crate::kit::test_env::{TestEnv, run};
use crate::kit::wait::{seen, until};

#[test]
fn a_protected_database_that_was_deleted_runs_until_the_protection_is_lifted() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        env.create("orders", &json!({"deletionProtection": true, "deletionPolicy": "Delete"})).await;
        let volume = env.ready("orders").await.status.unwrap().volume_name.unwrap();
        let policy = env.api::<Volume>().get(&volume).await.unwrap().spec.deletion_policy;
        assert_eq!(policy.as_str(), "Retain");
        let pod = env.api::<Pod>().get("orders-0").await.unwrap().uid();

        env.api::<Database>().delete("orders", &DeleteParams::default()).await.unwrap();
        env.until_condition("orders", "DeletionProtected", "True", "DeletionProtected").await;
        env.ready("orders").await;
        assert_eq!(env.api::<Pod>().get("orders-0").await.unwrap().uid(), pod);
        env.edit("orders", &json!({"deletionProtection": false})).await;
        env.delete("orders").await;
        env.gone("orders").await;
        assert!(env.data_volumes().is_empty(), "the policy is Delete once the protection is lifted");
        env.close().await;
    });
}

/// Installs the chart's policy for the namespace of this test environment alone.
async fn install(env: &TestEnv) {
    let watched = format!("namespaces={{{}}}", env.name);
    let rendered = template(&env.name, &["--set", &watched]).await.unwrap();
    let is_it = |it: &&&serde_json::Value| {
        it["metadata"]["name"].as_str().is_some_and(|name| name.ends_with("-deletion-protection"))
    };
    let policies = of_kind(&rendered, "ValidatingAdmissionPolicy");
    let policy: ValidatingAdmissionPolicy =
        serde_json::from_value((*policies.iter().find(is_it).unwrap()).clone()).unwrap();
    let bindings = of_kind(&rendered, "ValidatingAdmissionPolicyBinding");
    let binding: ValidatingAdmissionPolicyBinding =
        serde_json::from_value((*bindings.iter().find(is_it).unwrap()).clone()).unwrap();
    Api::all(env.client.clone()).create(&PostParams::default(), &policy).await.unwrap();
    Api::all(env.client.clone()).create(&PostParams::default(), &binding).await.unwrap();
}

#[test]
fn the_charts_policy_refuses_the_deletion_and_lets_the_namespace_go_with_its_volumes_retained() {
    run(async {
        let env = TestEnv::start("deletion-refused").await;
        env.create("orders", &json!({"deletionProtection": true, "deletionPolicy": "Delete"})).await;
        let ready = env.ready("orders").await;
        install(&env).await;
        let dry_run = DeleteParams { dry_run: true, ..DeleteParams::default() };
        let message = until("the policy being in force", || async {
            match env.api::<Database>().delete("orders", &dry_run).await {
                Err(kube::Error::Api(status)) => Ok(status.message.clone()),
                answer => Err(format!("{answer:?}")),
            }
        })
        .await;
        assert!(message.contains("spec.deletionProtection is true: set it to false"), "{message}");
        let is_deleted = env.api::<Database>().get("orders").await.unwrap().metadata.deletion_timestamp;
        assert_eq!(is_deleted, None);

        let volume = ready.status.unwrap().volume_name.unwrap();
        let volume = env.api::<Volume>().get(&volume).await.unwrap().uid().unwrap();
        let namespaces = Api::<Namespace>::all(env.client.clone());
        namespaces.delete(&env.name, &DeleteParams::default()).await.unwrap();
        let records = Api::<PersistentVolume>::all(env.client.clone());
        until("the volume being retained", || async {
            let left = env.api::<Database>().get_opt("orders").await.map_err(|error| error.to_string())?;
            let record = records.get_opt(&freehold::api::names::persistent_volume(&volume)).await;
            let phase = record.map_err(|error| error.to_string())?.and_then(|record| record.status?.phase);
            let is_retained = left.is_none() && phase.as_deref() == Some("Released");
            seen(is_retained.then_some(()), || format!("{phase:?}"))
        })
        .await;
        assert_eq!(env.data_volumes().len(), 1);
        env.close().await;
    });
}

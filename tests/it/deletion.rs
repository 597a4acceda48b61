//! A namespace or the definitions are deleted: nothing is lost.

use ec2sim::{InstanceView, VolumeState};
use freehold::api::DatabaseUser;
use freehold::api::keys::NODE_UID_TAG;
use freehold::definitions;
use k8s_openapi::api::core::v1::PersistentVolume;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt as _};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::env::Env;
use crate::kit::rig_env::{self, RigEnv};
use crate::kit::test_env::{Options, TestEnv, run};
use crate::kit::wait::{seen, until, within};
use crate::legacy::{as_found, found, permit, pod_run, spec};

/// The records of the test environment's volumes.
async fn records(env: &impl Env) -> Vec<PersistentVolume> {
    let all = Api::<PersistentVolume>::all(env.client())
        .list(&ListParams::default().labels("freehold.dev/retained=true"))
        .await;
    let ours = format!("{}/orders", env.namespace());
    all.unwrap()
        .items
        .into_iter()
        .filter(|record| record.annotations().get("freehold.dev/database") == Some(&ours))
        .collect()
}

/// The volume of `orders`, which was to be deleted with it, is kept, and its record says why.
async fn keeps_the_volume(env: &impl Env, engine: &str) {
    let record = within(env.limit(), "the record of what was kept", || async {
        let mut records = records(env).await;
        seen(records.pop(), || "none".to_owned())
    })
    .await;
    assert!(
        record.annotations()["freehold.dev/retained-because"].contains("were deleted"),
        "{:?}",
        record.annotations()
    );
    assert_eq!((record.annotations()["freehold.dev/engine"].as_str(), env.data_volumes().len()), (engine, 1));
    within(env.limit(), "the volume being available and its record Released", || async {
        let state = env.data_volumes().remove(0).state;
        let phase = records(env).await.remove(0).status.and_then(|status| status.phase);
        let is_so = state == VolumeState::Available && phase.as_deref() == Some("Released");
        seen(is_so.then_some(()), || format!("{state:?} {phase:?}"))
    })
    .await;
    // One that was adopted and is released goes on without them.
    let is_ours = |it: &InstanceView| it.tags.contains_key(NODE_UID_TAG);
    assert_eq!(env.live_instances().into_iter().filter(is_ours).count(), 0);
    assert_eq!(env.mutations().get("DeleteVolume"), None);
}

#[test]
fn a_namespace_that_is_deleted_keeps_the_volumes_of_its_databases() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        env.create("orders", &json!({"deletionPolicy": "Delete"})).await;
        env.ready("orders").await;
        env.delete_namespace().await;
        keeps_the_volume(&env, "questdb").await;
        env.close().await;
    });
}

/// Database, Volume and Node are deleted at once, in any order.
#[test]
fn definitions_that_are_deleted_keep_the_volumes_and_release_an_adopted_database_that_is_to_be_released() {
    run(async {
        // Nobody else's definitions go with them.
        let options = Options { watches_all: true, ..Options::default() };
        let mut env = TestEnv::build_alone("definitions-go", options).await;
        env.start_operator();
        let found = found(&env).await;
        permit(&env, &found, "adopted");
        env.create("adopted", &spec(&found)).await;
        let engine = json!({"type": "postgresql", "version": "17.6"});
        let orders = json!({"deletionPolicy": "Delete", "engine": engine, "applicationUser": {}});
        env.create("orders", &orders).await;
        env.ready("adopted").await;
        // No PostgreSQL answers here: its user is never let in.
        within(env.limit(), "the user of the application", || async {
            let user = env.api::<DatabaseUser>().get_opt("orders-application").await;
            seen(user.map_err(|error| error.to_string())?, || "none".to_owned())
        })
        .await;
        env.until_condition("orders", "EngineReady", "True", "AsExpected").await;
        env.edit("adopted", &json!({"release": true})).await;
        all_gone(&env).await;
        as_found(&env, &found).await;
        assert_eq!(pod_run(&env, &found.legacy).await, found.run);
        keeps_the_volume(&env, "postgresql").await;
        env.close_unchecked().await;
    });
}

/// Deletes the definitions, and waits until they are gone.
async fn all_gone(env: &TestEnv) {
    let installed = Api::<CustomResourceDefinition>::all(env.client.clone());
    for definition in definitions::all() {
        installed.delete(&definition.name_any(), &DeleteParams::default()).await.unwrap();
    }
    until("the definitions being gone", || async {
        let left = installed.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let names: Vec<String> = left.items.iter().map(kube::ResourceExt::name_any).collect();
        seen(names.is_empty().then_some(()), || format!("{names:?}"))
    })
    .await;
}

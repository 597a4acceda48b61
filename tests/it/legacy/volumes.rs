//! Volumes that no claim asked for: made by a person, or by Kubernetes' own plugin before the EBS CSI driver.

use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{DeleteParams, Patch, PatchParams};
use pretty_assertions::assert_eq;

use super::*;

/// Adopted, released as it was found, and adopted again, with nothing restarted.
async fn adopted_twice(env: &RigEnv, found: &Found) {
    permit(env, found, "orders");
    env.create("orders", &spec(found)).await;
    env.ready("orders").await;
    env.edit("orders", &json!({"release": true})).await;
    env.delete("orders").await;
    env.gone("orders").await;
    as_found(env, found).await;
    env.create("orders", &spec(found)).await;
    env.ready("orders").await;
    assert_eq!(pod_run(env, &found.legacy).await, found.run);
    assert_eq!(calls_that_matter(env, found), Vec::<String>::new());
}

/// It runs on a machine that Freehold launched, with its volume.
async fn moved(env: &RigEnv, found: &Found) {
    env.edit("orders", &json!({"instanceTypes": ["m7i.large"]})).await;
    elsewhere(env, found).await;
}

/// A larger size is refused before EC2 is asked; what the Database says.
async fn growth_is_refused(env: &RigEnv) -> String {
    env.edit("orders", &json!({"storage": {"size": "3Gi"}})).await;
    let message = env.until_condition("orders", "Stalled", "True", "ClaimNotExpandable").await;
    assert_eq!(env.mutations().get("ModifyVolume"), None);
    message
}

async fn grown(env: &RigEnv, found: &Found) {
    larger(env, found).await;
    assert_eq!(env.mutations().get("CreateVolume"), None);
}

#[test]
fn a_volume_of_kubernetes_own_plugin_is_adopted_moves_and_grows_once_its_class_permits_it() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        let found = found_on(&env, Disk::InTree).await;
        adopted_twice(&env, &found).await;
        moved(&env, &found).await;
        let message = growth_is_refused(&env).await;
        assert!(message.contains("kubectl patch storageclass gp2 --patch"), "{message}");
        let permits = Patch::Merge(json!({"allowVolumeExpansion": true}));
        let classes = Api::<StorageClass>::all(env.client());
        classes.patch("gp2", &PatchParams::default(), &permits).await.unwrap();
        grown(&env, &found).await;
        env.close().await;
    });
}

#[test]
fn a_volume_that_a_person_made_is_adopted_moves_and_grows_once_its_claim_has_a_class() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        let found = found_on(&env, Disk::ByHand).await;
        adopted_twice(&env, &found).await;
        moved(&env, &found).await;
        let message = growth_is_refused(&env).await;
        assert!(message.contains("names no StorageClass"), "{message}");

        // As docs/adopt.md says.
        let record = record_of(&env, &found.legacy).await.name_any();
        env.edit("orders", &json!({"running": false})).await;
        env.until_condition("orders", "Ready", "False", "Paused").await;
        let background = DeleteParams::default();
        let records = Api::<PersistentVolume>::all(env.client());
        records.delete(&record, &background).await.unwrap();
        env.api::<PersistentVolumeClaim>().delete(&found.legacy.claim(), &background).await.unwrap();
        env.edit("orders", &json!({"running": true})).await;
        grown(&env, &found).await;
        env.close().await;
    });
}

//! A namespace that is created anew under the name of one that was deleted: what was retained for the former
//! tenant is not the new one's, unless the platform team says so.

use freehold::api::names::persistent_volume;
use freehold::api::{Volume, keys};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolume};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::kit::env::Env as _;
use crate::kit::test_env::{TestEnv, run};
use crate::kit::wait::{seen, until};

#[test]
fn a_namespace_created_anew_does_not_adopt_what_the_former_one_retained() {
    run(async {
        let env = TestEnv::start("recreated").await;
        env.create("orders", &json!({})).await;
        let volume = env.ready("orders").await.status.unwrap().volume_name.unwrap();
        let record = persistent_volume(&env.api::<Volume>().get(&volume).await.unwrap().uid().unwrap());
        let namespaces = Api::<Namespace>::all(env.client.clone());
        namespaces.delete(&env.name, &DeleteParams::default()).await.unwrap();
        until("the namespace being gone", || async {
            let left = namespaces.get_opt(&env.name).await.map_err(|error| error.to_string())?;
            seen(left.is_none().then_some(()), || format!("{left:?}"))
        })
        .await;
        let records = Api::<PersistentVolume>::all(env.client.clone());
        until("the record being Released", || async {
            let record = records.get(&record).await.map_err(|error| error.to_string())?;
            let phase = record.status.and_then(|status| status.phase);
            seen((phase.as_deref() == Some("Released")).then_some(()), || format!("{phase:?}"))
        })
        .await;

        let anew = serde_json::from_value(json!({"metadata": {"name": env.name}})).unwrap();
        namespaces.create(&PostParams::default(), &anew).await.unwrap();
        env.create("orders", &json!({"storage": {"adoptRetained": record}})).await;
        let message = env.until_condition("orders", "Stalled", "True", "AdoptionRefused").await;
        assert!(message.contains("of an earlier namespace recreated"), "{message}");

        let allow = json!({"metadata": {"annotations": {keys::NAMESPACE_UID_ANNOTATION: null}}});
        records.patch(&record, &PatchParams::default(), &Patch::Merge(allow)).await.unwrap();
        until("the credentials being what is missing", || async {
            let message = env.until_condition("orders", "Stalled", "True", "AdoptionRefused").await;
            seen(message.contains("Secret").then_some(()), || message.clone())
        })
        .await;
        env.close().await;
    });
}

//! A namespace that is created anew under the name of one that was deleted: what was retained for the former
//! tenant is not the new one's, unless the platform team says so.

use freehold::api::names::persistent_volume;
use freehold::api::{Volume, keys};
use k8s_openapi::api::core::v1::PersistentVolume;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::kit::env::Env as _;
use crate::kit::rig_env::{self, RigEnv};
use crate::kit::wait::{seen, within};
use crate::lives::life::CALM;

#[test]
fn a_namespace_created_anew_does_not_adopt_what_the_former_one_retained() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        env.create("orders", &json!({})).await;
        let volume = env.ready("orders").await.status.unwrap().volume_name.unwrap();
        let record = persistent_volume(&env.api::<Volume>().get(&volume).await.unwrap().uid().unwrap());
        env.delete_namespace().await;
        let records = Api::<PersistentVolume>::all(env.client());
        within(CALM, "the record being Released", || async {
            let record = records.get(&record).await.map_err(|error| error.to_string())?;
            let phase = record.status.and_then(|status| status.phase);
            seen((phase.as_deref() == Some("Released")).then_some(()), || format!("{phase:?}"))
        })
        .await;

        env.house.namespace(env.namespace()).await;
        env.create("orders", &json!({"storage": {"adoptRetained": record}})).await;
        let message = env.until_condition("orders", "Stalled", "True", "AdoptionRefused").await;
        assert!(message.contains("of an earlier namespace team-a"), "{message}");

        let allow = json!({"metadata": {"annotations": {keys::NAMESPACE_UID_ANNOTATION: null}}});
        records.patch(&record, &PatchParams::default(), &Patch::Merge(allow)).await.unwrap();
        within(CALM, "the credentials being what is missing", || async {
            let message = env.until_condition("orders", "Stalled", "True", "AdoptionRefused").await;
            seen(message.contains("Secret").then_some(()), || message.clone())
        })
        .await;
        env.close().await;
    });
}

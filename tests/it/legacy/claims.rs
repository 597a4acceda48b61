//! The claim and the PersistentVolume of an adopted database are deleted: they are created again with the
//! same data, and Kubernetes makes no empty claim in their place.

use freehold::cluster::{delete, is_conflict};
use kube::api::{DeleteParams, Patch, PatchParams};
use pretty_assertions::assert_eq;

use super::*;
use crate::lives::life::CALM;

#[test]
fn a_claim_and_a_persistent_volume_that_were_deleted_are_created_again_with_the_same_data() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        let found = adopted(&env).await;
        let claims = env.api::<PersistentVolumeClaim>();
        let claim = found.legacy.claim();
        let first = claims.get(&claim).await.unwrap();
        let record = record_of(&env, &found.legacy).await.name_any();

        // It ends with the pod that uses it, which goes on.
        claims.delete(&claim, &DeleteParams::default()).await.unwrap();
        let message = env.until_condition("orders", "Stalled", "True", "AwaitingBinding").await;
        assert!(message.contains("Set spec.running to false at a quiet hour"), "{message}");
        assert_eq!(pod_run(&env, &found.legacy).await, found.run);
        env.edit("orders", &json!({"running": false})).await;
        within(CALM, "another claim, bound to the same PersistentVolume", || async {
            let again = claims.get_opt(&claim).await.map_err(|error| error.to_string())?;
            let again = again.ok_or("no claim")?;
            let phase = again.status.as_ref().and_then(|status| status.phase.as_deref());
            let named = again.spec.as_ref().and_then(|spec| spec.volume_name.as_deref());
            let is_again = again.uid() != first.uid() && phase == Some("Bound");
            seen((is_again && named == Some(record.as_str())).then_some(()), || format!("{again:?}"))
        })
        .await;
        env.until_condition("orders", "Ready", "False", "Paused").await;
        env.edit("orders", &json!({"running": true})).await;
        env.ready("orders").await;
        assert_eq!(volumes(&env), std::slice::from_ref(&found.volume));

        // Its PersistentVolume is gone by force.
        let records = Api::<PersistentVolume>::all(env.client());
        let before = records.get(&record).await.unwrap().uid();
        let bare = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        records.delete(&record, &DeleteParams::default()).await.unwrap();
        records.patch(&record, &PatchParams::default(), &bare).await.unwrap();
        within(CALM, "another PersistentVolume, and the claim bound to it", || async {
            let again = records.get_opt(&record).await.map_err(|error| error.to_string())?;
            let claim = claims.get(&claim).await.map_err(|error| error.to_string())?;
            let phase = claim.status.and_then(|status| status.phase);
            let is_again = again.as_ref().is_some_and(|again| again.uid() != before);
            seen((is_again && phase.as_deref() == Some("Bound")).then_some(()), || {
                format!("{again:?} {phase:?}")
            })
        })
        .await;
        env.ready("orders").await;
        assert_eq!(volumes(&env), std::slice::from_ref(&found.volume));
        env.close().await;
    });
}

#[test]
fn a_claim_that_is_deleted_while_no_operator_runs_is_replaced_by_no_empty_one() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        let found = adopted(&env).await;
        let (claims, pods) = (env.api::<PersistentVolumeClaim>(), env.api::<Pod>());
        let (claim, pod) = (found.legacy.claim(), format!("{}-0", found.legacy.name));
        let record = record_of(&env, &found.legacy).await.name_any();
        changed_since(&pods, &pod).await;
        assert_eq!(pod_run(&env, &found.legacy).await, found.run);

        let first = within(CALM, "the claim being held", || async {
            let claim = claims.get(&claim).await.map_err(|error| error.to_string())?;
            let is_held = claim.finalizers().iter().any(|it| it == FINALIZER);
            seen(is_held.then(|| claim.clone()), || format!("{:?}", claim.metadata))
        })
        .await;
        env.kill_operator();
        claims.delete(&claim, &DeleteParams::default()).await.unwrap();
        let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        pods.delete(&pod, &at_once).await.unwrap();
        within(CALM, "Kubernetes letting the claim go", || async {
            let claim = claims.get(&claim).await.map_err(|error| error.to_string())?;
            assert_eq!(claim.uid(), first.uid());
            let is_free = claim.metadata.deletion_timestamp.is_some() && claim.finalizers() == [FINALIZER];
            seen(is_free.then_some(()), || format!("{:?}", claim.metadata))
        })
        .await;

        // It is back after an hour.
        within(CALM, "another claim, bound to the same PersistentVolume", || async {
            let again = claims.get_opt(&claim).await.map_err(|error| error.to_string())?;
            let again = again.filter(|again| again.uid() != first.uid()).ok_or("no other claim")?;
            let named = again.spec.as_ref().and_then(|spec| spec.volume_name.as_deref());
            assert_eq!(named, Some(record.as_str()));
            let phase = again.status.as_ref().and_then(|status| status.phase.as_deref());
            seen((phase == Some("Bound")).then_some(()), || format!("{again:?}"))
        })
        .await;
        env.ready("orders").await;
        assert_eq!(volumes(&env), std::slice::from_ref(&found.volume));
        env.close().await;
    });
}

/// A pod that has changed since it was read is not deleted.
async fn changed_since(pods: &Api<Pod>, name: &str) {
    let read = pods.get(name).await.unwrap();
    let changed = Patch::Merge(json!({"metadata": {"annotations": {"changed": "since"}}}));
    pods.patch(name, &PatchParams::default(), &changed).await.unwrap();
    let (uid, version) = (read.uid().unwrap(), read.resource_version().unwrap());
    let answer = delete::delete_as_read(pods, name, &uid, &version).await;
    assert!(answer.is_err_and(|error| is_conflict(&error)));
    delete::delete_as_read(pods, "no-such-pod", &uid, &version).await.unwrap();
}

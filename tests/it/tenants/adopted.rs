//! An adopted database under the chart's admission policies: it is adopted, lives and is released with all of
//! them, and what would restart or end it, or lose its data, is refused or mended.

use freehold::api::Database;
use freehold::api::keys::ADOPTION_ANNOTATION;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolume, Pod};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, PropagationPolicy};
use kube::core::ApiResource;
use kube::{Api, Client, ResourceExt as _};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::admission::{own_control_plane, policies};
use crate::kit::env::Env as _;
use crate::kit::objects::merge;
use crate::kit::permits::{self, Share};
use crate::kit::rights::acting_as;
use crate::kit::test_env::{TestEnv, run};
use crate::kit::wait::{seen, until};
use crate::legacy::{Found, as_found, found, permit, pod_run, spec, volumes};

/// The namespace of the release, of the operator and of the database.
const OURS: &str = "admission-old";
/// Its service account.
const OPERATOR: &str = "system:serviceaccount:admission-old:freehold";
/// The garbage collector of Kubernetes.
const COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";

fn dry() -> PatchParams {
    PatchParams { dry_run: true, ..PatchParams::default() }
}

/// What the API server answers to this change, which is not carried out.
async fn try_to_change(sets: &Api<StatefulSet>, name: &str, patch: Value) -> Result<(), String> {
    let answer = sets.patch(name, &dry(), &Patch::Merge(patch)).await;
    answer.map(drop).map_err(|error| error.to_string())
}

fn refused(answer: Result<(), String>, says: &str) {
    let Err(said) = answer else { panic!("it was not refused with {says:?}") };
    assert!(said.contains(says), "{said}, and not {says:?}");
}

#[test]
fn an_adopted_database_lives_with_every_policy_and_what_would_restart_or_end_it_is_refused() {
    run(async {
        let _permit = permits::of_virtual_machines(Share::One).await;
        let mut env = own_control_plane(OURS).await;
        policies(&env).await;
        updates_of_the_operator(&env).await;
        let found = found(&env).await;
        permit(&env, &found, "orders");
        env.start_operator();
        env.create("orders", &spec(&found)).await;
        env.ready("orders").await;
        assert_eq!(pod_run(&env, &found.legacy).await, found.run);
        other_clients(&env, &found).await;
        status_lost(&env, &found).await;
        env.edit("orders", &json!({"release": true})).await;
        in_the_foreground(&env).await;
        env.delete("orders").await;
        env.gone("orders").await;
        as_found(&env, &found).await;
        assert_eq!(pod_run(&env, &found.legacy).await, found.run);

        // And adopted again, restarted for another spec, and deleted.
        env.create("orders", &spec(&found)).await;
        env.ready("orders").await;
        env.edit("orders", &json!({"resources": {"requests": {"cpu": "100m"}}})).await;
        until("the pod that was found being replaced", || async {
            let pod = env.api::<Pod>().get_opt(&format!("{}-0", found.legacy.name)).await;
            let uid = pod.map_err(|error| error.to_string())?.and_then(|pod| pod.uid());
            let is_new = uid.is_some() && uid.as_deref() != found.run["uid"].as_str();
            seen(is_new.then_some(()), || format!("{uid:?}"))
        })
        .await;
        env.ready("orders").await;
        stateful_set_deleted(&env, &found).await;
        env.delete("orders").await;
        env.gone("orders").await;
        env.close().await;
    });
}

/// Other clients may annotate and scale the StatefulSet, and neither restart nor end what it runs; Kubernetes
/// may delete it.
async fn other_clients(env: &TestEnv, found: &Found) {
    let (sets, name) = (env.api::<StatefulSet>(), found.legacy.name.as_str());
    let template = json!({"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}});
    let alone = "are written by the Freehold operator alone";
    for spec in [
        json!({"updateStrategy": {"type": "RollingUpdate"}}),
        json!({"template": template}),
        json!({"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}),
        json!({"ordinals": {"start": 1}}),
    ] {
        refused(try_to_change(&sets, name, json!({"spec": spec})).await, alone);
    }
    try_to_change(&sets, name, json!({"metadata": {"labels": {"team": "a"}}})).await.unwrap();
    let scale = Patch::Merge(json!({"spec": {"replicas": 0}}));
    sets.patch_scale(name, &dry(), &scale).await.unwrap();

    let params = DeleteParams { dry_run: true, ..DeleteParams::default() };
    let deleted = sets.delete(name, &params).await.map(drop).map_err(|error| error.to_string());
    refused(deleted, "the StatefulSet of an adopted database is not deleted");
    let collector = acting_as(&env.control_plane, COLLECTOR).await;
    Api::<StatefulSet>::namespaced(collector, OURS).delete(name, &params).await.unwrap();
}

/// The StatefulSet is deleted by who may: the operator is not allowed to create it again with what it was
/// found with, says so, and adopts the one that a person creates from the record.
async fn stateful_set_deleted(env: &TestEnv, found: &Found) {
    let collector = acting_as(&env.control_plane, COLLECTOR).await;
    let sets = Api::<StatefulSet>::namespaced(collector, OURS);
    sets.delete(&found.legacy.name, &DeleteParams::background()).await.unwrap();
    let message = env.until_condition("orders", "Stalled", "True", "ChildRefused").await;
    assert!(message.contains("status.adoption.statefulSet"), "{message}");
    let status = env.api::<Database>().get("orders").await.unwrap().status.unwrap();
    let recorded = created(status.adoption.unwrap().stateful_set);
    api::<StatefulSet>(env.client.clone()).create(&PostParams::default(), &recorded).await.unwrap();
    env.ready("orders").await;
    assert_eq!(volumes(env), std::slice::from_ref(&found.volume));
}

/// The status is lost, as in a restore from a backup: how the database was found is not.
async fn status_lost(env: &TestEnv, found: &Found) {
    let databases = env.api::<Database>();
    let known = databases.get("orders").await.unwrap().status.unwrap().adoption.unwrap();
    let set = env.api::<StatefulSet>().get(&found.legacy.name).await.unwrap();
    assert!(set.annotations().contains_key(ADOPTION_ANNOTATION));
    // Whatever the operator has written since.
    let lost = Patch::Merge(json!({"status": null}));
    databases.patch_status("orders", &PatchParams::default(), &lost).await.unwrap();
    until("the adoption being recorded again", || async {
        let status = databases.get("orders").await.map_err(|error| error.to_string())?.status;
        let recorded = status.and_then(|status| status.adoption);
        seen((recorded.as_ref() == Some(&known)).then_some(()), || format!("{recorded:?}"))
    })
    .await;
    env.ready("orders").await;
    assert_eq!(pod_run(env, &found.legacy).await, found.run);
}

/// The deletion of a Database that releases is refused with the propagation policy Foreground, however it is
/// given.
async fn in_the_foreground(env: &TestEnv) {
    let databases = env.api::<Database>();
    let params = |propagation_policy: Option<PropagationPolicy>| DeleteParams {
        dry_run: true,
        propagation_policy,
        ..DeleteParams::default()
    };
    let foreground = || params(Some(PropagationPolicy::Foreground));
    let answer = databases.delete("orders", &foreground()).await;
    refused(answer.map(drop).map_err(|error| error.to_string()), "propagation policy Foreground");
    for policy in [None, Some(PropagationPolicy::Background)] {
        databases.delete("orders", &params(policy)).await.unwrap();
    }
    env.edit("orders", &json!({"release": false})).await;
    databases.delete("orders", &foreground()).await.unwrap();
    env.edit("orders", &json!({"release": true})).await;
}

/// What was there before, with rights that no database of Freehold has.
fn of_before(name: &str) -> Value {
    let labels = json!({"app": name});
    let pod = json!({
        "serviceAccountName": "legacy", "hostNetwork": true,
        "containers": [
            {"name": "db", "image": "db:1", "securityContext": {"privileged": true}},
            {"name": "plain", "image": "plain:1"},
        ],
        "volumes": [{"name": "host", "hostPath": {"path": "/var/log"}}],
    });
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name},
        "spec": {"replicas": 0, "serviceName": name, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod}},
    })
}

fn api<K: kube::Resource<DynamicType = ()>>(client: Client) -> Api<DynamicObject> {
    let resource = ApiResource::erase::<K>(&());
    if resource.kind == "PersistentVolume" {
        Api::all_with(client, &resource)
    } else {
        Api::namespaced_with(client, OURS, &resource)
    }
}

fn created(object: Value) -> DynamicObject {
    serde_json::from_value(object).unwrap()
}

/// What the operator may change of what it did not create: a StatefulSet keeps the rights that it had, and
/// gets no others.
async fn updates_of_the_operator(env: &TestEnv) {
    let operator = acting_as(&env.control_plane, OPERATOR).await;
    let theirs = api::<StatefulSet>(env.client.clone());
    theirs.create(&PostParams::default(), &created(of_before("before"))).await.unwrap();
    let sets = api::<StatefulSet>(operator.clone());
    let in_force = Patch::Merge(json!({"spec": {"template": {"spec": {"hostPID": true}}}}));
    until("the policies being in force", || async {
        let answer = sets.patch("before", &dry(), &in_force).await;
        seen(answer.is_err().then_some(()), || format!("{answer:?}"))
    })
    .await;
    let mut wrong = Vec::new();
    for (patch, says) in tries_of_the_operator() {
        let answer = sets.patch("before", &dry(), &Patch::Merge(&patch)).await;
        wrong.extend(unlike(answer, says).map(|it| format!("{patch}: {it}")));
    }
    let ebs = json!({"awsElasticBlockStore": {"volumeID": "vol-1"}});
    wrong.extend(updates_of_a_volume(env, &operator, "in-tree", &ebs, "").await);
    let host = json!({"hostPath": {"path": "/"}});
    wrong.extend(updates_of_a_volume(env, &operator, "host", &host, "of the EBS CSI driver only").await);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Changes of that StatefulSet, and what their refusals say; nothing where they are allowed.
fn tries_of_the_operator() -> [(Value, &'static str); 9] {
    let found = of_before("before")["spec"]["template"]["spec"].clone();
    let pod = |changes: Value| {
        let mut pod = found.clone();
        merge(&mut pod, &changes);
        json!({"spec": {"template": {"spec": pod}}})
    };
    let plain = |changes: Value| {
        let mut containers = found["containers"].clone();
        merge(&mut containers[1], &changes);
        pod(json!({"containers": containers}))
    };
    let (token, host) = ("without a service account's token only", "without hostPath");
    let other_path = json!([{"name": "host", "hostPath": {"path": "/"}}]);
    [
        (json!({"spec": {"replicas": 1}}), ""),
        (json!({"metadata": {"labels": {"team": "a"}}}), ""),
        (pod(json!({"nodeSelector": {"a": "b"}})), ""),
        (plain(json!({"image": "plain:2"})), ""),
        (pod(json!({"hostNetwork": false, "volumes": null})), ""),
        (pod(json!({"serviceAccountName": "other"})), token),
        (pod(json!({"hostPID": true})), host),
        (pod(json!({"volumes": other_path})), host),
        (plain(json!({"securityContext": {"privileged": true}})), "without privileged containers"),
    ]
}

/// What the operator may change of a PersistentVolume with this source; what was answered otherwise.
async fn updates_of_a_volume(
    env: &TestEnv,
    operator: &Client,
    name: &str,
    source: &Value,
    says: &str,
) -> Vec<String> {
    let mut volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}});
    merge(&mut volume["spec"], source);
    let theirs = api::<PersistentVolume>(env.client.clone());
    theirs.create(&PostParams::default(), &created(volume)).await.unwrap();
    let volumes = api::<PersistentVolume>(operator.clone());
    let policy = Patch::Merge(json!({"spec": {"persistentVolumeReclaimPolicy": "Delete"}}));
    let labelled = Patch::Merge(json!({"metadata": {"labels": {"team": "a"}}}));
    [
        unlike(volumes.patch(name, &dry(), &policy).await, says),
        unlike(volumes.patch(name, &dry(), &labelled).await, ""),
    ]
    .into_iter()
    .flatten()
    .map(|wrong| format!("{name}: {wrong}"))
    .collect()
}

/// The answer, if it is otherwise than it should be: a refusal that says this, or none.
fn unlike(answer: Result<DynamicObject, kube::Error>, says: &str) -> Option<String> {
    let answer = answer.map(drop).map_err(|error| error.to_string());
    let is_right = match &answer {
        Ok(()) => says.is_empty(),
        Err(said) => !says.is_empty() && said.contains(says),
    };
    (!is_right).then(|| format!("{answer:?}, and not {says:?}"))
}

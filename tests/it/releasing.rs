//! `freehold release`: a database goes on running without Freehold, as it runs, or as it was found; its pod
//! can come back on its machine without the operator; and it can be adopted again.

use ec2sim::{AttachmentView, InstanceState, InstanceView};
use freehold_box::legacy::Legacy;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    ConfigMap, Node as CoreNode, PersistentVolume, PersistentVolumeClaim, Pod, Secret, Service,
    ServiceAccount,
};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::kit::adopter;
use crate::kit::env::Env as _;
use crate::kit::test_env::{OPERATOR, TestEnv, run};
use crate::kit::wait::{seen, until};
use crate::legacy::{self, found, permit};

/// Runs the command for `orders` with these arguments more; gives its exit code and what it printed.
async fn release(env: &TestEnv, arguments: &[&str]) -> (Option<i32>, String) {
    adopter::freehold(env, &[&["release", &format!("{}/orders", env.name)], arguments].concat()).await
}

/// The pod, since when it runs, and where.
async fn pod(env: &TestEnv) -> Result<Value, String> {
    let pod = env.api::<Pod>().get("orders-0").await.map_err(|error| error.to_string())?;
    let (status, containers) = (pod.status.clone().unwrap_or_default(), legacy::containers(&pod));
    let is_ready = status.conditions.iter().flatten().any(|it| it.type_ == "Ready" && it.status == "True");
    Ok(json!({"uid": pod.uid(), "labels": pod.labels(), "node": pod.spec.and_then(|spec| spec.node_name),
        "started": status.start_time, "containers": containers, "isReady": is_ready}))
}

/// The state of the machine and where its disks and the data are attached.
fn machines(env: &TestEnv) -> Value {
    shown(env, |it| json!(format!("{it:?}")))
}

/// The same, but neither since when nor as which device: for a new pod its volume may be detached and
/// attached.
fn placed(env: &TestEnv) -> Value {
    shown(env, |it| json!([it.instance_id, format!("{:?}", it.state), it.delete_on_termination]))
}

fn shown(env: &TestEnv, attachment: impl Fn(&AttachmentView) -> Value) -> Value {
    // EC2 forgets those that have ended after an hour.
    let goes_on = |it: &&InstanceView| it.state != InstanceState::Terminated;
    let all = env.ec2().instances();
    let states: Vec<Value> =
        all.iter().filter(goes_on).map(|it| json!([it.id, format!("{:?}", it.state)])).collect();
    let disks: Vec<Value> = env
        .ec2()
        .volumes()
        .iter()
        // The root of a machine that was terminated before goes on its own.
        .filter_map(|it| {
            let attached = attachment(it.attachment.as_ref()?);
            Some(json!([it.id, format!("{:?} {:?}", it.state, it.shape), attached]))
        })
        .collect();
    json!([states, disks])
}

/// The metadata and the spec of everything that the database runs by.
async fn objects(env: &TestEnv) -> Vec<(ObjectMeta, Value)> {
    let mut all = Vec::new();
    for object in env.list::<StatefulSet>().await {
        all.push((object.metadata, json!(object.spec)));
    }
    for object in env.list::<Service>().await {
        all.push((object.metadata, json!(object.spec)));
    }
    for object in env.list::<ConfigMap>().await.into_iter().filter(|it| it.name_any() != "kube-root-ca.crt") {
        all.push((object.metadata, json!(object.data)));
    }
    for object in env.list::<ServiceAccount>().await.into_iter().filter(|it| it.name_any() != "default") {
        all.push((object.metadata, json!(object.automount_service_account_token)));
    }
    for object in env.list::<NetworkPolicy>().await {
        all.push((object.metadata, json!(object.spec)));
    }
    for object in env.list::<Secret>().await {
        all.push((object.metadata, json!(object.data)));
    }
    for object in env.list::<PersistentVolumeClaim>().await {
        let records = Api::<PersistentVolume>::all(env.client.clone());
        let record =
            records.get(object.spec.as_ref().unwrap().volume_name.as_deref().unwrap()).await.unwrap();
        all.push((object.metadata, json!(object.spec)));
        all.push((record.metadata, json!(record.spec)));
    }
    // Each change of a status changes both.
    for (metadata, _) in &mut all {
        (metadata.resource_version, metadata.managed_fields) = (None, None);
    }
    all
}

async fn core_node(env: &TestEnv, name: &str) -> CoreNode {
    Api::<CoreNode>::all(env.client.clone()).get(name).await.unwrap()
}

/// What of Freehold's own is in the metadata of an object; the labels of a Secret stay.
fn of_freehold(metadata: &ObjectMeta) -> Vec<String> {
    let is_ours = |text: &str| text.contains("freehold");
    let owners = metadata.owner_references.iter().flatten().map(|owner| owner.api_version.clone());
    let finalizers = metadata.finalizers.iter().flatten().cloned();
    let keys = |map: &Option<std::collections::BTreeMap<String, String>>| {
        map.iter().flatten().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>()
    };
    let ours = owners.chain(finalizers).chain(keys(&metadata.labels)).chain(keys(&metadata.annotations));
    ours.filter(|text| is_ours(text)).collect()
}

/// What the operator did in EC2 since then, besides reading.
fn calls_since(env: &TestEnv, mark: u64) -> Vec<String> {
    let calls = env.ec2().journal_since(mark).into_iter().filter(|entry| !entry.dry_run);
    let calls = calls.filter(|entry| !entry.action.starts_with("Describe"));
    calls.map(|entry| format!("{} by {}", entry.action, entry.caller)).collect()
}

#[test]
fn a_database_is_released_as_it_runs_and_adopted_again_but_not_while_it_is_paused() {
    run(async {
        let mut env = TestEnv::start("releasing").await;
        paused_is_not_released(&mut env).await;
        env.create("orders", &json!({})).await;
        let made = env.ready("orders").await;
        let (ran, machine) = (pod(&env).await.unwrap(), machines(&env));
        let (before, mark, writes) = (objects(&env).await, env.mark(), env.tap.seen().len());
        let node = ran["node"].as_str().unwrap();
        let uid = made.uid().unwrap();

        let (code, report) = release(&env, &[]).await;
        assert_eq!(code, Some(0), "{report}");
        for part in ["as it runs now", "orders-0", node, "i-", "vol-", "OnDelete"] {
            assert!(report.contains(part), "{part}: {report}");
        }
        let same = env.api::<freehold::api::Database>().get("orders").await.unwrap();
        assert_eq!(same.metadata.generation, made.metadata.generation);
        assert_eq!((objects(&env).await, calls_since(&env, mark)), (before.clone(), Vec::new()));
        let written = env.tap.seen().into_iter().skip(writes).filter(|it| it.body.contains("release"));
        assert_eq!(written.count(), 0);

        let (code, report) = release(&env, &["--write", "--timeout", "1200"]).await;
        assert_eq!(code, Some(0), "{report}");
        assert!(report.contains("runs on without Freehold"), "{report}");
        env.gone("orders").await;
        assert_eq!(pod(&env).await.unwrap(), ran, "nothing restarted");
        assert_eq!(machines(&env), machine);
        let calls = calls_since(&env, mark);
        assert!(calls.iter().all(|call| *call == format!("DeleteTags by {OPERATOR}")), "{calls:?}");
        let (instances, disks) = (env.ec2().instances(), env.ec2().volumes());
        let tags = instances.iter().map(|it| &it.tags).chain(disks.iter().map(|it| &it.tags));
        for tags in tags {
            assert!(tags.keys().all(|key| !key.starts_with("freehold.dev/")), "{tags:?}");
            assert!(tags.contains_key("Name"), "{tags:?}");
        }
        assert_eq!(env.list::<PodDisruptionBudget>().await.len(), 0, "nothing would end a drain");
        let after = objects(&env).await;
        let content = |all: &[(ObjectMeta, Value)]| {
            all.iter()
                .map(|(it, content)| (it.name.clone(), it.uid.clone(), content.clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(content(&after), content(&before), "every object stays as it is");
        let secret = made.status.unwrap().credentials_secret_name;
        for (metadata, _) in after.iter().filter(|(it, _)| it.name != secret) {
            assert_eq!(of_freehold(metadata), Vec::<String>::new(), "{:?}", metadata.name);
        }
        let labels = core_node(&env, node).await;
        assert_eq!(labels.finalizers(), [] as [String; 0]);
        assert!(labels.labels().values().any(|value| *value == uid), "the pod finds its machine by it");

        // Nothing of Freehold's is there any more, and the pod comes back on its machine with its data.
        env.kill_operator();
        let at = placed(&env);
        env.api::<Pod>().delete("orders-0", &DeleteParams::default()).await.unwrap();
        until("the pod on its machine again", || async {
            let again = pod(&env).await?;
            let is_back = again["uid"] != ran["uid"] && again["isReady"] == true;
            seen((is_back && again["node"] == ran["node"]).then_some(()), || again.to_string())
        })
        .await;
        until("the volume where it was", || async {
            let now = placed(&env);
            seen((now == at).then_some(()), || format!("{now}, not {at}"))
        })
        .await;
        adopted_again(&mut env, &uid).await;
        env.close().await;
    });
}

/// It is adopted as any database that runs, and left with the label that its pod is placed by.
async fn adopted_again(env: &mut TestEnv, former: &str) {
    let ran = pod(env).await.unwrap();
    let claim = env.list::<PersistentVolumeClaim>().await.remove(0);
    let records = Api::<PersistentVolume>::all(env.client.clone());
    let record = records.get(&claim.spec.as_ref().unwrap().volume_name.clone().unwrap()).await.unwrap();
    let volume = record.spec.unwrap().csi.unwrap().volume_handle;
    let instance = env.live_instances().remove(0);
    let subject = format!("{0}/{0}/again", env.name);
    let permits = [
        ("Action", "CreateTags"),
        ("ResourceId.1", instance.id.as_str()),
        ("ResourceId.2", &volume),
        ("Tag.1.Key", "freehold.dev/adopt"),
        ("Tag.1.Value", &subject),
    ];
    env.ec2().call("a person", &permits).unwrap();
    let size = claim.spec.unwrap().resources.unwrap().requests.unwrap()["storage"].0.clone();
    let adopt = json!({
        "storage": {"size": size},
        "adopt": {
            "statefulSetName": "orders", "claimName": claim.metadata.name, "volumeID": volume,
            "instanceID": instance.id, "serviceName": "orders",
        },
    });
    env.start_operator();
    env.create("again", &adopt).await;
    env.ready("again").await;
    assert_eq!(pod(env).await.unwrap(), ran, "nothing restarted");
    env.edit("again", &json!({"release": true})).await;
    env.delete("again").await;
    env.gone("again").await;
    assert_eq!(pod(env).await.unwrap(), ran, "nothing restarted");
    let labels = core_node(env, ran["node"].as_str().unwrap()).await;
    assert!(labels.labels().values().any(|value| value == former), "{:?}", labels.labels());
}

#[test]
fn an_adopted_database_that_was_moved_is_released_as_it_runs_with_the_metadata_that_it_was_found_with() {
    run(async {
        let env = TestEnv::start("releasing-moved").await;
        let found = found(&env).await;
        permit(&env, &found, "orders");
        env.create("orders", &legacy::spec(&found)).await;
        env.ready("orders").await;
        env.edit("orders", &json!({"instanceTypes": ["m7i.large"]})).await;
        until("the machine that was adopted being terminated", || async {
            let state = env.ec2().instance(&found.legacy.instance).map(|it| it.state);
            seen((state == Some(InstanceState::Terminated)).then_some(()), || format!("{state:?}"))
        })
        .await;
        env.ready("orders").await;
        let (ran, machine, mark) = (legacy::pod_run(&env, &found.legacy).await, machines(&env), env.mark());
        let spec = set(&env, &found.legacy).await.spec;

        let (code, report) = release(&env, &["--write", "--timeout", "1200"]).await;
        assert_eq!(code, Some(0), "{report}");
        assert!(report.contains("Differs from what was found"), "{report}");
        env.gone("orders").await;
        assert_eq!(legacy::pod_run(&env, &found.legacy).await, ran, "nothing restarted");
        assert_eq!(machines(&env), machine);
        let calls = calls_since(&env, mark);
        assert!(calls.iter().all(|call| call.starts_with("DeleteTags by")), "{calls:?}");
        let released = set(&env, &found.legacy).await;
        assert_eq!(released.spec, spec, "it finds its machine by its template");
        let was = &found.objects["set"][0];
        assert_eq!((json!(released.labels()), json!(released.annotations())), found_labels(was));
        assert_eq!(released.owner_references(), []);
        let claim = env.api::<PersistentVolumeClaim>().get(&found.legacy.claim()).await.unwrap();
        assert_eq!(json!(claim.metadata.owner_references), found.objects["claim"][0]["owners"]);
        until("the reclaim policy that was found", || async {
            let records = Api::<PersistentVolume>::all(env.client.clone());
            let record = records.get(&claim.spec.as_ref().unwrap().volume_name.clone().unwrap()).await;
            let spec = json!(record.map_err(|error| error.to_string())?.spec);
            seen((spec == found.objects["record"][1]).then_some(()), || spec.to_string())
        })
        .await;
        let node = core_node(&env, ran["node"].as_str().unwrap()).await;
        assert_eq!(node.finalizers(), [] as [String; 0]);
        env.close().await;
    });
}

async fn set(env: &TestEnv, legacy: &Legacy) -> StatefulSet {
    env.api::<StatefulSet>().get(&legacy.name).await.unwrap()
}

/// Labels and annotations, an empty map where there are none.
fn found_labels(found: &Value) -> (Value, Value) {
    let map = |key: &str| if found[key].is_null() { json!({}) } else { found[key].clone() };
    (map("labels"), map("annotations"))
}

/// A paused database is not released, and the command and the Database say the way out.
async fn paused_is_not_released(env: &mut TestEnv) {
    env.create("orders", &json!({"running": false, "deletionPolicy": "Delete"})).await;
    env.until_condition("orders", "Ready", "False", "Paused").await;
    let (code, report) = release(env, &["--write"]).await;
    assert_eq!(code, Some(2), "{report}");
    assert!(report.contains("BLOCKER") && report.contains("spec.running"), "{report}");
    // Deleted all the same, it waits until it runs, or is not to be released any more.
    env.edit("orders", &json!({"release": true})).await;
    env.delete("orders").await;
    let message = env.until_condition("orders", "Stalled", "True", "Deleting").await;
    assert!(message.contains("Set spec.release to false"), "{message}");
    env.edit("orders", &json!({"release": false})).await;
    env.gone("orders").await;
}

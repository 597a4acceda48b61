//! A database that runs, made without Freehold, is adopted: its pod goes on running, nothing is launched or
//! detached, and it lives on as any other; or it is released as it was found.

mod claims;
mod going_back;
mod kills;
mod volumes;

use std::collections::BTreeMap;

use ec2sim::InstanceState;
use freehold::api::keys::FINALIZER;
use freehold_box::base::persistent_volume::ebs_volume;
use freehold_box::legacy::{Disk, FileSystem, Legacy, Order};
use freehold_box::writer::Dialect;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Node as CoreNode, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::kit::env::Env;
use crate::kit::rig_env::{self, RigEnv};
use crate::kit::wait::{seen, within};

/// The person who adopts, in EC2's journal.
const ADOPTER: &str = "adopter";

/// A legacy database and what it was found as.
pub struct Found {
    /// The database.
    pub legacy: Legacy,
    /// Its EBS volume.
    pub volume: String,
    /// Its objects as a person would keep them in Git.
    pub objects: Value,
    resources: Value,
    /// Which pod runs, and since when.
    pub run: Value,
    mark: u64,
}

/// A QuestDB that a provisioner made, on its own machine. Its pod selects its Kubernetes node by its name:
/// tests share a cluster.
pub async fn found(env: &impl Env) -> Found {
    found_on(env, Disk::Claimed).await
}

/// The same, with a volume that came to be in this way.
pub async fn found_on(env: &impl Env, disk: Disk) -> Found {
    let name = format!("{}-old", env.namespace());
    let order = Order {
        engine: Dialect::Questdb,
        namespace: env.namespace(),
        name: &name,
        file_system: FileSystem::Ext4,
        disk,
    };
    let legacy = env.legacy(order).await;
    legacy.serves(env.limit()).await.unwrap();
    let record = record_of(env, &legacy).await;
    let volume = ebs_volume(&record).unwrap().to_owned();
    Found {
        objects: objects(env, &legacy).await,
        resources: resources(env, &legacy, &volume),
        run: pod_run(env, &legacy).await,
        mark: env.mark(),
        legacy,
        volume,
    }
}

/// One that is found and adopted as the Database `orders`.
async fn adopted(env: &impl Env) -> Found {
    let found = found(env).await;
    permit(env, &found, "orders");
    env.create("orders", &spec(&found)).await;
    env.ready("orders").await;
    found
}

/// The PersistentVolume of its claim.
pub async fn record_of(env: &impl Env, legacy: &Legacy) -> PersistentVolume {
    let claim = env.api::<PersistentVolumeClaim>().get(&legacy.claim()).await.unwrap();
    let name = claim.spec.unwrap().volume_name.unwrap();
    Api::<PersistentVolume>::all(env.client()).get(&name).await.unwrap()
}

/// The objects of the database as a person would keep them in Git, and the Kubernetes node of its machine.
pub async fn objects(env: &impl Env, legacy: &Legacy) -> Value {
    let set = env.api::<StatefulSet>().get(&legacy.name).await.unwrap();
    let claim = env.api::<PersistentVolumeClaim>().get(&legacy.claim()).await.unwrap();
    let record = record_of(env, legacy).await;
    let mut node = core_node(env, &legacy.instance).await;
    // Kubernetes adds these some time after the machine has joined.
    node.labels_mut().retain(|key, _| !key.starts_with("beta.kubernetes.io/"));
    let held = |metadata: &ObjectMeta| {
        let mut finalizers = metadata.finalizers.clone().unwrap_or_default();
        finalizers.sort();
        json!({"labels": metadata.labels, "annotations": metadata.annotations, "finalizers": finalizers,
            "owners": metadata.owner_references, "uid": metadata.uid})
    };
    json!({
        "set": [held(&set.metadata), set.spec],
        "claim": [held(&claim.metadata), claim.spec],
        "record": [held(&record.metadata), record.spec],
        "node": [node.metadata.labels, node.metadata.finalizers, node.spec],
    })
}

async fn core_node(env: &impl Env, instance: &str) -> CoreNode {
    let nodes = Api::<CoreNode>::all(env.client()).list(&ListParams::default()).await.unwrap();
    let is_it = |node: &CoreNode| {
        let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_ref());
        provider_id.is_some_and(|id| id.ends_with(instance))
    };
    nodes.items.into_iter().find(is_it).unwrap()
}

/// What EC2 has of the database, but for the adopter's own tag.
fn resources(env: &impl Env, legacy: &Legacy, volume: &str) -> Value {
    let instance = env.ec2().instance(&legacy.instance).unwrap();
    let disk = env.ec2().volumes().into_iter().find(|it| it.id == volume).unwrap();
    let known = |tags: &BTreeMap<String, String>| {
        let mut tags = tags.clone();
        tags.remove("freehold.dev/adopt");
        tags
    };
    json!([
        known(&instance.tags),
        format!("{:?}", instance.state),
        known(&disk.tags),
        format!("{:?} {:?} {:?}", disk.state, disk.shape, disk.attachment)
    ])
}

/// Waits until everything is as it was found: the provisioner's finalizer on the PersistentVolume follows the
/// reclaim policy a little later.
pub async fn as_found(env: &impl Env, found: &Found) {
    within(env.limit(), "everything as it was found", || async {
        let objects = objects(env, &found.legacy).await;
        seen((objects == found.objects).then_some(()), || {
            format!("{objects:#}\nand not\n{:#}", found.objects)
        })
    })
    .await;
    assert_eq!(resources(env, &found.legacy, &found.volume), found.resources);
}

/// Which pod runs, since when, and how often its containers were started again.
pub async fn pod_run(env: &impl Env, legacy: &Legacy) -> Value {
    let pod = env.api::<Pod>().get(&format!("{}-0", legacy.name)).await.unwrap();
    let started = pod.status.as_ref().unwrap().start_time.clone();
    let containers = containers(&pod);
    json!({"uid": pod.uid(), "node": pod.spec.unwrap().node_name, "started": started,
        "containers": containers})
}

/// Which containers run, since when, and how often each was started again.
pub fn containers(pod: &Pod) -> Vec<Value> {
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    statuses.map(|it| json!([it.name, it.restart_count, it.container_id, it.state])).collect()
}

/// Tags instance and volume, as who may tag in EC2 does to permit the adoption.
pub fn permit(env: &impl Env, found: &Found, database: &str) {
    let value = env.proof(database);
    let tagged = env.ec2().call(
        ADOPTER,
        &[
            ("Action", "CreateTags"),
            ("ResourceId.1", found.legacy.instance.as_str()),
            ("ResourceId.2", &found.volume),
            ("Tag.1.Key", "freehold.dev/adopt"),
            ("Tag.1.Value", &value),
        ],
    );
    tagged.unwrap();
}

/// What a Database says that adopts it.
pub fn spec(found: &Found) -> Value {
    json!({
        "storage": {"size": "2Gi", "fileSystem": "ext4"},
        "instanceTypes": ["r7i.large", "m7i.large"],
        "adopt": {
            "statefulSetName": found.legacy.name, "claimName": found.legacy.claim(), "volumeID": found.volume,
            "instanceID": found.legacy.instance, "serviceName": found.legacy.name,
        },
    })
}

/// What was done in EC2 since the database was found, by whom it may be, that costs it anything.
fn calls_that_matter(env: &impl Env, found: &Found) -> Vec<String> {
    let harmless = ["CreateTags", "DeleteTags"];
    env.ec2()
        .journal_since(found.mark)
        .into_iter()
        .filter(|entry| !entry.action.starts_with("Describe") && !harmless.contains(&entry.action.as_str()))
        .filter(|entry| !entry.dry_run)
        .map(|entry| format!("{} by {}: {:?}", entry.action, entry.caller, entry.resources))
        .collect()
}

#[test]
fn a_database_that_runs_is_adopted_without_a_restart_and_lives_on_as_any_other() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        let found = found(&env).await;
        permit(&env, &found, "orders");
        env.create("orders", &spec(&found)).await;
        let adopted = env.ready("orders").await;
        assert_eq!(pod_run(&env, &found.legacy).await, found.run);
        assert_eq!(calls_that_matter(&env, &found), Vec::<String>::new());
        let status = adopted.status.unwrap();
        let host = format!("{}.{}.svc", found.legacy.name, env.namespace());
        assert_eq!(status.endpoint.unwrap().host, host);

        // It moves to a machine that Freehold launches, with its volume and its template.
        env.edit("orders", &json!({"instanceTypes": ["m7i.large"]})).await;
        within(env.limit(), "the database on another machine", || async {
            let run = pod_run_if_any(&env, &found.legacy).await.ok_or("no pod")?;
            let is_moved = run["node"] != found.run["node"] && run["node"].is_string();
            seen(is_moved.then_some(()), || run.to_string())
        })
        .await;
        env.ready("orders").await;
        let disk = env.ec2().volumes().into_iter().find(|it| it.id == found.volume).unwrap();
        assert_ne!(disk.attachment.unwrap().instance_id, found.legacy.instance);
        within(env.limit(), "the machine that was adopted being terminated", || async {
            let state = env.ec2().instance(&found.legacy.instance).map(|it| it.state);
            seen((state == Some(InstanceState::Terminated)).then_some(()), || format!("{state:?}"))
        })
        .await;
        not_evicted(&env).await;
        let set = env.api::<StatefulSet>().get(&found.legacy.name).await.unwrap();
        assert_eq!(Some(set.uid().unwrap().as_str()), found.objects["set"][0]["uid"].as_str());

        // It grows, and is deleted by its policy.
        env.edit("orders", &json!({"storage": {"size": "3Gi"}})).await;
        larger(&env, &found).await;
        env.delete("orders").await;
        env.gone("orders").await;
        assert!(env.ec2().volumes().iter().any(|it| it.id == found.volume), "Retain keeps it");
        env.close().await;
    });
}

/// The EBS volumes that are no instance's root.
pub fn volumes(env: &impl Env) -> Vec<String> {
    env.data_volumes().into_iter().map(|volume| volume.id).collect()
}

/// The pod of the database, whose name is not its Database's, is foreign on no machine.
async fn not_evicted(env: &impl Env) {
    let events: Vec<Event> = env.list().await;
    let evictions = events.iter().filter(|it| it.reason.as_deref() == Some("ForeignPodEvicted"));
    assert_eq!(evictions.map(|it| &it.note).collect::<Vec<_>>(), [] as [&Option<String>; 0]);
}

/// The same, while the pod may be away.
async fn pod_run_if_any(env: &impl Env, legacy: &Legacy) -> Option<Value> {
    let pod = env.api::<Pod>().get_opt(&format!("{}-0", legacy.name)).await.ok()??;
    let node = pod.spec?.node_name;
    Some(json!({"uid": pod.metadata.uid, "node": node}))
}

/// The database is ready on a machine that Freehold launched, with its volume.
async fn elsewhere(env: &impl Env, found: &Found) {
    within(env.limit(), "the volume on a machine that Freehold launched", || async {
        let disk = env.ec2().volumes().into_iter().find(|it| it.id == found.volume).ok_or("no volume")?;
        let holder = disk.attachment.map(|held| held.instance_id);
        let is_moved = holder.as_ref().is_some_and(|id| *id != found.legacy.instance);
        seen(is_moved.then_some(()), || format!("{holder:?}"))
    })
    .await;
    env.ready("orders").await;
}

/// The database is ready with a volume of 3 GiB.
async fn larger(env: &impl Env, found: &Found) {
    within(env.limit(), "the volume having grown", || async {
        let shape = env.ec2().volumes().into_iter().find(|it| it.id == found.volume).unwrap().shape;
        seen((shape.size == 3).then_some(()), || format!("{shape:?}"))
    })
    .await;
    env.ready("orders").await;
}

#[test]
fn an_adopted_database_survives_the_loss_of_the_machine_that_it_was_found_on() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        let found = adopted(&env).await;
        let ends = [("Action", "TerminateInstances"), ("InstanceId.1", found.legacy.instance.as_str())];
        env.ec2().call(ADOPTER, &ends).unwrap();
        elsewhere(&env, &found).await;
        not_evicted(&env).await;
        let launched = env.mutations().get("RunInstances").copied();
        assert_eq!((launched, env.mutations().get("CreateVolume")), (Some(1), None));
        env.close().await;
    });
}

#[test]
fn what_may_not_be_adopted_is_refused_and_released_as_it_was_found() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        let found = found(&env).await;
        // Who may only write Databases has no tag in EC2.
        env.create("orders", &spec(&found)).await;
        env.until_condition("orders", "VolumeReady", "False", "AdoptionRefused").await;
        assert_eq!(env.mutations(), BTreeMap::new(), "nothing is done in EC2");
        assert_eq!(pod_run(&env, &found.legacy).await, found.run);
        env.delete("orders").await;
        env.gone("orders").await;
        as_found(&env, &found).await;

        // With the tag it is adopted, and released as it was found.
        permit(&env, &found, "orders");
        env.create("orders", &spec(&found)).await;
        env.ready("orders").await;
        let adopted = objects(&env, &found.legacy).await;
        assert!(adopted["node"][1].to_string().contains(FINALIZER), "{adopted}");
        env.edit("orders", &json!({"release": true})).await;
        env.delete("orders").await;
        env.gone("orders").await;
        as_found(&env, &found).await;
        assert_eq!(pod_run(&env, &found.legacy).await, found.run);
        assert_eq!(calls_that_matter(&env, &found), Vec::<String>::new());

        // And adopted again.
        env.create("orders", &spec(&found)).await;
        env.ready("orders").await;
        assert_eq!(pod_run(&env, &found.legacy).await, found.run);
        assert_eq!(calls_that_matter(&env, &found), Vec::<String>::new());
        env.close().await;
    });
}

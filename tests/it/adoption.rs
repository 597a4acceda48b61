//! A volume that was retained: shown, listed, adopted on demand in its own namespace, and once.

use std::path::Path;
use std::process::Command;

use freehold::api::{Database, Volume};
use k8s_openapi::api::core::v1::{PersistentVolume, Secret};
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::kit::env::Env;
use crate::kit::objects::Told as _;
use crate::kit::rig_env::{self, RigEnv};
use crate::kit::test_env::TestEnv;
use crate::kit::wait::{seen, within};
use crate::lives::life::CALM;

/// The records of the test environment's namespace, the newest last.
async fn records(env: &impl Env) -> Vec<PersistentVolume> {
    records_of(env, env.namespace()).await
}

/// The same of this namespace.
async fn records_of(env: &impl Env, namespace: &str) -> Vec<PersistentVolume> {
    let all = Api::<PersistentVolume>::all(env.client())
        .list(&ListParams::default().labels("freehold.dev/retained=true"))
        .await;
    // A former record may still be on its way out.
    let is_of = |record: &PersistentVolume| {
        record.metadata.deletion_timestamp.is_none()
            && record.annotations()["freehold.dev/database"].starts_with(&format!("{namespace}/"))
    };
    let mut records: Vec<_> = all.unwrap().items.into_iter().filter(is_of).collect();
    records.sort_by_key(|record| record.annotations().get("freehold.dev/retained-at").cloned());
    records
}

async fn password(env: &impl Env, name: &str) -> Vec<u8> {
    env.api::<Secret>().get(&format!("{name}-admin")).await.unwrap().data.unwrap()["password"].0.clone()
}

/// Makes `orders` and waits until it is ready; gives its password.
async fn made(env: &impl Env) -> Vec<u8> {
    env.create("orders", &json!({})).await;
    env.ready("orders").await;
    password(env, "orders").await
}

/// The record of the volume of the database that was deleted, and the EBS volume.
async fn kept(env: &impl Env) -> (String, String) {
    kept_in(env, env.namespace()).await
}

/// The same in this namespace.
async fn kept_in(env: &impl Env, namespace: &str) -> (String, String) {
    let record = within(env.limit(), "the record being Released", || async {
        let record = records_of(env, namespace).await.pop().ok_or("none")?;
        let phase = record.status.as_ref().and_then(|status| status.phase.clone());
        seen((phase.as_deref() == Some("Released")).then(|| record.clone()), || format!("{phase:?}"))
    })
    .await;
    let volume = record.spec.as_ref().unwrap().csi.as_ref().unwrap().volume_handle.clone();
    (record.name_any(), volume)
}

/// `freehold retained` with these arguments; gives what it printed, and whether it ended well.
fn listed(kubeconfig: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_freehold"))
        .arg("retained")
        .args(arguments)
        .env("KUBECONFIG", kubeconfig)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout) + &text(&output.stderr))
}

/// `freehold retained` lists nothing of this namespace.
pub fn nothing_is_listed(kubeconfig: &Path, namespace: &str) {
    let none = format!("namespace {namespace} has no retained volume");
    assert!(listed(kubeconfig, &["-n", namespace]).1.contains(&none));
}

/// `freehold retained` lists the volume of `orders` of this namespace, which its policy retained.
pub async fn is_listed(env: &TestEnv, namespace: &str) {
    let kubeconfig = env.control_plane.kubeconfig().to_owned();
    let (record, volume) = kept_in(env, namespace).await;
    let (is_well, list) = listed(&kubeconfig, &["-n", namespace]);
    for part in ["orders", "questdb 9.3.4", &volume, "100Gi", &record, "deletionPolicy Retain"] {
        assert!(is_well && list.contains(part), "{part}: {list}");
    }
    let json: Value = serde_json::from_str(&listed(&kubeconfig, &["-A", "-o", "json"]).1).unwrap();
    let ours = json.as_array().unwrap().iter().find(|kept| kept["volumeID"] == volume.as_str()).unwrap();
    assert_eq!(
        (ours["namespace"].as_str(), ours["persistentVolume"].as_str()),
        (Some(namespace), Some(record.as_str()))
    );
}

#[test]
fn a_list_of_retained_volumes_without_a_cluster_says_what_to_set() {
    let nowhere = tempfile::tempdir().unwrap();
    let (is_well, said) = listed(&nowhere.path().join("none"), &[]);
    assert!(!is_well && said.contains("set KUBECONFIG"), "{said}");
}

#[test]
fn a_kept_volume_is_reported_and_taken_over_only_when_asked_for_in_its_own_namespace() {
    rig_env::run(|| async {
        let env = RigEnv::start_of_all().await;
        let secret = made(&env).await;
        env.delete("orders").await;
        env.gone("orders").await;
        let (record, volume) = kept(&env).await;

        // The same name again: nothing is made before the spec says so, and then it starts anew.
        env.create("orders", &json!({})).await;
        let message = env.until_condition("orders", "Stalled", "True", "RetainedVolumeFound").await;
        assert!(message.contains("spec.storage.startEmpty: true"), "{message}");
        assert_eq!(env.data_volumes().len(), 1);
        env.edit("orders", &json!({"storage": {"startEmpty": true}})).await;
        let message =
            env.until_condition("orders", "RetainedVolumeFound", "True", "RetainedVolumeFound").await;
        let way = format!("spec.storage.adoptRetained: {record}");
        assert!(message.contains(&volume) && message.contains(&way), "{message}");
        env.ready("orders").await;
        assert_eq!(env.data_volumes().len(), 2);
        assert!(password(&env, "orders").await != secret);
        env.edit("orders", &json!({"deletionPolicy": "Delete"})).await;
        env.delete("orders").await;
        env.gone("orders").await;

        stranger_gets_nothing(&env, &record).await;

        // Less than it has is refused with the way out, and mended by an edit.
        env.create("orders", &json!({"storage": {"size": "50Gi", "adoptRetained": record}})).await;
        let message = env.until_condition("orders", "Stalled", "True", "AdoptionRefused").await;
        assert!(message.contains("100Gi or more"), "{message}");
        assert_eq!(env.live_instances().len(), 0);
        env.edit("orders", &json!({"storage": {"size": "120Gi"}})).await;
        env.ready("orders").await;
        let disk = env.data_volumes().remove(0);
        assert_eq!((disk.id.as_str(), disk.shape.size), (volume.as_str(), 120), "the same volume, grown");
        assert_eq!(password(&env, "orders").await, secret, "with the credentials of its data");
        is_taken_over(&env, &record).await;
        assert_eq!(env.mutations()["CreateTags"], 1);
        assert!(env.list::<Volume>().await[0].status.as_ref().unwrap().ever_held);
        assert!(records(&env).await.is_empty(), "nothing is retained any more");

        // The line may go now; and what is kept again is a record again.
        env.edit("orders", &json!({"storage": {"adoptRetained": null}})).await;
        env.ready("orders").await;
        env.delete("orders").await;
        env.gone("orders").await;
        let again = records(&env).await.remove(0);
        assert_eq!(again.spec.as_ref().unwrap().csi.as_ref().unwrap().volume_handle, volume);
        assert_eq!(
            (again.annotations()["freehold.dev/size"].as_str(), env.list::<Secret>().await.len()),
            ("120Gi", 1)
        );
        env.close().await;
    });
}

/// Another namespace gets nothing, and nothing is made for it.
async fn stranger_gets_nothing(env: &RigEnv, record: &str) {
    let (stranger, mark) = ("team-b", env.mark());
    env.house.namespace(stranger).await;
    env.house.create_in(stranger, "orders", &json!({"storage": {"adoptRetained": record}})).await;
    let databases = Api::<Database>::namespaced(env.client(), stranger);
    let message = within(CALM, "the refusal", || async {
        let database = databases.get("orders").await.map_err(|error| error.to_string())?;
        let (status, reason, message) = database.condition("Stalled");
        let is_refused = status == "True" && reason == "AdoptionRefused";
        seen(is_refused.then(|| message.clone()), || format!("{reason}: {message}"))
    })
    .await;
    let none = format!("no record of a volume that was kept in namespace {stranger}");
    assert!(message.contains(&none), "{message}");
    let calls = env.calls_since(mark).into_iter().filter(|it| !ec2sim::reads(&it.action) && !it.dry_run);
    assert_eq!(calls.map(|it| it.action).collect::<Vec<_>>(), [] as [String; 0]);
    let secrets = Api::<Secret>::namespaced(env.client(), stranger);
    assert!(secrets.list(&ListParams::default()).await.unwrap().items.is_empty());
    env.house.delete_in(stranger, "orders").await;
}

/// The former record and its Secret are gone, and the disk's tags are those of its Volume.
async fn is_taken_over(env: &impl Env, record: &str) {
    within(env.limit(), "the former record and its Secret being gone", || async {
        let left = Api::<PersistentVolume>::all(env.client())
            .get_opt(record)
            .await
            .map_err(|error| error.to_string())?;
        let secrets = env.list::<Secret>().await.len();
        seen((left.is_none() && secrets == 1).then_some(()), || {
            format!("{:?}, {secrets} Secrets", left.map(|left| left.metadata))
        })
    })
    .await;
    let volume = env.list::<Volume>().await.remove(0);
    let disk = env.data_volumes().remove(0);
    assert_eq!(disk.tags.get("freehold.dev/volume-uid"), volume.metadata.uid.as_ref());
    assert_eq!(disk.tags["Name"], volume.name_any());
}

#[test]
fn of_two_databases_that_ask_for_one_volume_one_has_it_and_the_other_costs_nothing() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        made(&env).await;
        env.delete("orders").await;
        env.gone("orders").await;
        let (record, volume) = kept(&env).await;
        let before = env.ec2().instances().len();
        let ask = json!({"storage": {"adoptRetained": record}});
        tokio::join!(env.create("one", &ask), env.create("two", &ask));
        let (winner, loser) = within(CALM, "one of them being refused", || async {
            let mut refused = Vec::new();
            for name in ["one", "two"] {
                let database = env.api::<Database>().get(name).await.map_err(|error| error.to_string())?;
                refused.push(database.condition("Stalled").1 == "AdoptionRefused");
            }
            let pair = if refused[0] { ("two", "one") } else { ("one", "two") };
            seen((refused[0] != refused[1]).then_some(pair), || format!("{refused:?}"))
        })
        .await;
        env.ready(winner).await;
        assert_eq!(
            env.data_volumes().iter().map(|disk| disk.id.as_str()).collect::<Vec<_>>(),
            [volume.as_str()]
        );
        assert_eq!(env.ec2().instances().len(), before + 1, "no machine for the other");
        is_taken_over(&env, &record).await;
        // It is the winner's for good: nothing is left to ask for.
        let message = within(CALM, "the condition of the other", || async {
            let database = env.api::<Database>().get(loser).await.map_err(|error| error.to_string())?;
            let (_, reason, message) = database.condition("Stalled");
            seen((reason == "AdoptionRefused").then(|| message.clone()), || format!("{reason} {message}"))
        })
        .await;
        assert!(message.contains(&record), "{message}");
        env.close().await;
    });
}

//! Backups and restores of whole databases: in virtual time, and where the operator's rights are needed with
//! the shipped binary on virtual machines. No engine runs there.

mod pages;

use std::collections::BTreeMap;

use clap::Parser;
use freehold::api::backup::Consistency;
use freehold::api::keys::DATABASE_TAG;
use freehold::api::{Backup, BackupSchedule, Database};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::kit::env::Env;
use crate::kit::objects::Told as _;
use crate::kit::rig_env::{self, RigEnv};
use crate::kit::test_env::{TestEnv, run};
use crate::kit::wait::{seen, until, within};
use crate::lives::life::CALM;
use crate::model_cloud::ModelCloud;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: freehold::backups::Options,
}

async fn back_up(env: &impl Env, name: &str, spec: &Value) {
    let object = json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "Backup",
        "metadata": {"namespace": env.namespace(), "name": name}, "spec": spec,
    });
    let backup = serde_json::from_value(object).unwrap();
    env.api::<Backup>().create(&PostParams::default(), &backup).await.unwrap();
}

/// Waits until this condition of the Backup is true.
async fn is(env: &impl Env, name: &str, kind: &str) -> Backup {
    within(env.limit(), &format!("{name} being {kind}"), || async {
        let backup = env.api::<Backup>().get(name).await.map_err(|error| error.to_string())?;
        let (status, reason, message) = backup.condition(kind);
        seen((status == "True").then_some(backup), || format!("{status} {reason}: {message}"))
    })
    .await
}

/// Waits until EC2 has read the volume of a restored database from its snapshot: until then it says how far
/// that is.
async fn is_read(env: &impl Env, name: &str) {
    within(env.limit(), &format!("the volume of {name} being read"), || async {
        let database = env.api::<Database>().get(name).await.map_err(|error| error.to_string())?;
        let initialization = database.status.and_then(|status| status.initialization);
        let has_ended = initialization.as_ref().is_some_and(|it| it.ended_at.is_some());
        seen(has_ended.then_some(()), || format!("{initialization:?}"))
    })
    .await;
}

fn postgresql() -> Value {
    json!({"engine": {"type": "postgresql", "version": "17.6"}})
}

/// The same with the data of a backup.
fn restored(restore: &Value) -> Value {
    json!({"engine": {"type": "postgresql", "version": "17.6"}, "restore": restore})
}

#[test]
fn a_backup_outlives_its_database_and_is_restored_in_another() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        env.create("orders", &json!({"engine": postgresql()["engine"], "deletionPolicy": "Delete"})).await;
        env.ready("orders").await;
        back_up(&env, "nightly", &json!({"databaseName": "orders"})).await;
        let backup = is(&env, "nightly", "Complete").await;
        let status = backup.status.unwrap();
        let id = status.snapshot_id.unwrap();
        assert_eq!(status.consistency.map(Consistency::as_str), Some("CrashConsistent"));
        let snapshot = env.ec2().snapshots().into_iter().find(|it| it.id == id.0).unwrap();
        assert_eq!(snapshot.tags["freehold.dev/database"], format!("{}/orders", env.namespace()));
        env.delete("orders").await;
        env.gone("orders").await;
        assert_eq!(env.ec2().snapshots().len(), 1, "it outlives its Database");

        env.create(
            "small",
            &json!({"engine": postgresql()["engine"], "storage": {"size": "50Gi"},
            "restore": {"backupName": "nightly"}}),
        )
        .await;
        let why = env.until_condition("small", "Stalled", "True", "RestoreRefused").await;
        assert!(why.contains("set spec.storage.size to 100Gi or more"), "{why}");
        env.create("unknown", &restored(&json!({"snapshotID": "snap-0"}))).await;
        env.until_condition("unknown", "Stalled", "True", "RestoreRefused").await;
        assert!(env.live_instances().is_empty(), "what is refused costs nothing");
        for name in ["small", "unknown"] {
            env.delete(name).await;
            env.gone(name).await;
        }

        env.create("copy", &restored(&json!({"backupName": "nightly"}))).await;
        let copy = env.ready("copy").await;
        let from = copy.status.unwrap().restored.unwrap();
        assert_eq!(from.snapshot_id, id);
        let volume = env.data_volumes().remove(0);
        assert_eq!((volume.snapshot_id.as_deref(), volume.shape.size), (Some(id.0.as_str()), 100));

        // On a cluster that knows nothing of it, the tags are enough.
        let cluster = snapshot.tags["freehold.dev/cluster-id"].clone();
        let line = ["freehold", "--from-ec2", "-A", "-o", "yaml", "--cluster-id", cluster.as_str()];
        let cloud = ModelCloud::new(env.ec2().clone(), "a-person");
        let text =
            freehold::backups::run(&Line::parse_from(line).options, &env.client(), &cloud).await.unwrap();
        assert!(text.contains(&format!("snapshotID: {}", id.0)), "{text}");
        is_read(&env, "copy").await;
        env.close().await;
    });
}

#[test]
fn a_paused_questdb_is_backed_up_without_its_engine_and_the_snapshot_goes_with_the_backup() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        env.create("orders", &json!({})).await;
        env.ready("orders").await;
        env.edit("orders", &json!({"running": false})).await;
        env.until_condition("orders", "Ready", "False", "Paused").await;
        back_up(&env, "asleep", &json!({"databaseName": "orders", "deletionPolicy": "Delete"})).await;
        back_up(&env, "second", &json!({"databaseName": "orders"})).await;
        is(&env, "asleep", "Complete").await;
        let second = is(&env, "second", "Complete").await.status.unwrap();
        env.api::<Backup>().delete("asleep", &DeleteParams::default()).await.unwrap();
        within(CALM, "the snapshot being gone", || async {
            let left: Vec<String> = env.ec2().snapshots().into_iter().map(|it| it.id).collect();
            let kept = second.snapshot_id.as_ref().map(|id| id.0.clone()).into_iter().collect::<Vec<_>>();
            seen((left == kept).then_some(()), || format!("{left:?}"))
        })
        .await;
        // A person deletes the other one in EC2.
        let id = second.snapshot_id.unwrap();
        let parameters = [("Action", "DeleteSnapshot"), ("SnapshotId", id.0.as_str())];
        env.ec2().call("a-person", &parameters).unwrap();
        let backup = is(&env, "second", "SnapshotMissing").await;
        assert_eq!(backup.condition("Complete").0, "True", "this is final");
        env.close().await;
    });
}

/// An engine of which being ready is all that is checked: on virtual machines none answers.
fn custom() -> Value {
    let custom = json!({"image": "registry.example/db:1", "port": 9000, "dataPath": "/data"});
    json!({"type": "custom", "version": null, "custom": custom})
}

async fn label(env: &TestEnv, backup: &str, schedule: &str) {
    let label = json!({"metadata": {"labels": {"freehold.dev/backup-schedule": schedule}}});
    let backups = env.api::<Backup>();
    backups.patch(backup, &PatchParams::default(), &Patch::Merge(&label)).await.unwrap();
}

async fn schedule(env: &TestEnv, name: &str, spec: &Value) {
    let schedule = json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "BackupSchedule",
        "metadata": {"namespace": env.name, "name": name}, "spec": spec,
    });
    let schedule = serde_json::from_value(schedule).unwrap();
    env.api::<BackupSchedule>().create(&PostParams::default(), &schedule).await.unwrap();
}

#[test]
fn the_pages_can_be_followed_and_a_schedule_creates_verifies_and_deletes_backups_by_its_rights() {
    run(async {
        let mut env = TestEnv::start("backups").await;
        pages::are_followed(&mut env).await;
        env.create("ledger", &json!({"engine": custom(), "deletionPolicy": "Delete"})).await;
        env.ready("ledger").await;
        back_up(&env, "first", &json!({"databaseName": "ledger"})).await;
        is(&env, "first", "Complete").await;
        verifies(&env).await;
        creates_and_deletes(&env).await;
        env.close().await;
    });
}

/// What there is of this Database: itself, its machine and its EBS volume.
async fn left_of(env: &TestEnv, database: &str) -> Result<Vec<String>, String> {
    let all = env.api::<Database>().list(&ListParams::default()).await.map_err(|error| error.to_string())?;
    let names = all.items.iter().map(kube::ResourceExt::name_any).filter(|name| name == database);
    let owner = format!("{}/{database}", env.name);
    let is_of = |tags: &BTreeMap<String, String>| tags.get(DATABASE_TAG) == Some(&owner);
    let machines = env.live_instances().into_iter().filter(|it| is_of(&it.tags)).map(|it| it.id);
    let volumes = env.data_volumes().into_iter().filter(|it| is_of(&it.tags)).map(|it| it.id);
    Ok(names.chain(machines).chain(volumes).collect())
}

/// The backup is verified in a database that is deleted with its machine and volume.
async fn verifies(env: &TestEnv) {
    label(env, "first", "yearly").await;
    let verify = json!({"schedule": "* * * * *"});
    let spec = json!({"databaseName": "ledger", "schedule": "0 0 1 1 *", "verify": verify});
    schedule(env, "yearly", &spec).await;
    let verified = is(env, "first", "Verified").await.status.unwrap().verification.unwrap();
    assert!(verified.database_name.starts_with("verify-yearly-"), "{verified:?}");
    let schedules = env.api::<BackupSchedule>();
    let suspended = json!({"spec": {"suspend": true}});
    schedules.patch("yearly", &PatchParams::default(), &Patch::Merge(&suspended)).await.unwrap();
    until("nothing of the verification being left", || async {
        let left = left_of(env, &verified.database_name).await?;
        seen(left.is_empty().then_some(()), || left.join(", "))
    })
    .await;
    schedules.delete("yearly", &DeleteParams::default()).await.unwrap();
}

/// A schedule creates a backup at its time, and deletes the one that it does not keep.
async fn creates_and_deletes(env: &TestEnv) {
    let backups = env.api::<Backup>();
    let first = backups.get("first").await.unwrap().status.unwrap().snapshot_id.unwrap();
    label(env, "first", "minutely").await;
    let retention = json!({"count": 1});
    let spec = json!({"databaseName": "ledger", "schedule": "* * * * *", "retention": retention});
    schedule(env, "minutely", &spec).await;
    until("the first Backup being gone, with its snapshot", || async {
        let left = backups.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items;
        let names: Vec<String> = left.iter().map(kube::ResourceExt::name_any).collect();
        let snapshots: Vec<String> = env.ec2().snapshots().into_iter().map(|it| it.id).collect();
        let is_gone = !names.contains(&"first".to_owned()) && !snapshots.contains(&first.0);
        seen(is_gone.then_some(()), || format!("{names:?} {snapshots:?}"))
    })
    .await;
    let left = backups.list(&ListParams::default()).await.unwrap().items;
    let of_schedule = |it: &&Backup| it.spec.database_name == "ledger";
    assert!(
        left.iter().filter(of_schedule).any(Backup::can_be_restored),
        "the last one that can be restored stays: {left:?}"
    );
    env.api::<BackupSchedule>().delete("minutely", &DeleteParams::default()).await.unwrap();
}

#[test]
fn the_final_snapshot_of_a_deleted_database_is_restored_in_another_of_its_namespace() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        let policy = json!({"engine": postgresql()["engine"], "deletionPolicy": "Snapshot"});
        env.create("orders", &policy).await;
        env.ready("orders").await;
        env.delete("orders").await;
        env.gone("orders").await;
        let last = env.ec2().snapshots().remove(0);
        let restore = json!({"snapshotID": last.id});
        env.create(
            "older",
            &json!({"engine": {"type": "postgresql", "version": "16.10"}, "restore": restore}),
        )
        .await;
        // Before that, EC2 may not list the snapshot yet.
        within(CALM, "the refusal of an older version", || async {
            let older = env.api::<Database>().get("older").await.map_err(|error| error.to_string())?;
            let (status, reason, why) = older.condition("Stalled");
            let is_refused = (status.as_str(), reason.as_str()) == ("True", "RestoreRefused");
            seen((is_refused && why.contains("written by version 17.6")).then_some(()), || why.clone())
        })
        .await;
        env.delete("older").await;
        env.gone("older").await;
        env.create("copy", &restored(&restore)).await;
        let copy = env.ready("copy").await.status.unwrap().restored.unwrap();
        assert_eq!((copy.snapshot_id.0, copy.consistency), (last.id.clone(), Consistency::CrashConsistent));
        assert_eq!(env.data_volumes().remove(0).snapshot_id, Some(last.id));
        is_read(&env, "copy").await;
        env.close().await;
    });
}

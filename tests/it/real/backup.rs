//! A backup of a QuestDB under load, and what is in it after a restore.

use std::time::{Duration, Instant};

use freehold::api::backup::Consistency;
use freehold::api::verification::VerificationResult;
use freehold::api::{Backup, BackupSchedule, BackupStatus, Database};
use freehold::cluster::persistent_volume::ebs_volume;
use freehold_box::machines::images::QUESTDB_VERSIONS;
use freehold_box::writer::{Dialect, PACE, Target, Writer, Written};
use k8s_openapi::api::core::v1::PersistentVolume;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::env::Env as _;
use crate::kit::objects::Told as _;
use crate::kit::real::{LIMIT, RealEnv, on_real_machines, questdb};
use crate::kit::wait::{seen, within};

fn target(env: &RealEnv, database: &str, table: &'static str) -> Target {
    Target { table, ..env.numbered(database, Dialect::Questdb) }
}

/// Waits until the Backup is complete.
pub(super) async fn complete(backups: &Api<Backup>, name: &str) -> Backup {
    within(LIMIT, &format!("Backup {name} being complete"), || async {
        let backup = backups.get(name).await.map_err(|error| error.to_string())?;
        let condition = backup.condition("Complete");
        seen((condition.0 == "True").then_some(backup), || format!("{condition:?}"))
    })
    .await
}

/// Waits until the snapshot has been requested, then until no release is owed; how long that took.
async fn released(env: &RealEnv, name: &str) -> Duration {
    let status = || async { env.api::<Backup>().get(name).await.unwrap().status.unwrap_or_default() };
    let started = Instant::now();
    let mut requested = None;
    loop {
        let status = status().await;
        if status.creation.is_some() {
            requested.get_or_insert_with(Instant::now);
        }
        if let Some(requested) = requested.filter(|_| status.checkpoint.is_none()) {
            return requested.elapsed();
        }
        assert!(started.elapsed() < LIMIT, "{status:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// What was written and backed up, and what that cost.
struct BackedUp {
    /// By a writer that ended before.
    before: Written,
    /// By one that went on: acknowledged before the backup, and sent by the end.
    meanwhile: Written,
    /// The last Backup.
    status: BackupStatus,
    /// From the request of the snapshot to the release of the checkpoint.
    held: Duration,
    /// For how long the writer was not served at most.
    gap: Duration,
}

/// How many rows a writer has written at least before a backup.
const WRITTEN: u64 = 300;

/// A table that is filled before the backup, and its rows.
const FILLED: &str = "filled";
const ROWS: u64 = 1_000_000;

async fn has_written(writer: &Writer) {
    within(LIMIT, "rows being acknowledged", || async {
        let count = writer.written().acknowledged.len();
        seen((count >= WRITTEN).then_some(()), || format!("{count}"))
    })
    .await;
}

/// Requests a Backup of this database.
pub(super) async fn request(backups: &Api<Backup>, name: &str, database: &str) {
    let backup = json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "Backup", "metadata": {"name": name},
        "spec": {"databaseName": database},
    });
    backups.create(&PostParams::default(), &serde_json::from_value(backup).unwrap()).await.unwrap();
}

/// Backs up `orders` twice at once; the status of the last Backup, and from the request of the first snapshot
/// to the release of its checkpoint.
async fn twice(env: &RealEnv) -> (BackupStatus, Duration) {
    let backups = env.api::<Backup>();
    for name in ["first", "second"] {
        request(&backups, name, "orders").await;
    }
    let held = released(env, "first").await;
    complete(&backups, "first").await;
    // The engine begins no second checkpoint before the first is released.
    (complete(&backups, "second").await.status.unwrap(), held)
}

/// Writes to `orders`, and backs it up under load.
async fn backed_up(env: &RealEnv) -> BackedUp {
    let orders = target(env, "orders", "before");
    let before = Writer::start(orders.clone(), PACE);
    has_written(&before).await;
    let before = before.stop().await;
    orders.fill(FILLED, ROWS, LIMIT).await.unwrap();
    // Both go on during the checkpoint and the snapshot; the second one creates a table.
    let meanwhile = Writer::start(target(env, "orders", "meanwhile"), PACE);
    has_written(&meanwhile).await;
    // What is acknowledged by now is in both; what follows until the checkpoint may be.
    let acknowledged = meanwhile.written().acknowledged;
    let filling = orders.fill("filled_meanwhile", ROWS, LIMIT);
    let (filled, (status, held)) = tokio::join!(filling, twice(env));
    filled.unwrap();
    meanwhile.is_served(LIMIT).await.unwrap();
    let gap = meanwhile.observed().outage.map_or(Duration::ZERO, |gap| gap.length);
    let meanwhile = Written { acknowledged, ..meanwhile.stop().await };
    BackedUp { before, meanwhile, status, held, gap }
}

/// Everything that was acknowledged before the backup is in this database, and no table is suspended: one
/// that is cannot be read back.
async fn is_restored(env: &RealEnv, database: &str, backup: &BackedUp, took: Duration) {
    let BackedUp { before, meanwhile, status: _, held, gap } = backup;
    let quiet = before.verify(&target(env, database, "before"), LIMIT).await.unwrap();
    quiet.check().unwrap();
    let loaded = meanwhile.verify(&target(env, database, "meanwhile"), LIMIT).await.unwrap();
    loaded.check().unwrap();
    assert_eq!(target(env, database, "before").count(FILLED, LIMIT).await.unwrap(), ROWS);
    eprintln!(
        "backup, in {database}: from the request of the snapshot to the release {:.2} s; longest gap of the writer {:.2} s; \
        of {} rows acknowledged by a writer that ended before, {} are there; of {} acknowledged before the \
        backup by one that went on, and {} sent by its end, {} are there; restored and serving after {:.1} s",
        held.as_secs_f64(),
        gap.as_secs_f64(),
        before.acknowledged.len(),
        quiet.found.len(),
        meanwhile.acknowledged.len(),
        meanwhile.sent.len(),
        loaded.found.len(),
        took.as_secs_f64(),
    );
}

/// Waits until this restore in place of `orders` has begun, or has ended.
pub(super) async fn in_place(env: &RealEnv, generation: i64, has_ended: bool) {
    within(LIMIT, &format!("restore {generation} in place"), || async {
        let database = env.api::<Database>().get("orders").await.map_err(|error| error.to_string())?;
        let record = database.status.unwrap_or_default().restored_in_place;
        let is_it = record
            .as_ref()
            .is_some_and(|it| it.generation == generation && (!has_ended || it.ended_at.is_some()));
        seen(is_it.then_some(()), || format!("{record:?}"))
    })
    .await;
}

/// The data of `orders` is replaced by that of the Backup, and what was written later is not in it; a restore
/// that is taken back leaves all of it there.
async fn is_replaced_in_place(env: &RealEnv, backup: &BackedUp) {
    let later = Writer::start(target(env, "orders", "later"), PACE);
    has_written(&later).await;
    later.stop().await;
    for (generation, is_taken_back) in [(1, false), (2, true)] {
        let began = Instant::now();
        let request = json!({"generation": generation, "backupName": "second"});
        env.edit("orders", &json!({"restoreInPlace": request})).await;
        if is_taken_back {
            in_place(env, generation, false).await;
            env.edit("orders", &json!({"restoreInPlace": null})).await;
        }
        in_place(env, generation, true).await;
        env.serves("orders").await;
        is_restored(env, "orders", backup, began.elapsed()).await;
        env.exec("orders", "! ls -d /var/lib/questdb/db/later* 2>/dev/null").unwrap();
    }
}

/// The volume with the data of before outlives its database, and a person deletes it.
pub(super) async fn former_is_retained(env: &RealEnv) {
    let retained = env.data_volumes();
    assert_eq!(retained.len(), 1, "{retained:?}");
    let records = Api::<PersistentVolume>::all(env.client.clone());
    let all = records.list(&ListParams::default().labels("freehold.dev/retained=true")).await.unwrap();
    for volume in retained {
        let is_of = |it: &&PersistentVolume| ebs_volume(it).is_some_and(|id| id.0 == volume.id);
        let record = all.iter().find(is_of).expect("it has its record");
        records.delete(&record.name_any(), &DeleteParams::default()).await.unwrap();
        env.ec2_client().delete_volume().volume_id(volume.id).send().await.unwrap();
    }
    within(LIMIT, "the volume being deleted", || async {
        let left = env.data_volumes();
        seen(left.is_empty().then_some(()), || format!("{left:?}"))
    })
    .await;
}

/// A BackupSchedule restores this Backup, and the check of the real engine finds nothing.
async fn is_verified(env: &RealEnv, name: &str) {
    let label = json!({"metadata": {"labels": {"freehold.dev/backup-schedule": "yearly"}}});
    env.api::<Backup>().patch(name, &PatchParams::default(), &Patch::Merge(&label)).await.unwrap();
    let schedule = json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "BackupSchedule",
        "metadata": {"namespace": env.name, "name": "yearly"},
        "spec": {"databaseName": "orders", "schedule": "0 0 1 1 *", "verify": {"schedule": "* * * * *",
            "query": format!("SELECT count() = {ROWS} FROM {FILLED}")}},
    });
    let schedules = env.api::<BackupSchedule>();
    schedules.create(&PostParams::default(), &serde_json::from_value(schedule).unwrap()).await.unwrap();
    let verified = within(LIMIT, &format!("Backup {name} being verified"), || async {
        let backup = env.api::<Backup>().get(name).await.map_err(|error| error.to_string())?;
        let condition = backup.condition("Verified");
        let status = backup.status.unwrap_or_default();
        seen(status.verification, || format!("{condition:?}"))
    })
    .await;
    assert_eq!(verified.result, VerificationResult::Passed, "{verified:?}");
    assert!(verified.rows.is_some_and(|rows| rows > 1_000_000), "{verified:?}");
    // Its Database goes with it, if that is not gone yet.
    schedules.delete("yearly", &DeleteParams::default()).await.unwrap();
    env.is_gone(&verified.database_name).await;
}

#[test]
fn rows_that_were_acknowledged_before_a_checkpoint_are_there_after_a_restore() {
    on_real_machines("backup", |mut env| async move {
        env.env.start_operator();
        env.create("orders", &questdb()).await;
        env.serves("orders").await;
        let backup = backed_up(&env).await;
        assert_eq!(backup.status.consistency, Some(Consistency::EngineCheckpoint));
        assert_eq!(backup.status.checkpoint, None, "the release is paid");
        is_verified(&env, "second").await;
        is_replaced_in_place(&env, &backup).await;
        env.edit("orders", &json!({"deletionPolicy": "Delete"})).await;
        env.env.delete("orders").await;
        env.is_gone("orders").await;
        former_is_retained(&env).await;

        let mut spec = questdb();
        spec["restore"] = json!({"backupName": "second"});
        let began = Instant::now();
        env.create("copy", &spec).await;
        env.serves("copy").await;
        is_restored(&env, "copy", &backup, began.elapsed()).await;
        let root = "/var/lib/questdb";
        let id = backup.status.snapshot_id.unwrap();
        env.exec("copy", &format!("[ -e {root}/.restored-from-{id} ] && [ ! -e {root}/_restore ]")).unwrap();
        // What is written now is not taken back by another start.
        let after = Writer::start(target(&env, "copy", "after"), PACE);
        after.is_served(LIMIT).await.unwrap();
        let after = after.stop().await;
        env.edit("copy", &json!({"config": {"cairo.max.uncommitted.rows": "1000"}})).await;
        env.serves("copy").await;
        after.verify(&target(&env, "copy", "after"), LIMIT).await.unwrap().check().unwrap();
        env
    });
}

/// The same of an older release of QuestDB, without a restore in place.
fn of_release(name: &'static str, version: &'static str) {
    on_real_machines(name, move |mut env| async move {
        env.env.start_operator();
        let mut spec = questdb();
        spec["engine"]["version"] = json!(version);
        env.create("orders", &spec).await;
        env.serves("orders").await;
        let backup = backed_up(&env).await;
        assert_eq!(backup.status.consistency, Some(Consistency::EngineCheckpoint));
        assert_eq!(backup.status.checkpoint, None, "the release is paid");
        spec["restore"] = json!({"backupName": "second"});
        let began = Instant::now();
        env.create("copy", &spec).await;
        env.serves("copy").await;
        is_restored(&env, "copy", &backup, began.elapsed()).await;
        env
    });
}

#[test]
fn rows_that_a_questdb_8_acknowledged_before_a_checkpoint_are_there_after_a_restore() {
    of_release("backup-of-questdb-8", QUESTDB_VERSIONS[0]);
}

#[test]
fn rows_that_a_questdb_9_2_acknowledged_before_a_checkpoint_are_there_after_a_restore() {
    of_release("backup-of-questdb-9-2", QUESTDB_VERSIONS[1]);
}

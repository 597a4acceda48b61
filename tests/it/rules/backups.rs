//! The rules of a Backup, and of a Database that begins with the data of one.

use freehold::api::{Backup, BackupSchedule, Database, Volume};
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::answers::{create, judge, judge_created, update};
use super::{NAMESPACE, RECORD, database, volume, with};
use crate::kit::test_env::{control_plane, run};

fn backup() -> Value {
    json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "Backup",
        "metadata": {"name": "rules-backup", "namespace": NAMESPACE}, "spec": {"databaseName": "orders"},
    })
}

#[test]
fn a_backup_and_a_restore_that_contradict_themselves_are_refused_with_the_field() {
    let of_backup: [(Value, &[&str]); 6] = [
        (json!({}), &[]),
        (json!({"metadata": {"name": "a".repeat(200)}}), &[]),
        (json!({"metadata": {"name": "a".repeat(201)}}), &["metadata.name", "at most 200"]),
        (json!({"spec": {"databaseName": ""}}), &["spec.databaseName"]),
        (json!({"spec": {"deletionPolicy": "Delete"}}), &[]),
        (json!({"spec": {"deletionPolicy": "Keep"}}), &["spec.deletionPolicy"]),
    ];
    let of_database: [(Value, &[&str]); 11] = [
        (json!({"restore": {"backupName": "nightly"}}), &[]),
        (json!({"restore": {"snapshotID": "snap-1"}}), &[]),
        (json!({"restore": {"snapshotID": "snap-1", "initializationRate": 100}}), &[]),
        (json!({"restore": {"backupName": "nightly", "initializationRate": 300}}), &[]),
        (
            json!({"restore": {"backupName": "nightly", "initializationRate": 99}}),
            &["initializationRate", "100"],
        ),
        (
            json!({"restore": {"backupName": "nightly", "initializationRate": 301}}),
            &["initializationRate", "300"],
        ),
        (json!({"restore": {"initializationRate": 300}}), &["spec.restore", "exactly one of"]),
        (json!({"restore": {}}), &["spec.restore", "exactly one of"]),
        (json!({"restore": {"backupName": "a", "snapshotID": "snap-1"}}), &["spec.restore", "exactly one"]),
        (
            json!({"restore": {"backupName": "a"}, "storage": {"adoptRetained": RECORD}}),
            &["spec.restore excludes"],
        ),
        (
            json!({"restore": {"backupName": "a"}, "adopt": {"statefulSetName": "pg", "claimName": "data-pg-0",
                "serviceName": "pg", "volumeID": "vol-0123456789abcdef0",
                "instanceID": "i-0123456789abcdef0"}}),
            &["spec.restore excludes"],
        ),
    ];
    run(async {
        let client = control_plane().await.client();
        let mut failures = Vec::new();
        judge_created::<Backup>(&client, &backup(), of_backup, &mut failures).await;
        for (changes, says) in of_database {
            let object = with(database(), &json!({"spec": changes}));
            let answer = create::<Database>(&client, object).await;
            judge(&changes, answer.as_ref(), says, &mut failures);
        }
        let backups = Api::<Backup>::namespaced(client.clone(), NAMESPACE);
        let made = serde_json::from_value(backup()).unwrap();
        backups.create(&PostParams::default(), &made).await.unwrap();
        let other = json!({"spec": {"databaseName": "ledger"}});
        let answer = update::<Backup>(&client, backup(), &other).await;
        judge(&other, answer.as_ref(), &["spec.databaseName cannot change"], &mut failures);
        let policy = json!({"spec": {"deletionPolicy": "Delete"}});
        let answer = update::<Backup>(&client, backup(), &policy).await;
        judge(&policy, answer.as_ref(), &[], &mut failures);

        let whole = json!({"metadata": {"name": "rules-restored"}, "spec": {"restore": {"backupName": "a"}}});
        let restored = with(database(), &whole);
        let databases = Api::<Database>::namespaced(client.clone(), NAMESPACE);
        let made = serde_json::from_value(restored.clone()).unwrap();
        databases.create(&PostParams::default(), &made).await.unwrap();
        for restore in [json!(null), json!({"backupName": "b"})] {
            let changes = json!({"spec": {"restore": restore}});
            let answer = update::<Database>(&client, restored.clone(), &changes).await;
            judge(&changes, answer.as_ref(), &["spec.restore can be set only when"], &mut failures);
        }
        assert!(failures.is_empty(), "{failures:#?}");
    });
}

#[test]
fn a_rate_of_initialization_needs_a_snapshot_and_cannot_change() {
    let rated = json!({"metadata": {"name": "rules-rated"},
        "spec": {"snapshotID": "snap-1", "initializationRate": 100}});
    let creations: [(Value, &[&str]); 4] = [
        (json!({"snapshotID": "snap-1", "initializationRate": 300}), &[]),
        (json!({"snapshotID": "snap-1"}), &[]),
        (json!({"initializationRate": 100}), &["spec.initializationRate needs spec.snapshotID"]),
        (json!({"snapshotID": "snap-1", "initializationRate": 99}), &["spec.initializationRate"]),
    ];
    run(async {
        let client = control_plane().await.client();
        let mut failures = Vec::new();
        for (changes, says) in creations {
            let object = with(volume(), &json!({"metadata": {"name": "rules-tried"}, "spec": changes}));
            let answer = create::<Volume>(&client, object).await;
            judge(&changes, answer.as_ref(), says, &mut failures);
        }
        let object = with(volume(), &rated);
        let volumes = Api::<Volume>::namespaced(client.clone(), NAMESPACE);
        let made = serde_json::from_value(object.clone()).unwrap();
        volumes.create(&PostParams::default(), &made).await.unwrap();
        for rate in [json!(null), json!(200)] {
            let changes = json!({"spec": {"initializationRate": rate}});
            let answer = update::<Volume>(&client, object.clone(), &changes).await;
            judge(&changes, answer.as_ref(), &["spec.initializationRate cannot change"], &mut failures);
        }
        assert!(failures.is_empty(), "{failures:#?}");
    });
}

#[test]
fn a_schedule_has_five_fields_whatever_is_between_them() {
    let schedule = |text: &str| {
        json!({
            "apiVersion": "freehold.dev/v1alpha1", "kind": "BackupSchedule",
            "metadata": {"name": "rules-schedule", "namespace": NAMESPACE},
            "spec": {"databaseName": "orders", "schedule": text},
        })
    };
    let five: &[&str] = &["spec.schedule", "five fields"];
    let cases: [(&str, &[&str]); 6] = [
        ("30 3 * * *", &[]),
        (" 30  3 * *   * ", &[]),
        ("30\t3\t*\t*\t*", &[]),
        ("30 3 * * * *", five),
        ("30 3 * * 1-5 UTC", five),
        ("30 3 * *  ", five),
    ];
    run(async {
        let client = control_plane().await.client();
        let mut failures = Vec::new();
        for (text, says) in cases {
            let object = schedule(text);
            let answer = create::<BackupSchedule>(&client, object.clone()).await;
            judge(&object, answer.as_ref(), says, &mut failures);
        }
        assert!(failures.is_empty(), "{failures:#?}");
    });
}

#[test]
fn a_verification_that_contradicts_itself_is_refused_with_the_field() {
    let cases: [(Value, &[&str]); 8] = [
        (json!({"schedule": "0 5 * * 0"}), &[]),
        (
            json!({"schedule": "H 5 * * *", "timeoutMinutes": 1440, "instanceType": "r7i.large",
                "nodeClassName": "default", "query": "SELECT count() > 0 FROM trades"}),
            &[],
        ),
        (json!({"schedule": "0 5 * *"}), &["spec.verify.schedule", "five fields"]),
        (json!({"schedule": "0 5 * * *", "timeoutMinutes": 9}), &["timeoutMinutes"]),
        (json!({"schedule": "0 5 * * *", "timeoutMinutes": 1441}), &["timeoutMinutes"]),
        (json!({"schedule": "0 5 * * *", "instanceType": "large"}), &["spec.verify.instanceType"]),
        (json!({"schedule": "0 5 * * *", "nodeClassName": "-"}), &["spec.verify.nodeClassName"]),
        (json!({"schedule": "0 5 * * *", "query": ""}), &["query"]),
    ];
    run(async {
        let client = control_plane().await.client();
        let mut failures = Vec::new();
        for (verify, says) in cases {
            let object = json!({
                "apiVersion": "freehold.dev/v1alpha1", "kind": "BackupSchedule",
                "metadata": {"name": "rules-verify", "namespace": NAMESPACE},
                "spec": {"databaseName": "orders", "schedule": "0 3 * * *", "verify": verify},
            });
            let answer = create::<BackupSchedule>(&client, object.clone()).await;
            judge(&object, answer.as_ref(), says, &mut failures);
        }
        assert!(failures.is_empty(), "{failures:#?}");
    });
}

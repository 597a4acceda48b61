//! `freehold adopt` on a database that Freehold never made: without `--write` nothing changes, and what it
//! begins is begun once, however often it is run.

use std::time::Duration;

use freehold::api::Database;
use freehold_box::legacy::{Account, Disk, FileSystem, Legacy, Order};
use freehold_box::writer::Dialect;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use kube::api::DeleteParams;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::kit::adopter::{PERSON, adopt};
use crate::kit::env::Env as _;
use crate::kit::test_env::{Options, TestEnv, run};

/// How long the legacy database may take to run.
const LIMIT: Duration = Duration::from_mins(20);

/// What the person did in EC2 besides reading, in order.
fn written(env: &TestEnv) -> Vec<String> {
    let journal = env.ec2().journal().into_iter().filter(|entry| entry.caller == PERSON);
    journal.map(|entry| entry.action).filter(|action| !action.starts_with("Describe")).collect()
}

/// What the API server has of the database.
async fn objects(env: &TestEnv) -> Value {
    json!([
        env.list::<StatefulSet>().await,
        env.list::<Pod>().await,
        env.list::<PersistentVolumeClaim>().await,
        env.list::<Service>().await,
        env.list::<Database>().await,
    ])
}

#[test]
fn what_would_be_done_is_shown_without_a_change_and_is_begun_once_however_often_it_is_run() {
    run(async {
        let env = TestEnv::build("adopting", Options::default()).await;
        let order = Order {
            engine: Dialect::Questdb,
            namespace: &env.name,
            name: "orders",
            file_system: FileSystem::Ext4,
            disk: Disk::Claimed,
        };
        let legacy = Legacy::create(&env.client, &Account::of(&env.site), order).await.unwrap();
        legacy.serves(LIMIT).await.unwrap();

        let before = objects(&env).await;
        let (code, report) = adopt(&env, &[]).await;
        assert_eq!(code, Some(0), "{report}");
        let instance = &legacy.instance;
        for part in ["version: 8.2.0", "size: 2Gi", "fileSystem: ext4", "orders-credentials", instance] {
            assert!(report.contains(part), "{part}: {report}");
        }
        let (code, json) = adopt(&env, &["--output", "json"]).await;
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!((code, &json["adoptable"]), (Some(0), &true.into()));
        let (code, report) = adopt(&env, &["--database", "Orders", "--write"]).await;
        assert_eq!(code, Some(2), "{report}");
        assert!(report.contains("1 blocker. Nothing was changed."), "{report}");
        assert_eq!((written(&env), objects(&env).await), (vec![], before));

        // Without an operator the Database does not become Ready.
        for run in 0..2 {
            let (code, report) = adopt(&env, &["--write", "--timeout", "0"]).await;
            assert_eq!(code, Some(1), "{report}");
            assert!(report.contains("Database orders is not Ready after 0 s"), "{report}");
            assert_eq!(report.contains("is there already"), run == 1, "{report}");
        }
        let tags = ["CreateTags"; 2];
        assert_eq!(written(&env), [&["CreateSnapshot"][..], &tags, &tags].concat());
        let database = env.list::<Database>().await.remove(0);
        assert_eq!(json!(database.spec), json["database"]["spec"], "what was shown is what was written");
        let adopt = database.spec.adopt.unwrap();
        let proof = format!("{0}/{0}/orders", env.name);
        let volume = env.ec2().volume(&adopt.volume_id.0).unwrap();
        for tags in [&volume.tags, &env.ec2().instance(instance).unwrap().tags] {
            assert_eq!(tags.get("freehold.dev/adopt"), Some(&proof));
        }

        env.api::<StatefulSet>().delete("orders", &DeleteParams::default()).await.unwrap();
        let claims = env.api::<PersistentVolumeClaim>();
        claims.delete(&legacy.claim(), &DeleteParams::default()).await.unwrap();
        env.close_unchecked().await;
    });
}

//! A real QuestDB and a real PostgreSQL change their versions behind a backup, under a writer.

use std::time::Instant;

use freehold::api::Database;
use freehold::api::database::Upgrade;
use freehold_box::machines::images::servers::IMAGES;
use freehold_box::writer::{Dialect, Writer, Written};
use k8s_openapi::api::core::v1::Pod;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::backup::{complete, former_is_retained, request};
use crate::kit::env::Env as _;
use crate::kit::real::{LIMIT, RealEnv, on_real_machines, questdb};
use crate::kit::wait::{seen, within};

const OLDER: &str = "9.2.3";
const NEWER: &str = "9.3.4";

fn version(version: &str) -> Value {
    json!({"type": "questdb", "version": version})
}

/// Waits until an engine of this version has ended by itself.
async fn has_ended(env: &RealEnv, version: &str) {
    within(LIMIT, &format!("QuestDB {version} having ended"), || async {
        let pod = env.api::<Pod>().get_opt("orders-0").await.map_err(|error| error.to_string())?;
        let status = pod.and_then(|pod| pod.status?.container_statuses?.into_iter().next());
        let has_ended = status.as_ref().is_some_and(|it| it.image.ends_with(version) && it.restart_count > 0);
        seen(has_ended.then_some(()), || format!("{:?}", status.map(|it| (it.image, it.state))))
    })
    .await;
}

async fn upgrade(env: &RealEnv) -> Upgrade {
    *env.api::<Database>().get("orders").await.unwrap().status.unwrap().upgrade.unwrap()
}

/// The EBS volumes that have data, by their ids.
fn volumes(env: &RealEnv) -> Vec<String> {
    env.data_volumes().into_iter().map(|volume| volume.id).collect()
}

/// The database serves again, with every acknowledged row; the writer that goes on.
async fn keeps_its_rows(env: &RealEnv, writer: Writer) -> Writer {
    env.serves("orders").await;
    writer.is_served(LIMIT).await.unwrap();
    writer.verify(LIMIT).await.unwrap().check().unwrap();
    writer
}

#[test]
fn a_version_that_does_not_start_leaves_every_row_to_the_one_before_and_the_next_one_takes_them_over() {
    on_real_machines("upgrade", |mut env| async move {
        env.env.start_operator();
        let mut spec = questdb();
        spec["engine"] = version(OLDER);
        spec["upgrade"] = json!({"timeoutMinutes": 60});
        let writer = env.written(&spec, Dialect::Questdb).await;
        let before = volumes(&env);
        // A setting that no QuestDB starts with.
        let wrong = json!({"shared.worker.count": "plenty"});
        env.edit("orders", &json!({"engine": version(NEWER), "config": wrong})).await;
        has_ended(&env, NEWER).await;
        let began = Instant::now();
        env.edit("orders", &json!({"engine": version(OLDER), "config": {"shared.worker.count": null}})).await;
        let writer = keeps_its_rows(&env, writer).await;
        println!("served again {:.1} s after it was set back", began.elapsed().as_secs_f64());
        assert!(volumes(&env).len() > before.len(), "what the changed engine wrote to is retained");

        let began = Instant::now();
        env.edit("orders", &json!({"engine": version(NEWER)})).await;
        let writer = keeps_its_rows(&env, writer).await;
        println!("QuestDB {NEWER} served {:.1} s after the edit", began.elapsed().as_secs_f64());
        let done = upgrade(&env).await;
        assert_eq!((done.to.version.as_deref(), done.went_back), (Some(NEWER), None));
        assert!(done.ended_at.is_some());
        assert!(env.pod("orders").await.spec.unwrap().containers[0].image.as_ref().unwrap().ends_with(NEWER));
        writer.stop().await;
        env.edit("orders", &json!({"deletionPolicy": "Delete"})).await;
        env.env.delete("orders").await;
        env.is_gone("orders").await;
        former_is_retained(&env).await;
        within(LIMIT, "its volume being gone", || async {
            let left = volumes(&env);
            seen(left.is_empty().then_some(()), || format!("{left:?}"))
        })
        .await;
        env
    });
}

#[test]
fn a_postgresql_takes_the_next_minor_release_under_a_writer_and_a_backup_of_before_has_its_rows() {
    on_real_machines("minor-release", |mut env| async move {
        env.env.start_operator();
        let [older, newer] = IMAGES.map(|server| json!({"type": "postgresql", "version": server.release()}));
        let mut spec = env.postgresql();
        (spec["engine"], spec["upgrade"]) = (older, json!({"timeoutMinutes": 60}));
        let writer = env.written(&spec, Dialect::Postgresql).await;
        let acknowledged = writer.written().acknowledged;
        let backups = env.api();
        request(&backups, "first", "orders").await;
        complete(&backups, "first").await;

        env.edit("orders", &json!({"engine": newer})).await;
        let writer = keeps_its_rows(&env, writer).await;
        let done = upgrade(&env).await;
        let is_newer = done.to.version.as_deref() == newer["version"].as_str();
        assert!(is_newer && done.ended_at.is_some() && done.went_back.is_none(), "{done:?}");
        let outage = writer.observed().outage.unwrap();
        println!(
            "PostgreSQL {} after {:.1} s without an answer",
            newer["version"],
            outage.length.as_secs_f64()
        );
        let backed_up = Written { acknowledged, ..writer.stop().await };

        spec["restore"] = json!({"backupName": "first"});
        env.create("beside", &spec).await;
        env.serves("beside").await;
        let beside = env.numbered("beside", Dialect::Postgresql);
        backed_up.verify(&beside, LIMIT).await.unwrap().check().unwrap();
        env
    });
}

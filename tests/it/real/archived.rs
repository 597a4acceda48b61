//! The page on point in time is followed with a real PostgreSQL, whose log real programs archive in a real S3
//! server: what was written before a mistake is there again, and the mistake is not.

use std::time::Instant;

use freehold::api::Database;
use freehold_box::machines::images::POSTGRESQL_WITH_BARMAN;
use freehold_box::writer::{Dialect, Written};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::backup;
use crate::kit::env::Env as _;
use crate::kit::page::{self, Block};
use crate::kit::real::{LIMIT, RealEnv, on_real_machines};
use crate::kit::s3::{KEY, S3};
use crate::kit::wait::{seen, within};

const PAGE: &str = "docs/point-in-time.md";

/// What the administrator of the Database reads.
fn asked(env: &RealEnv, database: &str, query: &str) -> String {
    env.psql(database, "", query).unwrap()
}

/// The spec of a manifest of the page, for the machines and the S3 server of this test.
fn spec(env: &RealEnv, s3: &S3, manifest: &Block) -> Value {
    let (mut spec, here) = (manifest.spec(), env.postgresql());
    for part in ["engine", "storage"] {
        spec[part] = here[part].clone();
    }
    spec["walArchive"]["endpointURL"] = json!(s3.url());
    spec["walArchive"]["intervalSeconds"] = json!(10);
    spec
}

/// Waits until everything that is written until now is archived.
async fn is_archived(env: &RealEnv, s3: &S3, database: &str) {
    let file = asked(env, database, "SELECT pg_walfile_name(pg_switch_wal())");
    let volume =
        env.api::<Database>().get(database).await.unwrap().status.unwrap().wal_archive.unwrap().volume_id;
    within(LIMIT, &format!("{file} being archived"), || async {
        let log = s3.log(&format!("postgresql/{}", volume.0));
        seen(log.contains(&file).then_some(()), || format!("{log:?}"))
    })
    .await;
}

/// Writes to `orders` before and after its backup, and then makes a mistake. What was written, and the
/// position of the log between.
async fn mistaken(env: &RealEnv, s3: &S3) -> (Written, String) {
    let writer = env.writer("orders", Dialect::Postgresql);
    writer.is_served(LIMIT).await.unwrap();
    let backups = env.api();
    backup::request(&backups, "orders-nightly", "orders").await;
    backup::complete(&backups, "orders-nightly").await;
    let backed_up = writer.written().acknowledged.len();
    within(LIMIT, "rows being written after the backup", || async {
        let rows = writer.written().acknowledged.len();
        seen((rows > backed_up + 100).then_some(()), || format!("{rows}"))
    })
    .await;
    let written = writer.stop().await;
    // EC2's clock runs ten times as fast as the engine's here, so its times are not those of the backup.
    let position = asked(env, "orders", "SELECT pg_current_wal_lsn()");
    asked(env, "orders", "DELETE FROM numbered");
    is_archived(env, s3, "orders").await;
    (written, position)
}

/// Every row that was acknowledged is in this Database.
async fn has_all(env: &RealEnv, database: &str, written: &Written, began: Instant) {
    env.serves(database).await;
    let took = began.elapsed();
    let found = written.verify(&env.numbered(database, Dialect::Postgresql), LIMIT).await.unwrap();
    found.check().unwrap();
    println!(
        "{database}: {} of {} rows, {:.1} s after the manifest",
        found.found.len(),
        written.acknowledged.len(),
        took.as_secs_f64(),
    );
}

#[test]
fn the_page_on_point_in_time_can_be_followed_and_takes_a_mistake_back() {
    on_real_machines("point-in-time", |mut env| async move {
        let s3 = S3::start(env.gateway()).await;
        env.env.start_operator();
        let (registry, repository) = POSTGRESQL_WITH_BARMAN.split_once('/').unwrap();
        env.edit_class(&json!({"images": {"registry": registry, "postgresql": {"repository": repository}}}))
            .await;
        let blocks = page::blocks(PAGE);
        let [_image, secret, archiving, wait, restored, log] = &blocks[..] else {
            panic!("{} blocks", blocks.len())
        };
        let secret = secret.with("ACCESS_KEY_ID=...", &format!("ACCESS_KEY_ID={}", KEY.0));
        let secret = secret.with("SECRET_ACCESS_KEY=...", &format!("SECRET_ACCESS_KEY={}", KEY.1));
        page::run(&env, PAGE, &secret).await;
        env.create("orders", &spec(&env, &s3, archiving)).await;
        env.serves("orders").await;
        let said = page::run(&env, PAGE, wait).await;
        assert!(said.contains("s3://backups/postgresql") && said.contains("vol-"), "{said}");
        let (written, position) = mistaken(&env, &s3).await;

        let began = Instant::now();
        let mut before = spec(&env, &s3, restored);
        before["restore"]["pointInTime"] = json!({"lsn": position});
        env.create("orders-before", &before).await;
        has_all(&env, "orders-before", &written, began).await;
        page::run(&env, PAGE, log).await;
        assert_eq!(
            asked(&env, "orders", "SELECT count(*) FROM numbered"),
            "0",
            "the mistake is where it was made"
        );

        let began = Instant::now();
        let point =
            json!({"generation": 1, "backupName": "orders-nightly", "pointInTime": {"lsn": position}});
        env.edit("orders", &json!({"restoreInPlace": point})).await;
        backup::in_place(&env, 1, true).await;
        has_all(&env, "orders", &written, began).await;
        // Its new volume has a log of its own.
        page::run(&env, PAGE, wait).await;
        is_archived(&env, &s3, "orders").await;

        for name in ["orders", "orders-before"] {
            env.edit(name, &json!({"deletionPolicy": "Delete"})).await;
            env.env.delete(name).await;
        }
        for name in ["orders", "orders-before"] {
            env.is_gone(name).await;
        }
        backup::former_is_retained(&env).await;
        env
    });
}

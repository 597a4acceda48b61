//! The password of real engines is rotated under writers that read the Secret at each connection.

use std::time::Duration;

use freehold::api::Database;
use freehold_box::writer::{Access, Dialect, Source, Target};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::env::Env as _;
use crate::kit::objects::Told as _;
use crate::kit::real::{LIMIT, RealEnv, on_real_machines, questdb};

/// How long a connection with a password that was replaced is tried.
const TRIED: Duration = Duration::from_secs(5);

/// What a client finds now.
async fn access(env: &RealEnv) -> Access {
    let source = Source::Database {
        client: env.client.clone(),
        namespace: env.name.clone(),
        name: "orders".to_owned(),
    };
    source.access().await.unwrap()
}

/// Has another password put in force, and waits until the Database is Ready with it; how it was reached
/// before.
async fn rotated(env: &RealEnv) -> (Access, Database) {
    let before = access(env).await;
    env.edit("orders", &json!({"access": {"passwordGeneration": 2}})).await;
    let database = env.serves("orders").await;
    assert_eq!(database.condition("PasswordRotated").0, "True");
    let status = database.status.clone().unwrap_or_default();
    assert_eq!(status.password_generation, Some(2));
    (before, database)
}

/// Whether this lets a client in, at the address that the database has now.
async fn opens(env: &RealEnv, dialect: Dialect, with: &Access) -> bool {
    let given = Access { address: access(env).await.address, ..with.clone() };
    let target = Target { dialect, source: Source::Given(given), table: "numbered" };
    target.count("numbered", TRIED).await.is_ok()
}

#[test]
fn a_postgresql_takes_another_password_while_it_serves_and_not_the_old_one_any_more() {
    on_real_machines("rotation-of-postgresql", |mut env| async move {
        env.env.start_operator();
        let writer = env.written(&env.postgresql(), Dialect::Postgresql).await;
        let run = env.run_of("orders").await;
        writer.observed();
        let (before, _) = rotated(&env).await;
        writer.is_served(LIMIT).await.unwrap();
        let gap = writer.observed().outage.map_or(Duration::ZERO, |gap| gap.length);
        eprintln!("rotation of PostgreSQL: longest gap of the writer {:.2} s", gap.as_secs_f64());
        assert_eq!(env.run_of("orders").await, run, "nothing restarts");
        assert_eq!(writer.failures(), 0, "{:?}", writer.last_failure());
        let after = access(&env).await;
        assert_ne!(after.password, before.password);
        assert!(opens(&env, Dialect::Postgresql, &after).await);
        assert!(!opens(&env, Dialect::Postgresql, &before).await, "the old password opens it");
        writer.verify(LIMIT).await.unwrap().check().unwrap();
        env
    });
}

#[test]
fn a_questdb_has_another_password_after_one_restart_and_the_secret_has_none_that_is_refused() {
    on_real_machines("rotation-of-questdb", |mut env| async move {
        env.env.start_operator();
        let writer = env.written(&questdb(), Dialect::Questdb).await;
        writer.observed();
        let (before, database) = rotated(&env).await;
        writer.is_served(LIMIT).await.unwrap();
        let gap = writer.observed().outage.map_or(Duration::ZERO, |gap| gap.length);
        eprintln!("rotation of QuestDB: longest gap of the writer {:.2} s", gap.as_secs_f64());
        let history = database.status.unwrap_or_default().history;
        assert_eq!(history.len(), 1, "one restart: {history:?}");
        assert_eq!(env.run_of("orders").await.1, 0, "its container starts once");
        let refused = writer.last_failure().unwrap_or_default();
        assert!(!refused.contains("password"), "no password of the Secret was refused: {refused}");
        let after = access(&env).await;
        assert!(opens(&env, Dialect::Questdb, &after).await);
        assert!(!opens(&env, Dialect::Questdb, &before).await, "the old password opens it");
        writer.verify(LIMIT).await.unwrap().check().unwrap();
        env
    });
}

//! The settings of a real PostgreSQL are changed under a writer: what it takes while it runs restarts
//! nothing, and what it rejects changes nothing.

use freehold::api::Database;
use freehold::api::database::{ConfigState, ConfigStatus};
use freehold_box::writer::Dialect;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::kit::env::Env as _;
use crate::kit::real::{LIMIT, RealEnv, on_real_machines};

/// Changes the settings, and waits until they are in force.
async fn changed(env: &RealEnv, config: &Value) -> Database {
    env.edit("orders", &json!({"config": config})).await;
    let database = env.serves("orders").await;
    assert_eq!(config_of(&database).state, ConfigState::InForce);
    database
}

fn config_of(database: &Database) -> ConfigStatus {
    database.status.clone().unwrap_or_default().config.unwrap()
}

/// By hand, on a host that does nothing else: where the engine is not ready for a moment at an edit, or the
/// file is not updated in three minutes, Freehold restarts the engine, as docs/configuration.md says, and
/// this test is about the edits that restart nothing.
#[test]
#[ignore = "the time of a busy host decides what it sees: docs/testing.md"]
fn a_postgresql_takes_settings_while_it_serves_and_rejects_wrong_ones() {
    on_real_machines("settings-of-postgresql", |mut env| async move {
        env.env.start_operator();
        let writer = env.written(&env.postgresql(), Dialect::Postgresql).await;
        let run = env.run_of("orders").await;
        changed(&env, &json!({"work_mem": "16MB"})).await;
        assert_eq!(env.run_of("orders").await, run, "nothing restarts");
        for (key, value) in [("work_mem", "lots"), ("session_preload_libraries", "not_there")] {
            env.edit("orders", &json!({"config": {key: value}})).await;
            let message =
                env.until_condition_within(LIMIT, "orders", "Ready", "False", "ConfigRejected").await;
            assert!(message.contains(value), "{message}");
            changed(&env, &json!({"work_mem": "8MB", "session_preload_libraries": null})).await;
            assert_eq!(env.run_of("orders").await, run, "nothing restarts for {key} = {value}");
        }
        assert_eq!(writer.failures(), 0, "{:?}", writer.last_failure());
        let database = changed(&env, &json!({"work_mem": "12MB", "max_connections": "77"})).await;
        let history = database.status.unwrap_or_default().history;
        assert_eq!(history.len(), 1, "one restart: {history:?}");
        writer.is_served(LIMIT).await.unwrap();
        writer.verify(LIMIT).await.unwrap().check().unwrap();
        env
    });
}

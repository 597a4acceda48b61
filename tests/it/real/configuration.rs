//! The settings of real engines are changed under writers: what the engine takes while it runs restarts
//! nothing, and what it rejects changes nothing.

use freehold::api::Database;
use freehold::api::database::{ConfigState, ConfigStatus};
use freehold_box::writer::Dialect;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::kit::env::Env as _;
use crate::kit::real::{LIMIT, RealEnv, on_real_machines, questdb};

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

async fn rejected(env: &RealEnv, config: &Value) -> String {
    env.edit("orders", &json!({"config": config})).await;
    env.until_condition_within(LIMIT, "orders", "Ready", "False", "ConfigRejected").await
}

#[test]
fn a_postgresql_takes_settings_while_it_serves_and_rejects_wrong_ones_before_any_restart() {
    on_real_machines("settings-of-postgresql", |mut env| async move {
        env.env.start_operator();
        env.create("orders", &env.postgresql()).await;
        env.serves("orders").await;
        let writer = env.writer("orders", Dialect::Postgresql);
        writer.is_served(LIMIT).await.unwrap();
        let run = env.run_of("orders").await;
        let shows = |name: &str| {
            env.exec("orders", &format!("psql -h /var/run/postgresql -U admin -d app -Atc \"SHOW {name}\""))
        };
        changed(&env, &json!({"work_mem": "16MB"})).await;
        assert_eq!(env.run_of("orders").await, run, "nothing restarts");
        eprintln!("SHOW work_mem: {:?}", shows("work_mem"));
        for (key, value) in [("work_mem", "lots"), ("max_connections", "many"), ("work_memm", "1MB")] {
            let message = rejected(&env, &json!({key: value})).await;
            assert!(message.contains(key) && message.contains(value), "{message}");
            assert_eq!(env.run_of("orders").await, run, "nothing restarts for {key} = {value}");
            env.edit("orders", &json!({"config": {"work_memm": null, "max_connections": null}})).await;
            changed(&env, &json!({"work_mem": "16MB"})).await;
        }
        assert_eq!(writer.failures(), 0, "{:?}", writer.last_failure());
        let database = changed(&env, &json!({"work_mem": "8MB", "max_connections": "77"})).await;
        let history = database.status.unwrap_or_default().history;
        assert_eq!(history.len(), 1, "one restart: {history:?}");
        writer.is_served(LIMIT).await.unwrap();
        writer.verify(LIMIT).await.unwrap().check().unwrap();
        env
    });
}

#[test]
fn a_questdb_takes_what_it_calls_reloadable_while_it_serves_and_goes_on_without_what_it_does_not_take() {
    on_real_machines("settings-of-questdb", |mut env| async move {
        env.env.start_operator();
        env.create("orders", &questdb()).await;
        env.serves("orders").await;
        let writer = env.writer("orders", Dialect::Questdb);
        writer.is_served(LIMIT).await.unwrap();
        let run = env.run_of("orders").await;
        changed(&env, &json!({"http.send.buffer.size": "4M"})).await;
        rejected(&env, &json!({"http.send.buffer.size": "lots"})).await;
        changed(&env, &json!({"http.send.buffer.size": "3M"})).await;
        assert_eq!(env.run_of("orders").await, run, "nothing restarts");
        assert_eq!(writer.failures(), 0, "{:?}", writer.last_failure());
        let database = changed(&env, &json!({"cairo.max.uncommitted.rows": "1000"})).await;
        let history = database.status.clone().unwrap_or_default().history;
        assert_eq!(history.len(), 1, "one restart: {history:?}");
        assert_eq!(config_of(&database).in_force.len(), 3, "{database:?}");
        writer.is_served(LIMIT).await.unwrap();
        writer.verify(LIMIT).await.unwrap().check().unwrap();
        env
    });
}

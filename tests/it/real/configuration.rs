//! The settings of a real PostgreSQL are changed under a writer: what it takes while it runs restarts
//! nothing, and what it rejects changes nothing.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Stdio};

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

/// Gives a setting that the engine takes while it runs, without a restart. Where the engine is not ready for
/// a moment at an edit, or its file is not updated in three minutes, Freehold restarts it
/// (docs/configuration.md), which a busy host may bring about: then another value.
async fn taken(env: &RealEnv) {
    for value in ["16MB", "20MB", "24MB", "28MB", "36MB", "40MB"] {
        let run = env.run_of("orders").await;
        changed(env, &json!({"work_mem": value})).await;
        if env.run_of("orders").await == run {
            return;
        }
    }
    panic!("the engine was restarted for each of six settings that it takes while it runs");
}

/// What the server logs of a CHECKPOINT that a client sends.
const FLUSHED: &str = "force wait";

/// The log of the engine's pod, from its first line to its end.
struct Log {
    kubectl: Child,
    lines: BufReader<ChildStdout>,
    first: String,
}

impl Log {
    /// Follows that of the pod which runs, whose engine was not flushed yet.
    fn follow(env: &RealEnv) -> Self {
        let so_far = env.kubectl().args(["logs", "orders-0"]).output().unwrap().stdout;
        let so_far = String::from_utf8_lossy(&so_far).into_owned();
        assert!(so_far.contains("ready to accept") && !so_far.contains(FLUSHED), "{so_far}");
        let mut kubectl = env.kubectl();
        kubectl.args(["logs", "--follow", "orders-0"]).stdout(Stdio::piped());
        let mut kubectl = kubectl.spawn().unwrap();
        let mut lines = BufReader::new(kubectl.stdout.take().unwrap());
        let mut first = String::new();
        lines.read_line(&mut first).unwrap();
        Self { kubectl, lines, first }
    }

    /// What it has, once the pod has ended.
    fn text(mut self) -> String {
        self.kubectl.kill().unwrap();
        self.lines.read_to_string(&mut self.first).unwrap();
        self.kubectl.wait().unwrap();
        self.first
    }
}

#[test]
fn a_postgresql_takes_settings_while_it_serves_and_rejects_wrong_ones() {
    on_real_machines("settings-of-postgresql", |mut env| async move {
        env.env.start_operator();
        let writer = env.written(&env.postgresql(), Dialect::Postgresql).await;
        let run = env.run_of("orders").await;
        env.edit("orders", &json!({"config": {"session_preload_libraries": "not_there"}})).await;
        let message = env.until_condition_within(LIMIT, "orders", "Ready", "False", "ConfigRejected").await;
        assert!(message.contains("not_there"), "{message}");
        assert_eq!(env.run_of("orders").await, run, "nothing restarts for what is rejected");
        env.edit("orders", &json!({"config": {"session_preload_libraries": null}})).await;
        taken(&env).await;
        let before = env.run_of("orders").await;
        let log = Log::follow(&env);
        changed(&env, &json!({"work_mem": "12MB", "max_connections": "77"})).await;
        assert_ne!(env.run_of("orders").await, before, "max_connections takes effect at a start");
        let log = log.text();
        assert!(log.contains(FLUSHED), "no CHECKPOINT was carried out before the stop: {log}");
        writer.is_served(LIMIT).await.unwrap();
        writer.verify(LIMIT).await.unwrap().check().unwrap();
        env
    });
}

//! The control API under `/_sim/`, in JSON: look at the truth and the journal, set faults, step time, act
//! from outside.

use std::{collections::BTreeSet, time::Duration};

use axum::{
    Json, Router,
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Fault, JournalEntry, OutsideAction, Simulator};

#[derive(Deserialize)]
struct Since {
    #[serde(default)]
    since: u64,
}

#[derive(Deserialize)]
struct Which {
    id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    seconds: f64,
}

#[derive(Deserialize)]
struct Whose {
    caller: String,
}

/// One fault, or a list of them.
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    Many(Vec<Fault>),
    One(Box<Fault>),
}

pub(super) fn routes() -> Router<Simulator> {
    Router::new()
        .route("/health", get(health))
        .route("/state", get(state))
        .route("/journal", get(journal))
        .route("/used-statements", get(used_statements))
        .route("/faults", get(faults).post(add_faults).delete(clear_faults))
        .route("/advance", post(advance))
        .route("/outside", post(outside))
}

async fn health(State(simulator): State<Simulator>) -> Json<Value> {
    Json(json!({"ok": true, "now": simulator.now()}))
}

async fn state(State(simulator): State<Simulator>) -> Json<Value> {
    Json(json!({
        "now": simulator.now(),
        "instances": simulator.instances(),
        "volumes": simulator.volumes(),
        "snapshots": simulator.snapshots(),
    }))
}

async fn journal(State(simulator): State<Simulator>, Query(from): Query<Since>) -> Json<Vec<JournalEntry>> {
    Json(simulator.journal_since(from.since))
}

async fn used_statements(
    State(simulator): State<Simulator>,
    Query(whose): Query<Whose>,
) -> Json<BTreeSet<String>> {
    Json(simulator.used_statements(&whose.caller))
}

async fn faults(State(simulator): State<Simulator>) -> Json<Vec<Fault>> {
    Json(simulator.faults())
}

async fn add_faults(State(simulator): State<Simulator>, Json(given): Json<OneOrMany>) -> Json<Value> {
    let faults = match given {
        OneOrMany::Many(faults) => faults,
        OneOrMany::One(fault) => vec![*fault],
    };
    let ids: Vec<String> = faults.into_iter().map(|fault| simulator.add_fault(fault)).collect();
    Json(json!({"ids": ids}))
}

async fn clear_faults(State(simulator): State<Simulator>, Query(which): Query<Which>) -> StatusCode {
    match which.id {
        Some(id) => simulator.clear_fault(&id),
        None => simulator.clear_faults(),
    }
    StatusCode::NO_CONTENT
}

async fn advance(State(simulator): State<Simulator>, Json(step): Json<Step>) -> Response {
    match Duration::try_from_secs_f64(step.seconds) {
        Ok(time) => {
            simulator.advance(time);
            Json(json!({"now": simulator.now()})).into_response()
        }
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

async fn outside(State(simulator): State<Simulator>, Json(action): Json<OutsideAction>) -> Response {
    match simulator.outside(&action) {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(refusal) => (StatusCode::NOT_FOUND, refusal.to_string()).into_response(),
    }
}

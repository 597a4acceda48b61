//! The HTTP endpoints of the process: `/livez`, `/readyz` and `/metrics`.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::cloud::identity::Kind;
use crate::cloud::inventory::Inventory;
use crate::leadership::standing::{Stand, Standing};
use crate::metrics::Metrics;

/// What the endpoints report.
#[derive(Clone)]
pub struct Health {
    /// The counters.
    pub metrics: Arc<Metrics>,
    /// What EC2 has of ours, once this operator leads: ready means that it was listed whole once.
    pub inventory: Arc<OnceLock<Arc<Inventory>>>,
    /// Whether this operator leads: one that stands by is ready, and lists nothing.
    pub standing: Arc<Standing>,
    /// For the age of the inventory.
    pub clock: Arc<dyn Clock>,
}

/// Serves until `stop`.
pub async fn serve(listener: TcpListener, health: Health, stop: CancellationToken) -> std::io::Result<()> {
    let router = Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(health);
    axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await
}

async fn ready(State(health): State<Health>) -> (StatusCode, String) {
    match health.standing.get() {
        Stand::Leading => {}
        Stand::StandingBy(holder) => return (StatusCode::OK, format!("ok: standing by, {holder} leads\n")),
        Stand::Refusing(refusal) => {
            return (StatusCode::SERVICE_UNAVAILABLE, format!("this operator does not act: {refusal}\n"));
        }
        Stand::Unknown(why) => return (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")),
    }
    for (kind, what) in [(Kind::Node, "instances"), (Kind::Volume, "volumes")] {
        let stats = health.inventory.get().map(|inventory| inventory.stats(kind)).unwrap_or_default();
        if stats.last_complete.is_none() {
            let why = stats.last_error.unwrap_or_else(|| "the first list is under way".to_owned());
            return (
                StatusCode::SERVICE_UNAVAILABLE,
                format!("not ready: EC2's {what} were never listed whole: {why}\n"),
            );
        }
    }
    (StatusCode::OK, "ok\n".to_owned())
}

async fn metrics(State(health): State<Health>) -> axum::response::Response {
    if let Some(inventory) = health.inventory.get() {
        let now = health.clock.now();
        for (kind, what) in [(Kind::Node, "instances"), (Kind::Volume, "volumes")] {
            if let Some(at) = inventory.last_complete(kind) {
                health.metrics.inventory_age(what, now.duration_since(at).as_secs());
                health.metrics.inventory_suspect(what, inventory.stats(kind).is_suspect);
            }
        }
    }
    match health.metrics.text() {
        Ok(text) => ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text)
            .into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("failed to write the metrics: {error}\n"))
            .into_response(),
    }
}

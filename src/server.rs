//! The HTTP endpoints of the process: `/livez`, `/readyz` and `/metrics`.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::cloud::identity::Kind;
use crate::controller::pass::context::Context;
use crate::leadership::standing::{Stand, Standing};
use crate::metrics::Metrics;

/// What the endpoints report.
#[derive(Clone)]
pub struct Health {
    /// The counters.
    pub metrics: Arc<Metrics>,
    /// What passes are given, once this operator leads: ready means that EC2 was listed whole once, alive
    /// that its loops go on.
    pub acting: Arc<OnceLock<Arc<Context>>>,
    /// Whether this operator leads: one that stands by is ready, and lists nothing.
    pub standing: Arc<Standing>,
    /// For the age of the inventory.
    pub clock: Arc<dyn Clock>,
}

/// Serves until `stop`.
pub async fn serve(listener: TcpListener, health: Health, stop: CancellationToken) -> std::io::Result<()> {
    let router = Router::new()
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(health);
    axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await
}

/// Longer than any pass or sync takes whose calls all run into their time limits: an API server or an EC2
/// that is away makes no loop silent.
const LONGEST_SILENCE: Duration = Duration::from_secs(900);

/// A loop that has died does not come back by itself: Kubernetes starts the process anew.
async fn live(State(health): State<Health>) -> (StatusCode, String) {
    let Some(ctx) = health.acting.get() else { return (StatusCode::OK, "ok\n".to_owned()) };
    let now = Instant::now();
    let of_ec2 = ctx.inventory.silent(LONGEST_SILENCE, now);
    let of_ec2 =
        of_ec2.map(|(kind, silence)| (format!("the EC2 inventory sync of kind {}", kind.as_str()), silence));
    let controller = ctx.pulse.silent(LONGEST_SILENCE, now);
    let controller = controller.map(|(name, silence)| (format!("the controller {name}"), silence));
    alive(of_ec2.or(controller))
}

/// The answer where this loop has been silent for so long.
fn alive(silent: Option<(String, Duration)>) -> (StatusCode, String) {
    match silent {
        None => (StatusCode::OK, "ok\n".to_owned()),
        Some((what, silence)) => {
            let why = format!("not alive: {what} has done nothing for {} s\n", silence.as_secs());
            (StatusCode::SERVICE_UNAVAILABLE, why)
        }
    }
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
        let stats = health.acting.get().map(|ctx| ctx.inventory.stats(kind)).unwrap_or_default();
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
    if let Some(inventory) = health.acting.get().map(|ctx| &ctx.inventory) {
        let now = health.clock.now();
        let listed = [(Kind::Node, "instances"), (Kind::Volume, "volumes"), (Kind::Backup, "snapshots")];
        for (kind, what) in listed {
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

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_loop_that_does_nothing_makes_the_kubelet_start_the_process_anew() {
        assert_eq!(alive(None), (StatusCode::OK, "ok\n".to_owned()));
        let silent = ("the controller node".to_owned(), Duration::from_secs(1200));
        let said = "not alive: the controller node has done nothing for 1200 s\n".to_owned();
        assert_eq!(alive(Some(silent)), (StatusCode::SERVICE_UNAVAILABLE, said));
    }
}

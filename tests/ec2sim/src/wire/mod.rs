//! The wire face: EC2's Query protocol on `/`, the control API under `/_sim/`.

mod answer;
mod connection;
mod control;
mod lists;
mod resources;
mod xml;

use std::{io, time::Duration};

use axum::{
    Router,
    body::Bytes,
    extract::{ConnectInfo, RawQuery, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing,
};
use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{Refusal, Simulator, faults::Delivery, simulator::Answer};
use connection::{Breaker, Listener};

/// How often the model is brought up to the present, so that those who watch hear of what time has changed.
const TICK: Duration = Duration::from_millis(20);

impl Simulator {
    /// Answers on `listener` until `stop` is cancelled.
    ///
    /// # Errors
    /// If the listener fails.
    pub async fn serve(&self, listener: TcpListener, stop: CancellationToken) -> io::Result<()> {
        let app = Router::new()
            .route("/", routing::get(answer).post(answer))
            .nest("/_sim", control::routes())
            .with_state(self.clone())
            .into_make_service_with_connect_info::<Breaker>();
        let ticker = tokio::spawn(tick(self.clone(), stop.clone()));
        let answering =
            axum::serve(Listener(listener), app).with_graceful_shutdown(stop.clone().cancelled_owned());
        let result = tokio::select! {
            served = answering => served,
            () = async { stop.cancelled().await; tokio::time::sleep(GRACE).await } => Ok(()),
        };
        self.keep();
        ticker.abort();
        result
    }
}

/// How long calls that are being answered may take when the simulator is told to stop.
const GRACE: Duration = Duration::from_millis(500);

async fn tick(simulator: Simulator, stop: CancellationToken) {
    let mut interval = tokio::time::interval(TICK);
    while !stop.is_cancelled() {
        interval.tick().await;
        simulator.tick();
    }
}

async fn answer(
    State(simulator): State<Simulator>,
    ConnectInfo(breaker): ConnectInfo<Breaker>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut params = parse(query.unwrap_or_default().as_bytes());
    params.extend(parse(&body));
    let Some(caller) = caller(&headers, &params) else {
        let refusal =
            Refusal::new("AuthFailure", "AWS was not able to validate the provided access credentials");
        return whole(answer::refusal(&refusal), refusal.status());
    };
    params.retain(|(name, _)| !name.starts_with("X-Amz-") && name != "AWSAccessKeyId");
    let Some(Answer { result, delivery, at }) = simulator.perform(&caller, &params) else {
        return breaker.reset();
    };
    let action = params.iter().find(|(name, _)| name == "Action").map_or("", |(_, value)| value.as_str());
    let (body, status) = match &result {
        Ok(response) => match answer::response(action, response, &simulator.account()) {
            Ok(body) => (body, 200),
            Err(error) => (answer::refusal(&Refusal::new("InternalError", error.to_string())), 500),
        },
        Err(refusal) => (answer::refusal(refusal), refusal.status()),
    };
    match delivery {
        Delivery::Whole => whole(body, status),
        Delivery::Lost => breaker.reset(),
        Delivery::Truncated => whole(body[..body.len() / 2].to_vec(), status),
        Delivery::After(time) => {
            wait(&simulator, at + time).await;
            whole(body, status)
        }
    }
}

/// Waits for virtual time to come to `until`: by the wall clock, or until somebody has stepped it so far.
async fn wait(simulator: &Simulator, until: Timestamp) {
    loop {
        let left = until.duration_since(simulator.now());
        let Ok(left) = Duration::try_from(left) else {
            return;
        };
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(simulator.in_wall_time(left).unwrap_or(TICK)).await;
    }
}

fn whole(body: Vec<u8>, status: u16) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(header::CONTENT_TYPE, "text/xml;charset=UTF-8")], body).into_response()
}

fn parse(form: &[u8]) -> Vec<(String, String)> {
    form_urlencoded::parse(form).into_owned().collect()
}

/// The access key id that the request is signed with, in the header or (a presigned request) among the
/// parameters. Signatures are not checked: there is no secret to check them with.
fn caller(headers: &HeaderMap, params: &[(String, String)]) -> Option<String> {
    let header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let in_header = header.and_then(|value| value.split_once("Credential=")).map(|(_, rest)| rest);
    let in_params =
        || params.iter().find(|(name, _)| name == "X-Amz-Credential").map(|(_, value)| value.as_str());
    let scope = in_header.or_else(in_params)?;
    scope.split('/').next().filter(|key| !key.is_empty()).map(str::to_owned)
}

//! A proxy on the loopback before the API server or EC2: plain HTTP towards the operator; what passes through
//! goes by its tap.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING};
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use ec2sim::Simulator;
use futures::StreamExt as _;
use kube::{Client, Config};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::tap::{Object, Point, Seen, Tap};

/// The largest body that passes: no object is larger in etcd.
const LARGEST: usize = 4 << 20;

/// The Leases of operators.
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";

/// A proxy; dropped, it ends.
pub struct Proxy {
    /// Its URL.
    pub url: String,
    _stop: DropGuard,
}

#[derive(Clone)]
struct Way {
    tap: Arc<Tap>,
    upstream: Client,
    simulator: Simulator,
    /// Requests to EC2 do not belong into the log of requests to the API server: EC2 has its own.
    recorded: bool,
    last: Arc<AtomicU64>,
}

impl Proxy {
    /// Before the API server: `upstream` decides as whom.
    pub async fn before_kubernetes(tap: Arc<Tap>, upstream: Client, simulator: Simulator) -> Self {
        Self::start(Way { tap, upstream, simulator, recorded: true, last: Arc::default() }).await
    }

    /// Before a simulated EC2.
    pub async fn before_ec2(tap: Arc<Tap>, endpoint: &str, simulator: Simulator) -> Self {
        let upstream = Client::try_from(Config::new(endpoint.parse().unwrap())).unwrap();
        Self::start(Way { tap, upstream, simulator, recorded: false, last: Arc::default() }).await
    }

    async fn start(way: Way) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let app = Router::new().fallback(pass).with_state(way);
        let stopped = stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = axum::serve(listener, app) => {}
                () = stopped.cancelled() => {}
            }
        });
        Self { url, _stop: stop.drop_guard() }
    }
}

fn away() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "away").into_response()
}

/// In a task of its own: what was on its way when the operator was killed is carried out and recorded all the
/// same.
async fn pass(State(way): State<Way>, request: Request) -> Response {
    tokio::spawn(let_through(way, request)).await.unwrap_or_else(|_| away())
}

/// Lets one request through, if nothing is against it.
async fn let_through(way: Way, request: Request) -> Response {
    let tap = &way.tap;
    let is_of_the_lease = request.uri().path().starts_with(LEASES);
    if tap.is_cut() {
        return away();
    }
    let (mut parts, body) = request.into_parts();
    if is_of_the_lease {
        return way.straight(parts, body).await;
    }
    let Ok(body) = to_bytes(body, LARGEST).await else { return away() };
    let asked = Asked::of(&parts, &body);
    if tap.is_frozen() {
        tap.thawed().await;
        return away();
    }
    let taken = tap.takes(&asked.method, &asked.path, &asked.body);
    if let Some((Point::Before, reached)) = taken {
        let _ = reached.send(());
        tap.thawed().await;
        return away();
    }
    for_upstream(&mut parts);
    let is_watch = asked.query.contains("watch=true");
    let Ok(answer) = way.upstream.send(http::Request::from_parts(parts, body.into())).await else {
        return away();
    };
    let (mut head, answer) = answer.into_parts();
    head.headers.remove(TRANSFER_ENCODING);
    if is_watch {
        way.record(Asked { body: String::new(), ..asked }, None, head.status);
        let tap = Arc::clone(&way.tap);
        let ended = Box::pin(async move { tap.is_cut_off().await });
        return Response::from_parts(
            head,
            Body::from_stream(Body::new(answer).into_data_stream().take_until(ended)),
        );
    }
    let Ok(answer) = to_bytes(Body::new(answer), LARGEST * 16).await else { return away() };
    let object = if asked.method == "GET" { None } else { object(&answer) };
    way.record(asked, object, head.status);
    answered(tap, taken, Response::from_parts(head, Body::from(answer))).await
}

/// The connection upstream is another one.
fn for_upstream(parts: &mut Parts) {
    for header in [HOST, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
        parts.headers.remove(header);
    }
    parts.version = axum::http::Version::default();
}

/// What the operator gets of an answer: it may be lost, or held as all are when the tap is frozen.
async fn answered(tap: &Tap, taken: Option<(Point, oneshot::Sender<()>)>, answer: Response) -> Response {
    match taken {
        Some((Point::AnswerLost, reached)) => {
            let _ = reached.send(());
            tap.thawed().await;
            away()
        }
        Some((Point::After, reached)) => {
            let _ = reached.send(());
            answer
        }
        Some((Point::Before, _)) | None => {
            // What was on its way when another request was stopped is carried out, and its answer is held,
            // too.
            if tap.is_frozen() {
                tap.thawed().await;
                return away();
            }
            answer
        }
    }
}

/// A request, as it is recorded.
struct Asked {
    method: String,
    path: String,
    query: String,
    content_type: String,
    body: String,
}

impl Asked {
    fn of(parts: &Parts, body: &[u8]) -> Self {
        Self {
            method: parts.method.to_string(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            content_type: parts
                .headers
                .get(CONTENT_TYPE)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
                .to_owned(),
            body: String::from_utf8_lossy(body).into_owned(),
        }
    }
}

/// The object in an answer of the API server's; none where it only says what became of a request.
fn object(answer: &[u8]) -> Option<Object> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let group = answer["apiVersion"].as_str()?.split_once('/').map_or("", |(group, _)| group).to_owned();
    let kind = text(&answer["kind"]).filter(|kind| kind != "Status")?;
    Some(Object {
        group,
        kind,
        name: text(&answer["metadata"]["name"])?,
        uid: text(&answer["metadata"]["uid"])?,
    })
}

impl Way {
    /// Lets a request through that no test stops and none counts.
    async fn straight(&self, mut parts: Parts, body: Body) -> Response {
        let Ok(body) = to_bytes(body, LARGEST).await else { return away() };
        for_upstream(&mut parts);
        match self.upstream.send(http::Request::from_parts(parts, body.into())).await {
            Ok(answer) => answer.map(Body::new),
            Err(_) => away(),
        }
    }

    fn record(&self, asked: Asked, object: Option<Object>, status: StatusCode) {
        if self.recorded {
            let new = self.simulator.journal_since(self.last.load(Ordering::Relaxed));
            let journal = new.last().map_or(0, |entry| entry.seq);
            let journal = self.last.fetch_max(journal, Ordering::Relaxed).max(journal);
            let Asked { method, path, query, content_type, body } = asked;
            self.tap.record(Seen {
                method,
                path,
                query,
                content_type,
                body,
                object,
                journal,
                status: status.as_u16(),
            });
        }
    }
}

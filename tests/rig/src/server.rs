//! The server: takes requests, lets a driver interfere, and answers.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body as RequestBody;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch::Receiver;

use super::answer::Refusal;
use super::clock::Clock;
use super::fault::{Decide, Fault};
use super::handle::{self, Answer};
use super::journal::{Change, Write};
use super::kind;
use super::request::{Call, Verb};
use super::signal::Signals;
use super::state::State;
use super::store::Key;
use super::watch::Body;

/// The namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// A Kubernetes API server in memory. Copies are the same server.
#[derive(Clone)]
pub struct Server {
    state: Arc<Mutex<State>>,
    signals: Arc<Signals>,
    decide: Arc<Mutex<Option<Decide>>>,
    clock: Clock,
    /// Held while a request is carried out, so that what it wrote is told from what others write.
    turn: Arc<Mutex<()>>,
}

impl Debug for Server {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Server").field("signals", &self.signals).finish_non_exhaustive()
    }
}

impl Server {
    /// A server with the built-in kinds and the namespaces that every cluster has.
    pub fn new(clock: Clock) -> Self {
        let state = Arc::new(Mutex::new(State::new(kind::built_in())));
        let server =
            Self { state, signals: Arc::default(), decide: Arc::default(), clock, turn: Arc::default() };
        for name in NAMESPACES {
            let made = handle::namespace(&mut server.state.lock(), name, &server.clock.stamp());
            debug_assert!(made.is_ok(), "the namespaces of every cluster are well formed");
        }
        server
    }

    /// Serves the kinds of a resource definition, and the definition itself.
    pub fn define(&self, definition: &Value) {
        let mut state = self.state.lock();
        let made = handle::definition(&mut state, definition, &self.clock.stamp());
        debug_assert!(made.is_ok(), "the definition is well formed, and new: {made:?}");
        let kinds = kind::of_definition(definition);
        state.kinds.retain(|old| !kinds.iter().any(|new| new.resource() == old.resource()));
        state.kinds.extend(kinds.into_iter().map(Arc::new));
    }

    /// A client whose requests are known by this name. To be called inside a tokio runtime.
    pub fn client(&self, caller: &str) -> Client {
        let (server, caller) = (self.clone(), caller.to_owned());
        let service = tower::service_fn(move |request: Request<RequestBody>| {
            let (server, caller) = (server.clone(), caller.clone());
            async move { server.serve(&caller, request).await }
        });
        Client::new(service, "default")
    }

    /// Lets this decide about every request from now on; none lets every request pass.
    pub fn decide(&self, decide: Option<Decide>) {
        *self.decide.lock() = decide;
    }

    /// The requests that may have written, in the order in which they were carried out.
    pub fn journal(&self) -> Vec<Write> {
        self.state.lock().journal.clone()
    }

    /// How many there are.
    pub fn journal_length(&self) -> usize {
        self.state.lock().journal.len()
    }

    /// Those after the first so many.
    pub fn journal_after(&self, first: usize) -> Vec<Write> {
        self.state.lock().journal.get(first..).unwrap_or_default().to_vec()
    }

    /// The resourceVersion of the last write.
    pub fn revision(&self) -> u64 {
        self.state.lock().store.revision()
    }

    /// How many requests were carried out so far, of each client, verb and `plural.group` (`plural` for the
    /// core).
    pub fn requests(&self) -> BTreeMap<(String, Verb, String), usize> {
        self.state.lock().requests.clone()
    }

    /// Every change of an object by a request, in order: what clients no longer know, too.
    pub fn changes(&self) -> Vec<Change> {
        let state = self.state.lock();
        let mut writes = state.journal.iter().peekable();
        let mut changes = Vec::new();
        for event in state.store.log() {
            while writes.next_if(|write| write.after < event.revision).is_some() {}
            let Some(write) = writes.peek().filter(|write| write.before < event.revision) else { continue };
            changes.push(Change {
                at: write.at,
                caller: write.caller.clone(),
                resource: event.key.0.clone(),
                old: event.old.clone(),
                new: event.new.clone(),
            });
        }
        changes
    }

    /// The object as it is, past faults and without a request: for a judge, not for a player.
    pub fn object(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let key: Key = (resource.to_owned(), namespace.to_owned(), name.to_owned());
        self.state.lock().store.get(&key).map(|it| it.as_ref().clone())
    }

    /// The objects of a kind in all namespaces as they are, past faults and without a request.
    pub fn objects(&self, resource: &str) -> Vec<Arc<Value>> {
        self.state.lock().store.list(resource, "").into_iter().map(|(_, object)| object).collect()
    }

    /// Every object as it is, with its `group/plural`.
    pub(crate) fn everything(&self) -> Vec<(Key, Arc<Value>)> {
        self.state.lock().store.all()
    }

    /// Tells of each write but those of heartbeats.
    pub(crate) fn signal(&self) -> Receiver<u64> {
        self.signals.of_players()
    }

    /// The time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The path of a kind's objects; none for a kind that is not served.
    pub(crate) fn path(&self, resource: &str, namespace: &str) -> Option<String> {
        let state = self.state.lock();
        let kind = state.kinds.iter().find(|kind| kind.resource() == resource)?;
        let group = if kind.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", kind.group) };
        let place = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
        Some(format!("{group}/{}{place}/{}", kind.version, kind.plural))
    }

    /// Forgets the history: watches and pages that begin before end with 410 (Expired).
    pub fn compact(&self) {
        let mut state = self.state.lock();
        state.store.compact();
        self.signals.forget(state.store.revision());
    }

    /// Cuts every watch off, as a restart of the API server does.
    pub fn drop_watches(&self) {
        self.signals.cut_off();
    }

    /// Makes the watches of a kind silent (`plural` or `plural.group`), or ends the silence. What was missed
    /// is sent afterwards, or is gone with a watch that was cut off meanwhile.
    pub fn silence(&self, resource: &str, is_silent: bool) {
        self.signals.silence(resource, is_silent);
    }

    async fn serve(&self, caller: &str, request: Request<RequestBody>) -> Result<Response<Body>, io::Error> {
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await.map_err(io::Error::other)?;
        let call = match Call::read(caller, &parts, body) {
            Ok(call) => call,
            Err(refusal) => return Ok(refused(&refusal)),
        };
        let fault = self.decide.lock().as_mut().and_then(|decide| decide(&call));
        match &fault {
            Some(Fault::Refuse { code: 409, .. }) => {
                let message = "the object has been modified; please apply your changes to the latest version and \
                    try again";
                return Ok(refused(&Refusal::plain(409, "Conflict", message)));
            }
            Some(Fault::Refuse { code: 410, .. }) => {
                return Ok(refused(&Refusal::expired("The resourceVersion is too old")));
            }
            Some(Fault::Refuse { code, retry_after }) => {
                return Ok(refused(&Refusal::unavailable(*code, *retry_after)));
            }
            Some(Fault::LoseRequest) => return Err(broken()),
            Some(Fault::DelayRequest(time)) => tokio::time::sleep(*time).await,
            Some(Fault::LoseAnswer | Fault::DelayAnswer(_) | Fault::ArriveLate(_)) | None => {}
        }
        let answer = match fault {
            Some(Fault::ArriveLate(time)) => self.arrive_late(call, time).await?,
            _ => self.carry_out(&call),
        };
        let response = match answer {
            Ok(Answer::Object(code, object)) => response(code, self.text(&object)),
            Ok(Answer::List(list)) => response(200, list.into()),
            Ok(Answer::Watch(body)) => json_response(200).body(body).unwrap_or_default(),
            Err(refusal) => refused(&refusal),
        };
        match fault {
            Some(Fault::LoseAnswer) => return Err(broken()),
            Some(Fault::DelayAnswer(time)) => tokio::time::sleep(time).await,
            Some(
                Fault::Refuse { .. } | Fault::LoseRequest | Fault::DelayRequest(_) | Fault::ArriveLate(_),
            )
            | None => {}
        }
        Ok(response)
    }

    /// A document as it is sent; a text is no document.
    fn text(&self, object: &Arc<Value>) -> Bytes {
        match object.as_str() {
            Some(text) => text.to_owned().into(),
            None => self.state.lock().texts.of(object),
        }
    }

    /// Carries it out after this time, also if the client has gone.
    async fn arrive_late(&self, call: Call, time: Duration) -> Result<Result<Answer, Refusal>, io::Error> {
        let server = self.clone();
        let arriving = tokio::spawn(async move {
            tokio::time::sleep(time).await;
            server.carry_out(&call)
        });
        arriving.await.map_err(io::Error::other)
    }

    /// Carries a request out at once: nothing else happens meanwhile.
    pub(crate) fn carry_out(&self, call: &Call) -> Result<Answer, Refusal> {
        let _turn = self.turn.lock();
        let before = self.state.lock().store.revision();
        let answer = handle::handle(&self.state, &self.signals, call, &self.clock);
        let mut state = self.state.lock();
        let after = state.store.revision();
        *state.requests.entry((call.caller.clone(), call.verb, call.resource())).or_default() += 1;
        if call.verb.writes() {
            let write = written(call, &answer, (before, after), &self.clock);
            state.journal.push(write);
        }
        for event in state.store.after(before) {
            self.signals.written(&event.key.0, event.revision);
        }
        answer
    }
}

fn written(call: &Call, answer: &Result<Answer, Refusal>, versions: (u64, u64), clock: &Clock) -> Write {
    let (code, name) = match answer {
        Ok(Answer::Object(code, object)) => (*code, object["metadata"]["name"].as_str().unwrap_or_default()),
        Ok(Answer::List(_) | Answer::Watch(_)) => (200, ""),
        Err(refusal) => (refusal.code, ""),
    };
    Write {
        at: clock.now(),
        caller: call.caller.clone(),
        verb: call.verb,
        resource: call.resource(),
        namespace: call.namespace.clone(),
        name: if call.name.is_empty() { name.to_owned() } else { call.name.clone() },
        subresource: call.subresource.clone(),
        content_type: call.content_type.clone(),
        manager: call.manager.clone(),
        body: serde_json::from_slice(&call.body).unwrap_or(Value::Null),
        code,
        before: versions.0,
        after: versions.1,
    }
}

/// What a client sees of a connection that was cut.
fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the connection was reset")
}

fn json_response(code: u16) -> http::response::Builder {
    Response::builder().status(code).header(header::CONTENT_TYPE, "application/json")
}

fn response(code: u16, text: Bytes) -> Response<Body> {
    let body = Full::new(text).map_err(|never: Infallible| match never {});
    json_response(code).body(body.boxed_unsync()).unwrap_or_default()
}

fn refused(refusal: &Refusal) -> Response<Body> {
    let status = &refusal.status;
    let text = status.as_str().map_or_else(|| status.to_string(), str::to_owned);
    let mut response = response(refusal.code, text.into());
    if let Some(seconds) = refusal.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

//! Watches: the writes after a resourceVersion, one JSON document a line, until the time is up.

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use http_body_util::BodyExt;
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch::{Receiver, Sender};
use tokio::time::Instant;

use super::answer::Refusal;
use super::kind::Kind;
use super::read::{selector, shown};
use super::request::Call;
use super::selector::Selector;
use super::state::State;
use super::store::Event;

/// The body of an answer.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// How long a watch lasts that does not say it; a real API server takes 30 to 60 minutes.
const LONGEST: Duration = Duration::from_secs(1800);

/// What wakes the watches.
#[derive(Clone, Debug, Default)]
pub struct Signal {
    /// The last write's resourceVersion.
    pub revision: u64,
    /// Watches of an older epoch have been cut off.
    pub epoch: u64,
    /// The kinds whose watches are silent.
    pub silent: BTreeSet<String>,
}

/// One watch.
struct Watch {
    state: Arc<Mutex<State>>,
    signal: Receiver<Signal>,
    kind: Arc<Kind>,
    namespace: String,
    selector: Selector,
    metadata_only: bool,
    has_bookmarks: bool,
    /// What was sent up to here.
    cursor: u64,
    epoch: u64,
    deadline: Instant,
    lines: VecDeque<Bytes>,
    is_over: bool,
}

/// The body of a watch: first what there is already, if the request wants that.
pub fn body(
    state: &Arc<Mutex<State>>,
    signal: &Sender<Signal>,
    kind: Arc<Kind>,
    call: &Call,
) -> Result<Body, Refusal> {
    let seconds = call.parameter("timeoutSeconds").parse().ok().map_or(LONGEST, Duration::from_secs);
    let mut watch = Watch {
        state: Arc::clone(state),
        signal: signal.subscribe(),
        selector: selector(&kind, call)?,
        kind,
        namespace: call.namespace.clone(),
        metadata_only: call.metadata_only,
        has_bookmarks: call.parameter("allowWatchBookmarks") == "true",
        cursor: 0,
        epoch: signal.borrow().epoch,
        deadline: Instant::now() + seconds,
        lines: VecDeque::new(),
        is_over: false,
    };
    let version = call.parameter("resourceVersion");
    let wants_all = call.parameter("sendInitialEvents") == "true";
    match version.parse::<u64>() {
        Ok(version) if version > 0 && !wants_all => watch.cursor = version,
        Ok(_) => watch.begin(wants_all),
        Err(_) if version.is_empty() => watch.begin(wants_all),
        Err(_) => return Err(Refusal::bad(&format!("invalid resource version: {version}"))),
    }
    Ok(StreamBody::new(watch.stream()).boxed_unsync())
}

impl Watch {
    /// Announces what there is, and, if it was asked for, that this is all.
    fn begin(&mut self, says_end: bool) {
        let state = Arc::clone(&self.state);
        let state = state.lock();
        self.cursor = state.store.revision();
        for (_, object) in state.store.list(&self.kind.resource(), &self.namespace) {
            if self.selector.selects(&object) {
                self.line("ADDED", &shown(&object, self.metadata_only));
            }
        }
        if says_end && self.has_bookmarks {
            self.bookmark(&json!({"k8s.io/initial-events-end": "true"}));
        }
    }

    fn line(&mut self, what: &str, object: &Value) {
        let line = format!("{}\n", json!({"type": what, "object": object}));
        self.lines.push_back(Bytes::from(line));
    }

    fn bookmark(&mut self, annotations: &Value) {
        let mut object = json!({"kind": self.kind.kind, "apiVersion": self.kind.api_version(),
            "metadata": {"resourceVersion": self.cursor.to_string()}});
        if !annotations.is_null() {
            object["metadata"]["annotations"] = annotations.clone();
        }
        self.line("BOOKMARK", &shown(&object, self.metadata_only));
    }

    fn stream(self) -> impl Stream<Item = Result<http_body::Frame<Bytes>, Infallible>> {
        futures::stream::unfold(self, async |mut watch| {
            let line = watch.next().await?;
            Some((Ok(http_body::Frame::data(line)), watch))
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Some(line);
            }
            if self.is_over {
                return None;
            }
            let signal = self.signal.borrow_and_update().clone();
            if signal.epoch != self.epoch {
                return None;
            }
            if !signal.silent.contains(&self.kind.resource()) {
                self.gather();
            }
            if !self.lines.is_empty() || self.is_over {
                continue;
            }
            let changed = tokio::time::timeout_at(self.deadline, self.signal.changed()).await;
            if !matches!(changed, Ok(Ok(()))) {
                self.is_over = true;
                if self.has_bookmarks && !signal.silent.contains(&self.kind.resource()) {
                    self.bookmark(&Value::Null);
                }
            }
        }
    }

    /// Turns the writes since the last look into lines.
    fn gather(&mut self) {
        let state = Arc::clone(&self.state);
        let state = state.lock();
        let Some(events) = state.store.since(self.cursor) else {
            let last = state.store.revision();
            let message = format!("too old resource version: {} ({last})", self.cursor);
            self.line("ERROR", &Refusal::expired(&message).status);
            self.is_over = true;
            return;
        };
        let resource = self.kind.resource();
        let is_seen =
            |it: &&Event| it.key.0 == resource && (self.namespace.is_empty() || it.key.1 == self.namespace);
        let events: Vec<Event> = events.iter().filter(is_seen).cloned().collect();
        for event in events {
            self.event(&event);
        }
        self.cursor = self.cursor.max(state.store.revision());
    }

    /// An object that no longer is selected has gone, for this watch.
    fn event(&mut self, event: &Event) {
        let is_selected = |it: &&Arc<Value>| self.selector.selects(it);
        let (old, new) = (event.old.as_ref().filter(is_selected), event.new.as_ref().filter(is_selected));
        let (what, object) = match (old, new) {
            (None, None) => return,
            (None, Some(new)) => ("ADDED", new),
            (Some(_), Some(new)) => ("MODIFIED", new),
            (Some(old), None) => ("DELETED", old),
        };
        let mut object = shown(object, self.metadata_only);
        object["metadata"]["resourceVersion"] = json!(event.revision.to_string());
        self.line(what, &object);
    }
}

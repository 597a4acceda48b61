//! Watches: the writes after a resourceVersion, one JSON document a line, until the time is up.

use std::collections::VecDeque;
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
use tokio::sync::watch::Receiver;
use tokio::time::Instant;

use super::answer::Refusal;
use super::kind::Kind;
use super::read::{metadata_of, selector};
use super::request::Call;
use super::selector::Selector;
use super::signal::{Signal, Signals};
use super::state::State;
use super::store::Event;
use super::text::Texts;

/// The body of an answer.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// How long a watch lasts that does not say it; a real API server takes 30 to 60 minutes.
const LONGEST: Duration = Duration::from_secs(1800);

/// One watch.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
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
    /// Nothing was read yet: what the client named may be forgotten.
    is_new: bool,
    is_over: bool,
}

/// The body of a watch: first what there is already, if the request wants that.
pub fn body(
    state: &Arc<Mutex<State>>,
    signals: &Signals,
    kind: Arc<Kind>,
    call: &Call,
) -> Result<Body, Refusal> {
    let seconds = call.parameter("timeoutSeconds").parse().ok().map_or(LONGEST, Duration::from_secs);
    let signal = signals.of(&kind.resource());
    let epoch = signal.borrow().epoch;
    let mut watch = Watch {
        state: Arc::clone(state),
        signal,
        selector: selector(&kind, call)?,
        kind,
        namespace: call.namespace.clone(),
        metadata_only: call.metadata_only,
        has_bookmarks: call.parameter("allowWatchBookmarks") == "true",
        cursor: 0,
        epoch,
        deadline: Instant::now() + seconds,
        lines: VecDeque::new(),
        is_new: true,
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
        let mut state = state.lock();
        self.cursor = state.store.revision();
        for (_, object) in state.store.list(&self.kind.resource(), &self.namespace) {
            if self.selector.selects(&object) {
                self.line("ADDED", &object, &mut state.texts);
            }
        }
        if says_end && self.has_bookmarks {
            self.bookmark(&json!({"k8s.io/initial-events-end": "true"}));
        }
    }

    /// An event with an object as this watch shows it.
    fn line(&mut self, what: &str, object: &Arc<Value>, texts: &mut Texts) {
        if self.metadata_only {
            self.raw_line(what, metadata_of(object).to_string().as_bytes());
        } else {
            self.raw_line(what, &texts.of(object));
        }
    }

    fn raw_line(&mut self, what: &str, object: &[u8]) {
        let before = format!("{{\"type\":\"{what}\",\"object\":");
        self.lines.push_back([before.as_bytes(), object, b"}\n"].concat().into());
    }

    fn bookmark(&mut self, annotations: &Value) {
        let mut object = json!({"kind": self.kind.kind, "apiVersion": self.kind.api_version(),
            "metadata": {"resourceVersion": self.cursor.to_string()}});
        if !annotations.is_null() {
            object["metadata"]["annotations"] = annotations.clone();
        }
        if self.metadata_only {
            object = metadata_of(&object);
        }
        self.raw_line("BOOKMARK", object.to_string().as_bytes());
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
            let signal = *self.signal.borrow_and_update();
            if signal.epoch != self.epoch {
                return None;
            }
            if !signal.is_silent {
                self.gather(signal.forgotten);
            }
            if !self.lines.is_empty() || self.is_over {
                continue;
            }
            let changed = tokio::time::timeout_at(self.deadline, self.signal.changed()).await;
            if !matches!(changed, Ok(Ok(()))) {
                self.is_over = true;
                if self.has_bookmarks && !signal.is_silent && self.gather(signal.forgotten) {
                    self.bookmark(&Value::Null);
                }
            }
        }
    }

    /// Turns the writes since the last look into lines. A watch that listens has seen what is forgotten by
    /// now; one that was silent has not, and ends: false.
    fn gather(&mut self, forgotten: u64) -> bool {
        let state = Arc::clone(&self.state);
        let mut state = state.lock();
        let known = if std::mem::take(&mut self.is_new) {
            state.store.since(self.cursor)
        } else {
            (self.cursor >= forgotten).then(|| state.store.after(self.cursor))
        };
        let Some(events) = known else {
            let last = state.store.revision();
            let message = format!("too old resource version: {} ({last})", self.cursor);
            self.raw_line("ERROR", Refusal::expired(&message).status.to_string().as_bytes());
            self.is_over = true;
            return false;
        };
        let resource = self.kind.resource();
        let is_seen =
            |it: &&Event| it.key.0 == resource && (self.namespace.is_empty() || it.key.1 == self.namespace);
        let events: Vec<Event> = events.iter().filter(is_seen).cloned().collect();
        for event in events {
            self.event(&event, &mut state.texts);
        }
        self.cursor = self.cursor.max(state.store.revision());
        true
    }

    /// An object that no longer is selected has gone, for this watch.
    fn event(&mut self, event: &Event, texts: &mut Texts) {
        let is_selected = |it: &&Arc<Value>| self.selector.selects(it);
        let (old, new) = (event.old.as_ref().filter(is_selected), event.new.as_ref().filter(is_selected));
        let (what, object) = match (old, new) {
            (None, None) => return,
            (None, Some(new)) => ("ADDED", new),
            (Some(_), Some(new)) => ("MODIFIED", new),
            (Some(old), None) => {
                let mut last = old.as_ref().clone();
                last["metadata"]["resourceVersion"] = json!(event.revision.to_string());
                return self.line("DELETED", &Arc::new(last), texts);
            }
        };
        self.line(what, object, texts);
    }
}

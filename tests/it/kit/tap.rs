//! What a test sees of the operator's requests and does to them: counts, holds at one point, cuts off.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{oneshot, watch};

/// Where a request is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// It is never carried out.
    Before,
    /// It is carried out, and its answer never comes.
    AnswerLost,
    /// It is carried out and answered, and no other request follows.
    After,
}

/// Which request: the first one that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Which {
    /// The HTTP method; empty for any that changes anything but events.
    pub method: &'static str,
    /// In the path.
    pub path: &'static str,
    /// Each of them in the body.
    pub body: &'static [&'static str],
}

/// The instance that was launched is being written down: the middle of a creation.
pub const LAUNCHED: Which = Which { method: "PATCH", path: "/nodes/", body: &["\"instanceID\":\"i-"] };

/// Whatever changes anything.
pub const ANY_CHANGE: Which = Which { method: "", path: "", body: &[] };

impl Which {
    fn fits(&self, method: &str, path: &str, body: &str) -> bool {
        let is_of_method = if self.method.is_empty() {
            // EC2 is asked by POST; its reads and its dry runs change nothing.
            let changes_nothing = ["Action=Describe", "DryRun=true"].iter().any(|part| body.contains(part));
            method != "GET" && !path.contains("/events") && !changes_nothing
        } else {
            method == self.method
        };
        is_of_method && path.contains(self.path) && self.body.iter().all(|part| body.contains(part))
    }
}

/// The object that the API server answered a write with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its API group, empty for the core one.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

/// One request that was let through to the end or is on its way.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The HTTP method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The query, empty if there is none.
    pub query: String,
    /// The media type of what was sent, which says how a PATCH is meant.
    pub content_type: String,
    /// What was sent.
    pub body: String,
    /// What a write was answered with, if it is an object.
    pub object: Option<Object>,
    /// The number of the last entry in EC2's journal when the answer had come from the API server and the
    /// operator had not seen it.
    pub journal: u64,
    /// The answer's status.
    pub status: u16,
}

impl Seen {
    /// Whether it asked for a change.
    pub fn is_write(&self) -> bool {
        self.method != "GET"
    }
}

struct Armed {
    which: Which,
    /// How many that fit are let through first.
    let_through: usize,
    point: Point,
    reached: oneshot::Sender<()>,
}

#[derive(Default)]
struct Inner {
    seen: Vec<Seen>,
    armed: Option<Armed>,
}

/// Shared by the proxies before the API server and before EC2.
pub struct Tap {
    inner: Mutex<Inner>,
    frozen: watch::Sender<bool>,
    /// Not even the Lease gets through.
    cut: watch::Sender<bool>,
}

impl Default for Tap {
    fn default() -> Self {
        Self { inner: Mutex::default(), frozen: watch::Sender::new(false), cut: watch::Sender::new(false) }
    }
}

impl Tap {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the operator at this point of the first request that fits: from then on no request gets through
    /// until [`Self::thaw`]. The receiver hears of it.
    pub fn stop_at(&self, which: Which, point: Point) -> oneshot::Receiver<()> {
        self.stop_later(which, 0, point)
    }

    /// The same, once so many that fit were let through.
    pub fn stop_later(&self, which: Which, let_through: usize, point: Point) -> oneshot::Receiver<()> {
        let (reached, hears) = oneshot::channel();
        self.lock().armed = Some(Armed { which, let_through, point, reached });
        hears
    }

    /// Stops nobody any more, should the request never have come.
    pub fn disarm(&self) {
        self.lock().armed = None;
    }

    /// Lets requests through again; those that were held are never carried out.
    pub fn thaw(&self) {
        self.frozen.send_replace(false);
    }

    /// The network between the operator and all else is cut (or mended): nothing gets through, the renewals
    /// of its Lease neither, which pass by everything else that a test does to requests: an operator that
    /// loses its Lease ends, and here nothing starts another one.
    pub fn cut(&self, on: bool) {
        self.cut.send_replace(on);
    }

    /// Comes when the network is cut.
    pub async fn is_cut_off(&self) {
        let _ = self.cut.subscribe().wait_for(|on| *on).await;
    }

    /// Whether the network is cut at the moment.
    pub fn is_cut(&self) -> bool {
        *self.cut.borrow()
    }

    /// The requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.lock().seen.clone()
    }

    /// How many requests there were so far: a mark for [`Self::writes_since`].
    pub fn mark(&self) -> usize {
        self.lock().seen.len()
    }

    /// The changing requests since a mark.
    pub fn writes_since(&self, mark: usize) -> Vec<Seen> {
        self.lock().seen[mark..].iter().filter(|seen| seen.is_write()).cloned().collect()
    }

    pub(super) fn record(&self, seen: Seen) {
        self.lock().seen.push(seen);
    }

    pub(super) fn is_frozen(&self) -> bool {
        *self.frozen.borrow()
    }

    /// Comes when requests get through again.
    pub(super) async fn thawed(&self) {
        let _ = self.frozen.subscribe().wait_for(|frozen| !*frozen).await;
    }

    /// Whether this request is the one that is waited for. Once taken, nothing else is let through.
    pub(super) fn takes(&self, method: &str, path: &str, body: &str) -> Option<(Point, oneshot::Sender<()>)> {
        let mut inner = self.lock();
        let armed = inner.armed.as_mut().filter(|armed| armed.which.fits(method, path, body))?;
        if armed.let_through > 0 {
            armed.let_through -= 1;
            return None;
        }
        let Armed { point, reached, .. } = inner.armed.take()?;
        self.frozen.send_replace(true);
        Some((point, reached))
    }
}

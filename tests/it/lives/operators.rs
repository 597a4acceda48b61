//! The operators of a life: which of them run, and what keeps each from sending and from being answered.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What becomes of something that an operator sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// It passes.
    Free,
    /// It is never sent: its process has ended.
    Never,
    /// It is sent so much later, whatever becomes of the process meanwhile.
    Late(Duration),
    /// It does not reach the API server.
    CutOff,
}

/// One operator: its process, which may be started again and again, and the machine that it runs on.
#[derive(Default)]
struct Operator {
    starts: usize,
    has_ended: bool,
    stopped_until: Option<Instant>,
    cut_off_until: Option<Instant>,
    /// For how long it stays away once it has ended, if that is not drawn.
    away: Option<Duration>,
    /// It is to end.
    end: Arc<Notify>,
    /// It is asked to end.
    asked: CancellationToken,
}

/// All of them, by their numbers from 1.
#[derive(Default)]
pub struct Operators(Mutex<Vec<Operator>>);

/// The name of an operator's process in its Lease, which it keeps when it is started again.
pub fn identity(number: usize) -> String {
    format!("operator-{number}")
}

fn left(until: Option<Instant>) -> Option<Duration> {
    until?.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
}

impl Operators {
    fn with<T>(&self, number: usize, use_it: impl FnOnce(&mut Operator) -> T) -> T {
        let mut all = self.0.lock();
        if all.len() < number {
            all.resize_with(number, Operator::default);
        }
        use_it(&mut all[number - 1])
    }

    /// Starts it. The name by which its requests are known.
    pub fn start(&self, number: usize) -> String {
        self.with(number, |it| {
            it.starts += 1;
            it.has_ended = false;
            format!("{}-{}", identity(number), it.starts)
        })
    }

    /// The number of the operator whose requests have this name.
    pub fn number(name: &str) -> Option<usize> {
        name.strip_prefix("operator-")?.split_once('-')?.0.parse().ok()
    }

    /// What becomes of what is sent under this name.
    pub fn passing(&self, name: &str) -> Passing {
        let Some(number) = Self::number(name) else { return Passing::Free };
        self.with(number, |it| {
            let is_former = name != format!("{}-{}", identity(number), it.starts);
            match (left(it.stopped_until), left(it.cut_off_until)) {
                _ if it.has_ended || is_former => Passing::Never,
                (Some(left), _) => Passing::Late(left),
                (None, Some(_)) => Passing::CutOff,
                (None, None) => Passing::Free,
            }
        })
    }

    /// Its process ends at once for its requests, and altogether after this wait.
    pub fn end(&self, number: usize, wait: Duration, away: Option<Duration>) {
        let end = self.with(number, |it| {
            it.has_ended = true;
            it.away = away;
            Arc::clone(&it.end)
        });
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            end.notify_one();
        });
    }

    /// Cancelled once its process that begins now is asked to end.
    pub fn asking(&self, number: usize) -> CancellationToken {
        self.with(number, |it| {
            it.asked = CancellationToken::new();
            it.asked.clone()
        })
    }

    /// Its process is asked to end, and stays away for so long once it has.
    pub fn ask_to_end(&self, number: usize, away: Duration) {
        self.with(number, |it| {
            it.away = Some(away);
            it.asked.cancel();
        });
    }

    /// Its process is stopped for so long.
    pub fn stop(&self, number: usize, time: Duration) {
        self.with(number, |it| it.stopped_until = Some(Instant::now() + time));
    }

    /// It is cut off from the API server for so long.
    pub fn cut_off(&self, number: usize, time: Duration) {
        self.with(number, |it| it.cut_off_until = Some(Instant::now() + time));
    }

    /// From now on none is cut off.
    pub fn connect(&self) {
        for it in self.0.lock().iter_mut() {
            it.cut_off_until = None;
        }
    }

    /// Whether the process of one is stopped: what it has sent arrives when it goes on.
    pub fn is_any_stopped(&self) -> bool {
        self.0.lock().iter().any(|it| left(it.stopped_until).is_some())
    }

    /// Until it is to end.
    pub async fn ending(&self, number: usize) {
        let end = self.with(number, |it| Arc::clone(&it.end));
        end.notified().await;
    }

    /// How long it stays away now that it has ended, if that was planned; while its process is stopped,
    /// nothing starts it again.
    pub fn away(&self, number: usize) -> Option<Duration> {
        self.with(number, |it| it.away.take().or_else(|| left(it.stopped_until)))
    }

    /// Whether one has not ended, or is back.
    pub fn is_any_up(&self) -> bool {
        self.0.lock().iter().any(|it| it.starts > 0 && !it.has_ended)
    }

    /// Whether one has ended and is not back yet.
    pub fn has_any_ended(&self) -> bool {
        self.0.lock().iter().any(|it| it.has_ended)
    }
}

//! A client that writes numbered rows through everything that happens to a database, and knows which of them
//! must be found.

mod dialect;
mod gaps;
pub mod local_postgresql;
mod rows;
mod session;
mod source;
mod tally;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::base::error_chain::chain;

pub use dialect::Dialect;
pub use gaps::Gap;
pub use rows::Rows;
pub use session::Error;
pub use source::{Access, NoAccess, Source};
pub use tally::{Tally, Untrue};

use gaps::Gaps;
use session::Session;

/// From one row to the next: a hundred rows a second show an outage to a hundredth of a second and leave a
/// small machine alone.
pub const PACE: Duration = Duration::from_millis(10);

/// How long is waited after a failed connection.
const RETRY: Duration = Duration::from_millis(100);

/// How often is asked whether the engine has applied its write-ahead log.
const APPLIED_POLL: Duration = Duration::from_millis(50);

/// What is written, and where to.
#[derive(Clone)]
pub struct Target {
    /// How the engine is spoken to.
    pub dialect: Dialect,
    /// How it is found.
    pub source: Source,
    /// The table.
    pub table: &'static str,
}

/// What was written: what a later reading is held against.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The numbers sent, answered or not. None is ever sent again.
    pub sent: Rows,
    /// The numbers whose insert was answered with success.
    pub acknowledged: Rows,
}

/// What the writer observed since it was last asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The longest time between two acknowledgements; none before the table was made.
    pub outage: Option<Gap>,
    /// How many rows were sent since the start.
    pub sent: u64,
    /// How many rows were acknowledged since the start.
    pub acknowledged: u64,
}

/// Why a row is not acknowledged, or not all rows can be read, within the time that was given.
#[derive(Debug, thiserror::Error)]
#[error("the writer {waited_for} within {} s; {attempts} attempts failed", limit.as_secs())]
pub struct TooLong {
    waited_for: &'static str,
    limit: Duration,
    attempts: u64,
    #[source]
    last: Option<Arc<Error>>,
}

/// A writer at work; dropped, it ends.
pub struct Writer {
    target: Target,
    shared: Arc<Shared>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

struct Shared {
    state: Mutex<State>,
    /// How many rows are acknowledged.
    acknowledged: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    last_number: i64,
    written: Written,
    gaps: Option<Gaps>,
    first_answer: Option<Instant>,
    failures: u64,
    last_failure: Option<Arc<Error>>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Each change of it is whole before anything can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next number, noted as sent before it is.
    fn send(&self) -> i64 {
        let mut state = self.state();
        state.last_number += 1;
        let number = state.last_number;
        state.written.sent.insert(number);
        number
    }

    fn acknowledge(&self, number: i64) {
        let mut state = self.state();
        state.written.acknowledged.insert(number);
        if let Some(gaps) = &mut state.gaps {
            gaps.acknowledged(Instant::now());
        }
        drop(state);
        self.acknowledged.send_modify(|count| *count += 1);
    }

    fn fail(&self, error: Error) {
        let mut state = self.state();
        state.failures += 1;
        state.last_failure = Some(Arc::new(error));
    }
}

impl Writer {
    /// Starts writing a row each `pace`, as soon as the database can be found and connected to, on the
    /// current tokio runtime. It goes on through every failure until it is stopped.
    pub fn start(target: Target, pace: Duration) -> Self {
        let shared = Arc::new(Shared { state: Mutex::default(), acknowledged: watch::Sender::new(0) });
        let stop = CancellationToken::new();
        let task = tokio::spawn(write(target.clone(), pace, Arc::clone(&shared), stop.clone()));
        Self { target, shared, stop, task }
    }

    /// When the database answered the writer's first question.
    pub fn first_answer(&self) -> Option<Instant> {
        self.shared.state().first_answer
    }

    /// How many attempts to connect or to write a row have failed since the start.
    pub fn failures(&self) -> u64 {
        self.shared.state().failures
    }

    /// Why the last attempt that failed did, in words.
    pub fn last_failure(&self) -> Option<String> {
        self.shared.state().last_failure.as_ref().map(|error| chain(error.as_ref()))
    }

    /// What happened since this was last asked, or since the table was made.
    pub fn observed(&self) -> Observed {
        let mut state = self.shared.state();
        let outage = state.gaps.as_mut().map(|gaps| gaps.take(Instant::now()));
        Observed { outage, sent: state.written.sent.len(), acknowledged: state.written.acknowledged.len() }
    }

    /// What was written until now.
    pub fn written(&self) -> Written {
        self.shared.state().written.clone()
    }

    /// Waits until a row is acknowledged that was sent after this was called: the database takes rows.
    pub async fn is_served(&self, limit: Duration) -> Result<(), TooLong> {
        let failures = self.shared.state().failures;
        let mut acknowledged = self.shared.acknowledged.subscribe();
        // One row may be on its way already.
        let enough = *acknowledged.borrow() + 2;
        let waited = tokio::time::timeout(limit, acknowledged.wait_for(|count| *count >= enough)).await;
        if waited.is_ok_and(|seen| seen.is_ok()) {
            return Ok(());
        }
        let state = self.shared.state();
        let waited_for = "had no row acknowledged";
        Err(TooLong {
            waited_for,
            limit,
            attempts: state.failures - failures,
            last: state.last_failure.clone(),
        })
    }

    /// Reads all rows back while it goes on writing: what was acknowledged before must be found, and what is
    /// found must have been sent by the end. Failures are met with another attempt, until the limit.
    pub async fn verify(&self, limit: Duration) -> Result<Tally, TooLong> {
        let acknowledged = self.written().acknowledged;
        let (found, twice) = read_back(&self.target, limit).await?;
        Ok(Tally { sent: self.written().sent, acknowledged, found, twice })
    }

    /// Ends it: the statement on its way is waited for.
    pub async fn stop(mut self) -> Written {
        self.stop.cancel();
        let _ = (&mut self.task).await;
        self.written()
    }
}

impl Target {
    /// Makes another table with at least so many rows, so that the engine has something to find when it
    /// starts, and waits until a query sees them all.
    pub async fn fill(&self, table: &str, rows: u64, limit: Duration) -> Result<(), TooLong> {
        let fill = async || {
            let session = Session::open(&self.source).await?;
            for statement in self.dialect.fill(table, rows) {
                session.run_long(&statement, limit).await?;
            }
            while session.number(&self.dialect.count(table)).await? < rows.cast_signed() {
                tokio::time::sleep(APPLIED_POLL).await;
            }
            Ok(())
        };
        in_attempts("could not fill a table", limit, fill).await
    }

    /// How many rows another table has.
    pub async fn count(&self, table: &str, limit: Duration) -> Result<u64, TooLong> {
        let count = async || {
            let session = Session::open(&self.source).await?;
            Ok(session.number(&self.dialect.count(table)).await?.cast_unsigned())
        };
        in_attempts("could not count the rows of a table", limit, count).await
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Written {
    /// Reads all rows back, of a writer that has ended.
    pub async fn verify(&self, target: &Target, limit: Duration) -> Result<Tally, TooLong> {
        let (found, twice) = read_back(target, limit).await?;
        Ok(Tally { sent: self.sent.clone(), acknowledged: self.acknowledged.clone(), found, twice })
    }
}

/// Writes until it is stopped.
async fn write(target: Target, pace: Duration, shared: Arc<Shared>, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(pace);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut session: Option<Session> = None;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let open = match session.take().filter(Session::is_open) {
            Some(open) => open,
            None => match connect(&target, &shared).await {
                Ok(open) => open,
                Err(error) => {
                    shared.fail(error);
                    tokio::time::sleep(RETRY).await;
                    continue;
                }
            },
        };
        let number = shared.send();
        match open.run(&target.dialect.insert(target.table, number)).await {
            Ok(()) => {
                shared.acknowledge(number);
                session = Some(open);
            }
            // The session is given up with the statement: a late answer to it must not be taken for another
            // one's.
            Err(error) => {
                shared.fail(error);
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Connects, and makes the table the first time: a table that is gone later must be missed.
async fn connect(target: &Target, shared: &Shared) -> Result<Session, Error> {
    let session = Session::open(&target.source).await?;
    let is_first = shared.state().gaps.is_none();
    if is_first {
        session.run("SELECT 1").await?;
        shared.state().first_answer.get_or_insert_with(Instant::now);
        session.run(&target.dialect.create(target.table)).await?;
        shared.state().gaps = Some(Gaps::since(Instant::now()));
    }
    Ok(session)
}

/// Reads all row numbers, in as many attempts as the limit allows.
async fn read_back(target: &Target, limit: Duration) -> Result<(Rows, Rows), TooLong> {
    let started = Instant::now();
    let read = async || read_once(target, limit.saturating_sub(started.elapsed())).await;
    in_attempts("could not read all rows back", limit, read).await
}

/// Does something again and again until it succeeds, or the limit is over.
async fn in_attempts<T>(
    waited_for: &'static str,
    limit: Duration,
    work: impl AsyncFn() -> Result<T, Error>,
) -> Result<T, TooLong> {
    let mut attempts = 0;
    let mut last = None;
    let done = async {
        loop {
            match work().await {
                Ok(done) => return done,
                Err(error) => last = Some(Arc::new(error)),
            }
            attempts += 1;
            tokio::time::sleep(RETRY).await;
        }
    };
    match tokio::time::timeout(limit, done).await {
        Ok(done) => Ok(done),
        Err(_) => Err(TooLong { waited_for, limit, attempts, last }),
    }
}

async fn read_once(target: &Target, limit: Duration) -> Result<(Rows, Rows), Error> {
    let session = Session::open(&target.source).await?;
    if let Some(statement) = target.dialect.applied(target.table) {
        await_applied(&session, &statement, target.table, limit).await?;
    }
    session.numbers(&target.dialect.select(target.table)).await
}

/// Waits until a query sees what is acknowledged now.
async fn await_applied(
    session: &Session,
    statement: &str,
    table: &str,
    limit: Duration,
) -> Result<(), Error> {
    let started = Instant::now();
    let accepted = session.applied(statement, table).await?.accepted;
    loop {
        let applied = session.applied(statement, table).await?.applied;
        if applied >= accepted {
            return Ok(());
        }
        // Before the caller's limit, so that its error can say this one.
        if started.elapsed() + APPLIED_POLL * 4 > limit {
            return Err(Error::NotApplied { applied, accepted });
        }
        tokio::time::sleep(APPLIED_POLL).await;
    }
}

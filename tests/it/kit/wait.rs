//! Waits for facts, each with a bound, and runs tables of cases side by side.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _, stream};
use tokio::time::{Instant, sleep};

/// No single fact takes longer, even on a machine that compiles meanwhile, or whose host gives its processors
/// to others for minutes: it only ends what hangs.
pub const LIMIT: Duration = Duration::from_mins(20);

/// How often a fact is looked at in the beginning; later as often as the wait is long, divided by [`LOOKS`].
const POLL: Duration = Duration::from_millis(100);

/// In virtual time a wait can last for hours, and each look costs a request.
const LOOKS: u32 = 50;

/// Waits for a fact; fails with what was seen last when it does not come.
pub async fn until<T, F>(what: &str, fact: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, String>>,
{
    within(LIMIT, what, fact).await
}

/// The same with another bound.
pub async fn within<T, F>(limit: Duration, what: &str, mut fact: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, String>>,
{
    let started = Instant::now();
    loop {
        let seen = match fact().await {
            Ok(value) => return value,
            Err(seen) => seen,
        };
        assert!(started.elapsed() < limit, "{what}: not within {} s; seen last: {seen}", limit.as_secs());
        sleep(POLL.max(started.elapsed() / LOOKS)).await;
    }
}

/// The fact holds, or what is seen instead.
pub fn seen<T>(fact: Option<T>, instead: impl FnOnce() -> String) -> Result<T, String> {
    fact.ok_or_else(instead)
}

/// Runs all cases at once, each as soon as its test environment has a permit, and fails with the names of
/// those that failed.
pub async fn each<C, F>(cases: Vec<(String, C)>, test: impl Fn(String, C) -> F)
where
    F: Future<Output = ()>,
{
    let failed = Mutex::new(Vec::new());
    let run = async |(name, case): (String, C)| {
        // A failed case must not hide what becomes of the others.
        if AssertUnwindSafe(test(name.clone(), case)).catch_unwind().await.is_err() {
            failed.lock().unwrap().push(name);
        }
    };
    stream::iter(cases).for_each_concurrent(None, run).await;
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "cases that failed, each with its own message above: {failed:?}");
}

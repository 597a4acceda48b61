//! Waits for facts, each with a bound, and runs tables of cases side by side.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// No single fact takes longer, even on a machine that compiles meanwhile.
pub const LIMIT: Duration = Duration::from_secs(120);

/// How often a fact is looked at.
const POLL: Duration = Duration::from_millis(100);

/// How many cases of a table run at once: each has an operator and an EC2 of its own.
const SIDE_BY_SIDE: usize = 3;

/// Waits for a fact; fails with what was seen last when it does not come.
pub async fn until<T, F>(what: &str, mut fact: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, String>>,
{
    let started = Instant::now();
    loop {
        let seen = match fact().await {
            Ok(value) => return value,
            Err(seen) => seen,
        };
        assert!(started.elapsed() < LIMIT, "{what}: not within {} s; seen last: {seen}", LIMIT.as_secs());
        tokio::time::sleep(POLL).await;
    }
}

/// The fact holds, or what is seen instead.
pub fn seen<T>(fact: Option<T>, instead: impl FnOnce() -> String) -> Result<T, String> {
    fact.ok_or_else(instead)
}

/// Runs every case, a few side by side, and fails with the names of those that failed.
pub async fn each<C, F>(cases: Vec<(String, C)>, test: impl Fn(String, C) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let turns = Arc::new(Semaphore::new(SIDE_BY_SIDE));
    let mut running = JoinSet::new();
    let mut names = std::collections::HashMap::new();
    for (name, case) in cases {
        let (turns, case) = (Arc::clone(&turns), test(name.clone(), case));
        let handle = running.spawn(async move {
            let _turn = turns.acquire_owned().await.unwrap();
            case.await;
        });
        names.insert(handle.id(), name);
    }
    let mut failed = Vec::new();
    while let Some(ended) = running.join_next_with_id().await {
        if let Err(error) = ended {
            failed.push(names[&error.id()].clone());
        }
    }
    assert!(failed.is_empty(), "cases that failed, each with its own message above: {failed:?}");
}

//! Whole lives of databases in one process and in virtual time: the operator as it is shipped, on the API
//! server in memory and EC2's model, with everyone who acts beside it; one seed decides all that may differ.

mod chaos;
mod house;
mod life;
mod person;
mod rules;
mod story;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;
use strum::IntoEnumIterator as _;

use chaos::{Kill, Lies};
use house::Failure;

/// How many seeds each test run tries.
const SEEDS: u64 = 20;

#[test]
fn a_database_lives_in_a_world_as_one_would_wish_it() {
    judge(lives(0..4, |_| Lies::none()));
}

/// `FREEHOLD_SEEDS=7..8` lives one life again, with its story.
#[test]
fn a_database_lives_whatever_lies() {
    let named = std::env::var("FREEHOLD_SEEDS").ok();
    let range = named.as_deref().and_then(|text| text.split_once(".."));
    let range = range.and_then(|(first, end)| Some(first.parse().ok()?..end.parse().ok()?));
    judge(lives(range.unwrap_or(0..SEEDS), Lies::of));
}

/// Which of the kills `cargo test` tries: each effect with one of the four.
const EVERY: usize = 4;

#[test]
fn an_operator_that_is_killed_at_any_write_goes_on_as_if_nothing_had_been() {
    let writes = Arc::new(Mutex::new(0));
    let count = Arc::clone(&writes);
    let lived = house::run(|| async move { *count.lock() = life::reference(None).await });
    assert!(lived.is_ok(), "without a kill: {}", lived.unwrap_err().why);
    let writes = *writes.lock();
    assert!(writes > 60, "{writes} writes are no whole life");
    let kills: Vec<Kill> = Kill::iter().collect();
    let all = (0..writes * kills.len()).filter(|number| is_chosen(*number, kills.len()));
    let cases: Vec<(u64, (usize, Kill))> =
        all.map(|number| (number as u64, (number / kills.len() + 1, kills[number % kills.len()]))).collect();
    judge(each(&cases, |kill| async move {
        life::reference(Some(kill)).await;
    }));
}

/// All four kills at an effect with `FREEHOLD_SEEDS` set, else one, in turn.
fn is_chosen(number: usize, kills: usize) -> bool {
    std::env::var("FREEHOLD_SEEDS").is_ok() || (number / kills + number).is_multiple_of(EVERY)
}

/// Lives the life of each seed. Those that failed.
fn lives(seeds: Range<u64>, lies: fn(u64) -> Lies) -> Vec<(u64, Failure)> {
    let seeds: Vec<(u64, u64)> = seeds.map(|seed| (seed, seed)).collect();
    each(&seeds, move |seed| life::live(seed, lies(seed)))
}

/// Lives a life for each case, on every processor. Those that failed, by the numbers of the cases.
fn each<C, F>(cases: &[(u64, C)], life: impl Fn(C) -> F + Sync) -> Vec<(u64, Failure)>
where
    C: Copy + Sync,
    F: Future<Output = ()>,
{
    let next = AtomicUsize::new(0);
    let live_on = || {
        let mut failed = Vec::new();
        while let Some((number, case)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(failure) = house::run(|| life(*case)) {
                failed.push((*number, failure));
            }
        }
        failed
    };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let all: Vec<_> = (0..processors).map(|_| scope.spawn(live_on)).collect();
        all.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

/// Fails with the seeds, and with the shortest story.
fn judge(mut failed: Vec<(u64, Failure)>) {
    failed.sort_by_key(|(_, failure)| failure.story.len());
    let Some((seed, failure)) = failed.first() else { return };
    let all: Vec<String> = failed.iter().map(|(seed, it)| format!("seed {seed}: {}", it.why)).collect();
    let all = all.join("\n");
    panic!(
        "{}\n{} seeds failed, the shortest story is that of seed {seed}:\n{all}",
        failure.story,
        failed.len()
    );
}

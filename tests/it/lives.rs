//! Whole lives of databases in one process and in virtual time: the operator as it is shipped, on the API
//! server in memory and EC2's model, with everyone who acts beside it; one seed decides all that may differ.

mod chaos;
mod house;
mod life;
mod person;
mod rules;
mod story;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use chaos::Lies;
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

/// Lives the life of each seed, on every processor. Those that failed.
fn lives(seeds: Range<u64>, lies: fn(u64) -> Lies) -> Vec<(u64, Failure)> {
    let next = AtomicU64::new(seeds.start);
    let live_on = || {
        let mut failed = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return failed;
            }
            if let Err(failure) = house::run(life::live(seed, lies(seed))) {
                failed.push((seed, failure));
            }
        }
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
    let all: String = failed.iter().map(|(seed, it)| format!("seed {seed}: {}\n", it.why)).collect();
    panic!(
        "{}\n{} seeds failed, the shortest story is that of seed {seed}:\n{all}",
        failure.story,
        failed.len()
    );
}

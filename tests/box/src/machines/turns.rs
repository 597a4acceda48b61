//! How many sites with real machines this host has at a time, whichever processes have them: two, and more
//! while its processors have nothing to do.

use std::fs::{File, TryLockError};
use std::io;
use std::ops::RangeInclusive;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::base::cache::{Cache, make_private_folder};

/// Machines, engines and a control plane mostly wait: two cores bear two such sites beside everything else.
const ALWAYS: RangeInclusive<u32> = 1..=2;

/// And two more where nothing else runs: memory is for no more.
const WHILE_IDLE: RangeInclusive<u32> = 3..=4;

/// How often a site that waits looks again.
const PAUSE: Duration = Duration::from_millis(200);

/// For how long the processors must have had nothing to do: a site that has begun meanwhile is seen by then.
const IDLE: Duration = Duration::from_secs(15);

/// The part of the last ten seconds, in percent, in which something waited for a processor, up to which they
/// count as idle.
const PRESSURE: f64 = 25.0;

/// Held by what has real machines. The kernel gives it back when its process ends in any way.
#[derive(Debug)]
pub struct Turn {
    _lock: File,
}

/// Waits for a turn. Those of one process get it in the order in which they asked; of several processes, the
/// one that looks first.
///
/// # Errors
///
/// When the files of the turns in the cache cannot be created or locked.
pub async fn take(cache: &Cache) -> io::Result<Turn> {
    static QUEUE: Mutex<()> = Mutex::const_new(());
    let _first = QUEUE.lock().await;
    take_while(cache, is_idle).await
}

/// A turn, if one is free.
///
/// # Errors
///
/// As of [`take`].
pub fn try_take(cache: &Cache) -> io::Result<Option<Turn>> {
    try_take_of(cache, ALWAYS)
}

/// Waits for a turn of those that there always are, or of the others once the host was idle for long enough.
async fn take_while(cache: &Cache, is_idle: impl Fn() -> bool) -> io::Result<Turn> {
    let mut busy_until = Instant::now();
    loop {
        if let Some(turn) = try_take(cache)? {
            return Ok(turn);
        }
        if !is_idle() {
            busy_until = Instant::now();
        }
        if busy_until.elapsed() >= IDLE
            && let Some(turn) = try_take_of(cache, WHILE_IDLE)?
        {
            return Ok(turn);
        }
        sleep(PAUSE).await;
    }
}

fn try_take_of(cache: &Cache, numbers: RangeInclusive<u32>) -> io::Result<Option<Turn>> {
    let runs = cache.runs();
    make_private_folder(&runs)?;
    for number in numbers {
        let lock = File::create(runs.join(format!("real-machines-{number}.lock")))?;
        match lock.try_lock() {
            Ok(()) => return Ok(Some(Turn { _lock: lock })),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(None)
}

/// Whether the processors have nothing to do, by the kernel's pressure stall information; never on a kernel
/// without it.
fn is_idle() -> bool {
    std::fs::read_to_string("/proc/pressure/cpu")
        .ok()
        .and_then(|said| pressure(&said))
        .is_some_and(|part| part <= PRESSURE)
}

/// The percentage of the last ten seconds in which at least one process waited
/// (<https://docs.kernel.org/accounting/psi.html>).
fn pressure(said: &str) -> Option<f64> {
    let some = said.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split_ascii_whitespace().find_map(|field| field.strip_prefix("avg10="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> (tempfile::TempDir, Cache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        (folder, cache)
    }

    #[tokio::test(start_paused = true)]
    async fn on_a_busy_host_a_third_site_waits_until_one_of_two_has_ended() {
        let (_folder, cache) = cache();
        let first = take_while(&cache, || false).await.unwrap();
        let second = take_while(&cache, || false).await.unwrap();
        let third = take_while(&cache, || false);
        tokio::pin!(third);
        tokio::time::timeout(IDLE * 10, &mut third).await.expect_err("two are there");
        drop(first);
        let third = third.await.unwrap();
        assert!(try_take(&cache).unwrap().is_none());
        drop((second, third));
        assert!(try_take(&cache).unwrap().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn on_an_idle_host_two_more_begin_one_after_the_other() {
        let (_folder, cache) = cache();
        let began = Instant::now();
        let mut turns = Vec::new();
        for _ in 0..4 {
            turns.push(take_while(&cache, || true).await.unwrap());
        }
        assert!(began.elapsed() >= IDLE * 2, "{:?}", began.elapsed());
        tokio::time::timeout(IDLE * 10, take_while(&cache, || true)).await.expect_err("four are there");
    }

    #[test]
    fn the_pressure_is_read_as_the_kernel_writes_it() {
        let said = "some avg10=12.50 avg60=0.45 avg300=19.48 total=21648463412\n\
            full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(pressure(said), Some(12.5));
        assert_eq!(pressure(""), None);
    }
}

//! How many sites with real machines this host has at a time: two, whichever processes have them.

use std::fs::{File, TryLockError};
use std::io;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::sleep;

use crate::base::cache::{Cache, make_private_folder};

/// Machines, engines and a control plane mostly wait: two cores bear two such sites.
const AT_ONCE: u32 = 2;

/// How often a site that waits looks again.
const PAUSE: Duration = Duration::from_millis(200);

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
    loop {
        if let Some(turn) = try_take(cache)? {
            return Ok(turn);
        }
        sleep(PAUSE).await;
    }
}

/// A turn, if one is free.
///
/// # Errors
///
/// As of [`take`].
pub fn try_take(cache: &Cache) -> io::Result<Option<Turn>> {
    let runs = cache.runs();
    make_private_folder(&runs)?;
    for number in 1..=AT_ONCE {
        let lock = File::create(runs.join(format!("real-machines-{number}.lock")))?;
        match lock.try_lock() {
            Ok(()) => return Ok(Some(Turn { _lock: lock })),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_third_site_waits_until_one_of_two_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let first = take(&cache).await.unwrap();
        let second = take(&cache).await.unwrap();
        assert!(try_take(&cache).unwrap().is_none());
        drop(first);
        let third = take(&cache).await.unwrap();
        assert!(try_take(&cache).unwrap().is_none());
        drop((second, third));
        assert!(try_take(&cache).unwrap().is_some());
    }
}

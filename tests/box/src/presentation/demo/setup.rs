//! The box that the demo and the measurement run on: alone, with all that it needs built, and ended when it
//! fails.

use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::path::PathBuf;

use tokio::signal::unix::{SignalKind, signal};

use super::common::Failure;
use super::operator_process;
use crate::account::node_kind::NodeKind;
use crate::base::cache::{Cache, make_private_folder};
use crate::base::error_chain::chain;
use crate::base::progress::Progress;
use crate::machines::turns::{self, Turn};
use crate::presentation::daemon::{self, Pace, Record, Settings};

/// Runs something on the demo's box: alone, with the operator's binary and all else that it needs built, and
/// the box goes down when it fails, unless it is to be kept, or is stopped by Ctrl-C or SIGTERM.
pub async fn with_demo_box(
    cache: &Cache,
    name: &str,
    nodes: NodeKind,
    keep: bool,
    work: impl AsyncFnOnce(PathBuf) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let _lock = lock_demo(cache, name)?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let stopped = async {
        tokio::select! {
            _ = interrupt.recv() => "stopped by Ctrl-C",
            _ = terminate.recv() => "stopped by SIGTERM",
        }
    };
    tokio::pin!(stopped);

    let binary = tokio::select! {
        binary = prepare(cache, name, nodes) => binary?,
        how = &mut stopped => return Err(how.into()),
    };
    let _turn = tokio::select! {
        turn = turn(cache, nodes) => turn?,
        how = &mut stopped => return Err(how.into()),
    };
    let (outcome, leave) = tokio::select! {
        outcome = work(binary) => (outcome, keep),
        how = &mut stopped => (Err(how.into()), false),
    };
    if outcome.is_err() && leave {
        eprintln!(
            "the box is left running for inspection; `cargo box down --name {name}` stops it and its \
            operator"
        );
    } else if outcome.is_err() {
        match daemon::down(cache, name).await {
            Ok(done) => eprintln!("{done}"),
            Err(error) => eprintln!("{}; to try again: `cargo box down --name {name}`", chain(&error)),
        }
    }
    outcome
}

/// Starts the box, with time passing at this speed.
pub async fn box_up(
    cache: &Cache,
    name: &str,
    nodes: NodeKind,
    speed: f64,
    pace: Pace,
) -> Result<Record, Failure> {
    let progress = Progress::on_stderr();
    let settings = Settings { name: name.to_owned(), speed, pace, state: None, nodes };
    let record = daemon::up(cache, &settings, &progress).await?;
    progress.clear();
    println!("box: a real Kubernetes control plane and a simulated EC2 are up ({})", record.endpoint);
    match record.nodes {
        NodeKind::Real => println!("machines: real kubelets, containers and disks on this host"),
        NodeKind::Virtual => println!("machines: virtual; pods run no containers, and no rows are written"),
    }
    Ok(record)
}

/// An error if a volume was detached while a machine had it mounted.
pub fn no_violation(cache: &Cache, record: &Record) -> Result<(), Failure> {
    match daemon::violations(cache, &record.name).as_slice() {
        [] => Ok(()),
        violations => Err(format!(
            "a volume was detached while a machine had it mounted, which loses data in EC2: {}",
            violations.join("; ")
        )
        .into()),
    }
}

/// Locks the demo's box while a demo runs: a box without a lock was kept, or its demo was killed. The lock
/// file holds the process id of the demo, for the error message of the next one.
fn lock_demo(cache: &Cache, name: &str) -> Result<File, Failure> {
    let folder = cache.boxes();
    let path = folder.join(format!("{name}.lock"));
    let failed = |error: io::Error| format!("failed to use {}: {error}", path.display());
    make_private_folder(&folder).map_err(failed)?;
    let mut lock =
        File::options().create(true).read(true).write(true).truncate(false).open(&path).map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let id = io::read_to_string(lock).map_err(failed)?;
            return Err(format!(
                "a demo of this name is running: wait for its end, or stop it with Ctrl-C or `kill \
                {}`",
                id.trim()
            )
            .into());
        }
        Err(TryLockError::Error(error)) => return Err(failed(error).into()),
    }
    lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id())).map_err(failed)?;
    Ok(lock)
}

/// Waits, and says so, while two other sites of this host have real machines: tests, or other demos.
async fn turn(cache: &Cache, nodes: NodeKind) -> Result<Option<Turn>, Failure> {
    if nodes == NodeKind::Virtual {
        return Ok(None);
    }
    if let Some(turn) = turns::try_take(cache)? {
        return Ok(Some(turn));
    }
    eprintln!(
        "waiting until one of the two demos or tests with real machines that run on this host has ended"
    );
    Ok(Some(turns::take(cache).await?))
}

/// Builds what is missing and stops what an earlier demo left running; returns the operator's binary.
async fn prepare(cache: &Cache, name: &str, nodes: NodeKind) -> Result<PathBuf, Failure> {
    nodes.prepare(cache, &Progress::on_stderr()).await?;
    let binary = operator_process::binary()?;
    if daemon::is_of_a_demo(cache, name) {
        println!("stopped an earlier demo that was left running: {}", daemon::down(cache, name).await?);
    } else if daemon::running(cache, name).is_some() {
        return Err(format!(
            "a box `{name}` is running that was not started by a demo: `cargo box down --name \
            {name}` stops it"
        )
        .into());
    }
    Ok(binary)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::presentation::demo::common::BOX;

    #[test]
    fn a_second_demo_is_refused_while_the_first_one_runs() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let first = lock_demo(&cache, BOX).unwrap();
        let refused = lock_demo(&cache, BOX).unwrap_err().to_string();
        assert!(refused.contains(&format!("kill {}`", std::process::id())), "{refused}");
        drop(first);
        // A process that another test starts at this moment has the lock too, until it becomes its program.
        let started = Instant::now();
        while let Err(error) = lock_demo(&cache, BOX) {
            assert!(started.elapsed() < Duration::from_secs(10), "{error}");
        }
    }
}

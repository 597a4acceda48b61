//! The folder of one running control plane, and the removal of folders (and processes) whose owner died.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::base::cache::{Cache, make_private_folder};
use crate::base::host_cleanup;
use crate::base::process::{Identity, Process};

/// Counts the folders of this process: one process may run several control planes.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Who owns the folder: one line, an [`Identity`].
const OWNER: &str = "owner";

/// Which process groups belong to it: one line each, an [`Identity`].
const PROCESSES: &str = "processes";

/// A folder that is removed when it is dropped.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Makes a new folder for this process; removes what dead owners left first.
    pub fn create(cache: &Cache, name: &str) -> io::Result<Self> {
        let runs = cache.runs();
        make_private_folder(&runs)?;
        let _lock = hold(&runs)?;
        sweep_held(&runs)?;

        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = runs.join(format!("{name}-{}-{number}", std::process::id()));
        make_private_folder(&path)?;
        let owner = Identity::of_self().ok_or_else(|| io::Error::other("this process is not in /proc"))?;
        std::fs::write(path.join(OWNER), owner.to_string())?;
        Ok(Self { path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Remembers a process, so that the next start can end it should this process be killed.
    pub fn remember(&self, process: &Process) -> io::Result<()> {
        let mut file = File::options().create(true).append(true).open(self.path.join(PROCESSES))?;
        if let Some(identity) = Identity::of(process.id()) {
            writeln!(file, "{identity}")?;
        }
        Ok(())
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Held for milliseconds only, by everyone who makes or sweeps: so a folder without an owner is never one in
/// the making.
fn hold(runs: &Path) -> io::Result<File> {
    let lock = File::create(runs.join("lock"))?;
    lock.lock()?;
    Ok(lock)
}

/// Ends the processes and removes the folders of owners that are gone; says how many folders.
pub fn sweep(cache: &Cache) -> io::Result<usize> {
    let runs = cache.runs();
    make_private_folder(&runs)?;
    let _lock = hold(&runs)?;
    sweep_held(&runs)
}

fn sweep_held(runs: &Path) -> io::Result<usize> {
    let mut swept = 0;
    for entry in std::fs::read_dir(runs)? {
        let path = entry?.path();
        if !path.is_dir() {
            continue;
        }
        let owner = std::fs::read_to_string(path.join(OWNER)).ok().as_deref().and_then(Identity::parse);
        if owner.is_some_and(Identity::lives) {
            continue;
        }
        let processes = std::fs::read_to_string(path.join(PROCESSES)).unwrap_or_default();
        for process in processes.lines().filter_map(Identity::parse) {
            process.kill_group();
        }
        host_cleanup::sweep(&path);
        match std::fs::remove_dir_all(&path) {
            Ok(()) => swept += 1,
            // A process that is just ending has a disk mounted there: the next start removes it.
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
            Err(error) => return Err(error),
        }
    }
    Ok(swept)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    use super::*;

    /// A folder as a killed box leaves it, with one process that outlived its owner.
    fn left_behind(cache: &Cache, process: Identity) -> PathBuf {
        let path = cache.runs().join("box-1-0");
        make_private_folder(&path).unwrap();
        // This id lives, but its process started at another time: the owner is dead and its id was given to
        // another process.
        let owner = Identity { started: 1, ..Identity::of_self().unwrap() };
        std::fs::write(path.join(OWNER), owner.to_string()).unwrap();
        std::fs::write(path.join(PROCESSES), format!("{process}\n")).unwrap();
        path
    }

    #[test]
    fn what_a_killed_owner_left_is_ended_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let mut child = Command::new("sleep").arg("600").process_group(0).spawn().unwrap();
        let path = left_behind(&cache, Identity::of(child.id()).unwrap());
        assert_eq!(sweep(&cache).unwrap(), 1);
        assert!(!child.wait().unwrap().success());
        assert!(!path.exists());
    }

    #[test]
    fn a_process_that_only_has_the_same_id_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let mut child = Command::new("sleep").arg("600").process_group(0).spawn().unwrap();
        let stranger = Identity { started: 1, id: child.id() };
        left_behind(&cache, stranger);
        sweep(&cache).unwrap();
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn the_folder_of_a_living_owner_stays() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let run = RunFolder::create(&cache, "box").unwrap();
        assert_eq!(sweep(&cache).unwrap(), 0);
        assert!(run.path().exists());
    }
}

//! The EBS volumes of a site of real machines: each is a sparse file, and a block device at the machine that EC2 shows it attached to.
//!
//! ```text
//!   ec2sim ──truth──► round ──► pool     a file per volume and per snapshot, on a file system that copies a file at one instant
//!   machines ──pids─►       └─► device   a loop device, its name in the machine, growing, and being cut off
//! ```
//!
//! A device can be **cut off**: from that instant on its machine reads and writes errors, and the file is what the device had been
//! given. That is what a power cut leaves of a disk (what only the page cache of a file system had is lost), and what a detached EBS
//! volume looks like to a machine that still has it mounted.

mod command;
mod device;
mod pool;
mod round;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ec2sim::Simulator;
use k8s_openapi::jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use pool::Pool;
use round::{State, Truth};

/// How long until a look without any change, for what failed.
const RESYNC: Duration = Duration::from_secs(1);

/// The machines that run: the process that holds each one's namespaces, by instance id. After a reboot it is another process.
pub type Leaders = BTreeMap<String, u32>;

/// Why something could not be done to a volume.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program is not installed.
    #[error("failed to {doing}: the program `{program}` cannot be run; install it (Debian: mount, xfsprogs, perl-base)")]
    Missing {
        /// What it was for.
        doing: String,
        /// Its name.
        program: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },

    /// A program failed.
    #[error("failed to {doing}: `{command}`: {said}")]
    Command {
        /// What it was for.
        doing: String,
        /// What was run.
        command: String,
        /// Its standard error.
        said: String,
    },

    /// A file.
    #[error("failed to {doing}")]
    File {
        /// What was being done.
        doing: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// A volume was taken from a machine that had it mounted, while EC2 did not show that machine as ended: in life, data is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When it was seen.
    pub at: Timestamp,
    /// `vol-…`.
    pub volume: String,
    /// `i-…`.
    pub instance: String,
    /// Where it was mounted.
    pub places: Vec<String>,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let places = self.places.join(", ");
        write!(formatter, "{}: volume {} was detached from {}, which had it mounted at {places}", self.at, self.volume, self.instance)
    }
}

/// The volumes of a site. Clones are the same ones; when the last is dropped, devices and mounts go, and the files stay.
#[derive(Clone, Debug)]
pub struct Disks {
    state: Arc<Mutex<State>>,
}

impl Disks {
    /// The volumes whose files are below `folder`, which must be an absolute path; new ones are kept there too.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let state = State::new(Pool::open(folder)?);
        Ok(Self { state: Arc::new(Mutex::new(state)) })
    }

    /// Follows the simulator until `stop`. `machines` says which machines run.
    pub async fn run(self, simulator: Simulator, mut machines: watch::Receiver<Leaders>, stop: CancellationToken) {
        let mut changes = simulator.changes();
        while !stop.is_cancelled() {
            changes.mark_unchanged();
            let (truth, leaders) = (Truth::of(&simulator), machines.borrow_and_update().clone());
            let disks = self.clone();
            let _ = tokio::task::spawn_blocking(move || disks.lock().follow(&truth, &leaders)).await;
            tokio::select! {
                Ok(()) = changes.changed() => {}
                Ok(()) = machines.changed() => {}
                () = tokio::time::sleep(RESYNC) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// A power cut, at the instant at which all processes of the instance's machine stand still and before they are killed: its devices
    /// are cut off, and the files are what they had been given. The machine's next boot gets them as new devices.
    ///
    /// Without it a kill ends in a clean unmount, since the kernel lives on and writes what was not written.
    pub fn cut_power(&self, instance: &str) -> Result<(), Error> {
        self.lock().cut_power(instance)
    }

    /// What must never happen. Anything here fails a test or a demo.
    pub fn violations(&self) -> Vec<Violation> {
        self.lock().violations.clone()
    }

    /// The file of a volume or a snapshot, for tests that look at its bytes.
    pub fn file(&self, id: &str) -> PathBuf {
        self.lock().pool.file(id)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

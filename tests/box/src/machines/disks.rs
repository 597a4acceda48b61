//! The EBS volumes of a site of real machines: each is a sparse file, and a block device at the machine that
//! EC2 shows it attached to.
//!
//! ```text
//!   ec2sim ──view──► sync ───► pool     a file per volume and per snapshot, on a file system that copies a file at one instant
//!   machines ──pids─►       └─► device   a loop device, its name in the machine, growing, and being cut off
//! ```
//!
//! A device can be **cut off**: from that instant on its machine reads and writes errors, and the file is
//! what the device had been given. That is what a power cut leaves of a disk (what only the page cache of a
//! file system had is lost), and what a detached EBS volume looks like to a machine that still has it
//! mounted.

mod command;
mod device;
mod error;
mod pool;
mod sync;
#[cfg(test)]
mod tests;
mod violation;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ec2sim::Simulator;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use error::Error;
use pool::Pool;
pub use sync::Leaders;
use sync::{Ec2View, State};
pub use violation::Violation;

/// How long until a look without any change, for what failed.
const RESYNC: Duration = Duration::from_secs(1);

/// The volumes of a site. Clones are the same ones; when the last is dropped, devices and mounts go, and the
/// files stay.
#[derive(Clone, Debug)]
pub struct Disks {
    state: Arc<Mutex<State>>,
}

impl Disks {
    /// The volumes whose files are below `folder`, which must be an absolute path; new ones are kept there
    /// too.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let state = State::new(Pool::open(folder)?);
        Ok(Self { state: Arc::new(Mutex::new(state)) })
    }

    /// Follows the simulator until `stop`. `machines` says which machines run.
    pub async fn run(
        self,
        simulator: Simulator,
        mut machines: watch::Receiver<Leaders>,
        stop: CancellationToken,
    ) {
        let mut changes = simulator.changes();
        while !stop.is_cancelled() {
            changes.mark_unchanged();
            let (ec2, leaders) = (Ec2View::of(&simulator), machines.borrow_and_update().clone());
            let disks = self.clone();
            let _ = tokio::task::spawn_blocking(move || disks.lock().follow(&ec2, &leaders)).await;
            tokio::select! {
                Ok(()) = changes.changed() => {}
                Ok(()) = machines.changed() => {}
                () = tokio::time::sleep(RESYNC) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// A power cut, at the instant at which all processes of the instance's machine stand still and before
    /// they are killed: its devices are cut off, and the files are what they had been given. The machine's
    /// next boot gets them as new devices.
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

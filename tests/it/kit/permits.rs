//! How much runs at once. libtest starts all tests together (`.cargo/config.toml`); here they wait, in the
//! order in which they came, and no limit of time runs meanwhile.

use std::sync::LazyLock;
use std::thread::available_parallelism;

use freehold_box::base::cache::Cache;
use freehold_box::machines::turns::{self, Turn};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Test environments with virtual machines for each processor: each has an operator and an EC2 of its own,
/// which mostly wait for time to pass.
const PER_PROCESSOR: usize = 3;

static VIRTUAL: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(all()));

/// Held for as long as something runs.
pub type Permit = SemaphorePermit<'static>;

/// Which part of what the host has for virtual machines a test environment needs.
#[derive(Clone, Copy)]
pub enum Share {
    /// That of one operator with a few databases.
    One,
    /// For a hundred databases whose calls are counted, or a dozen that are adopted at once.
    Half,
}

fn all() -> usize {
    PER_PROCESSOR * available_parallelism().map_or(1, usize::from)
}

/// For one test environment with virtual machines.
pub async fn of_virtual_machines(share: Share) -> Permit {
    let count = match share {
        Share::One => 1,
        Share::Half => all() / 2,
    };
    VIRTUAL.acquire_many(u32::try_from(count).unwrap()).await.unwrap()
}

/// For a test with real machines, which mostly waits for pods and engines to start; virtual ones run beside
/// it. Other processes of this host with real machines, such as the demo, are counted.
pub async fn of_real_machines() -> Turn {
    turns::take(&Cache::from_environment()).await.unwrap()
}

//! The one clock: virtual time, from tokio's clock times a factor, or stepped by hand. Tokio's clock is the
//! wall clock, unless a test has paused it.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::options::Clock;

/// Where virtual time stands.
#[derive(Debug)]
pub(crate) struct Watch {
    clock: Clock,
    begun: Instant,
    at_begin: Timestamp,
    stepped: Duration,
}

impl Watch {
    /// A watch that shows `at` now.
    pub(crate) fn starting(clock: Clock, at: Timestamp) -> Self {
        Self { clock, begun: Instant::now(), at_begin: at, stepped: Duration::ZERO }
    }

    pub(crate) fn now(&self) -> Timestamp {
        let passed = match self.clock {
            Clock::Manual => Duration::ZERO,
            Clock::Running { speed } => {
                Duration::try_from_secs_f64(self.begun.elapsed().as_secs_f64() * speed).unwrap_or_default()
            }
        };
        self.at_begin + passed + self.stepped
    }

    pub(crate) fn step(&mut self, time: Duration) {
        self.stepped += time;
    }
}

//! Per-object pauses after failed passes: the only user of the crate `backoff`.

use std::collections::HashMap;
use std::time::Duration;

use backoff::backoff::Backoff;
use backoff::{ExponentialBackoff, ExponentialBackoffBuilder};
use parking_lot::Mutex;

/// Exponential pauses with jitter, one series per object: one that always fails slows no other.
pub struct Retry {
    first: Duration,
    longest: Duration,
    series: Mutex<HashMap<String, ExponentialBackoff>>,
}

impl Retry {
    /// Pauses from `first`, doubling up to `longest`.
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, series: Mutex::new(HashMap::new()) }
    }

    /// The pause after one more failure of this object.
    pub fn failed(&self, key: &str) -> Duration {
        let mut series = self.series.lock();
        series
            .entry(key.to_owned())
            .or_insert_with(|| {
                ExponentialBackoffBuilder::new()
                    .with_initial_interval(self.first)
                    .with_max_interval(self.longest)
                    .with_multiplier(2.0)
                    .with_max_elapsed_time(None)
                    .build()
            })
            .next_backoff()
            .unwrap_or(self.longest)
    }

    /// The object's pass went well: its next failure starts from the beginning.
    pub fn succeeded(&self, key: &str) {
        self.series.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_per_object_stay_bounded_and_start_again_after_a_success() {
        let retry = Retry::new(Duration::from_secs(1), Duration::from_secs(60));
        let pauses: Vec<Duration> = (0..12).map(|_| retry.failed("a")).collect();
        assert!(pauses[0] <= Duration::from_millis(1500), "{pauses:?}");
        assert!(pauses[6] > pauses[0] * 4, "{pauses:?}");
        // Jitter of a half around the longest.
        assert!(pauses.iter().all(|pause| *pause <= Duration::from_secs(90)), "{pauses:?}");
        assert!(retry.failed("b") <= Duration::from_millis(1500));
        retry.succeeded("a");
        assert!(retry.failed("a") <= Duration::from_millis(1500));
    }
}

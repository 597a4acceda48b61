//! Per-object pauses after failed passes: the only user of the crate `backoff`.

use std::collections::HashMap;
use std::time::Duration;

use backoff::backoff::Backoff;
use backoff::{ExponentialBackoff, ExponentialBackoffBuilder};
use parking_lot::Mutex;

/// Into so many parts the longest pause is divided for an object that is urgent: half a minute by default. A
/// database is down meanwhile, and there are never many of them.
const URGENT_PARTS: u32 = 10;

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

    /// The pause after one more failure of this object; a shorter one if it is urgent, also after long
    /// pauses.
    pub fn failed(&self, key: &str, is_urgent: bool) -> Duration {
        let longest = if is_urgent { self.longest / URGENT_PARTS } else { self.longest };
        let mut all = self.series.lock();
        let series = all.entry(key.to_owned()).or_insert_with(|| {
            ExponentialBackoffBuilder::new()
                .with_initial_interval(self.first)
                .with_max_interval(self.longest)
                .with_multiplier(2.0)
                .with_max_elapsed_time(None)
                .build()
        });
        series.max_interval = longest;
        series.current_interval = series.current_interval.min(longest);
        series.next_backoff().unwrap_or(longest)
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
        let pauses: Vec<Duration> = (0..12).map(|_| retry.failed("a", false)).collect();
        assert!(pauses[0] <= Duration::from_millis(1500), "{pauses:?}");
        assert!(pauses[6] > pauses[0] * 4, "{pauses:?}");
        // Jitter of a half around the longest.
        assert!(pauses.iter().all(|pause| *pause <= Duration::from_secs(90)), "{pauses:?}");
        assert!(retry.failed("b", false) <= Duration::from_millis(1500));
        retry.succeeded("a");
        assert!(retry.failed("a", false) <= Duration::from_millis(1500));
    }

    #[test]
    fn an_object_that_becomes_urgent_after_long_pauses_is_tried_within_a_minute() {
        let retry = Retry::new(Duration::from_secs(1), Duration::from_secs(300));
        let calm: Vec<Duration> = (0..12).map(|_| retry.failed("a", false)).collect();
        assert!(calm[11] >= Duration::from_secs(150), "{calm:?}");
        let urgent: Vec<Duration> = (0..12).map(|_| retry.failed("a", true)).collect();
        assert!(urgent.iter().all(|pause| *pause <= Duration::from_secs(45)), "{urgent:?}");
    }
}

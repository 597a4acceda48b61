//! Measures outages as a client sees them: the longest time between two acknowledgements.

use std::time::{Duration, Instant};

/// The gaps between acknowledgements since a moment.
#[derive(Clone, Copy, Debug)]
pub struct Gaps {
    last: Instant,
    longest: Duration,
}

impl Gaps {
    /// The first gap begins now.
    pub fn since(now: Instant) -> Self {
        Self { last: now, longest: Duration::ZERO }
    }

    /// An acknowledgement came.
    pub fn acknowledged(&mut self, now: Instant) {
        self.longest = self.longest(now);
        self.last = now;
    }

    /// The longest gap, the one that is still open included.
    pub fn longest(&self, now: Instant) -> Duration {
        self.longest.max(now.saturating_duration_since(self.last))
    }

    /// The longest gap since this was last asked. An open gap goes on: it counts in whole where it ends, too.
    pub fn take(&mut self, now: Instant) -> Duration {
        let longest = self.longest(now);
        self.longest = Duration::ZERO;
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_has_the_longest_of_its_gaps_and_an_open_one_counts() {
        let start = Instant::now();
        let at = |milliseconds: u64| start + Duration::from_millis(milliseconds);
        let mut gaps = Gaps::since(start);
        for milliseconds in [10, 20, 520, 530] {
            gaps.acknowledged(at(milliseconds));
        }
        assert_eq!(gaps.take(at(540)), Duration::from_millis(500));

        gaps.acknowledged(at(550));
        assert_eq!(gaps.take(at(600)), Duration::from_millis(50));
        assert_eq!(gaps.take(at(3550)), Duration::from_millis(3000));
        gaps.acknowledged(at(4550));
        assert_eq!(gaps.take(at(4560)), Duration::from_millis(4000));
    }
}

//! Measures outages as a client sees them: the longest time between two acknowledgements.

use std::time::{Duration, Instant};

/// A time between two acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// When the last acknowledgement before it came.
    pub began: Instant,
    /// How long it was until the next one, or is until now.
    pub length: Duration,
}

/// The gaps between acknowledgements since a moment.
#[derive(Clone, Copy, Debug)]
pub struct Gaps {
    last: Instant,
    longest: Option<Gap>,
}

impl Gaps {
    /// The first gap begins now.
    pub fn since(now: Instant) -> Self {
        Self { last: now, longest: None }
    }

    /// An acknowledgement came.
    pub fn acknowledged(&mut self, now: Instant) {
        self.longest = Some(self.longest(now));
        self.last = now;
    }

    /// The longest gap, the one that is still open included.
    pub fn longest(&self, now: Instant) -> Gap {
        let open = Gap { began: self.last, length: now.saturating_duration_since(self.last) };
        self.longest.filter(|longest| longest.length >= open.length).unwrap_or(open)
    }

    /// The longest gap since this was last asked. An open gap goes on: it counts in whole where it ends, too.
    pub fn take(&mut self, now: Instant) -> Gap {
        let longest = self.longest(now);
        self.longest = None;
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
        let gap = |began: u64, length: u64| Gap { began: at(began), length: Duration::from_millis(length) };
        let mut gaps = Gaps::since(start);
        for milliseconds in [10, 20, 520, 530] {
            gaps.acknowledged(at(milliseconds));
        }
        assert_eq!(gaps.take(at(540)), gap(20, 500));

        gaps.acknowledged(at(550));
        assert_eq!(gaps.take(at(600)), gap(550, 50));
        assert_eq!(gaps.take(at(3550)), gap(550, 3000));
        gaps.acknowledged(at(4550));
        assert_eq!(gaps.take(at(4560)), gap(550, 4000));
    }
}

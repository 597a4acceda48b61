//! The states that were, for reads that are answered by an endpoint that has not heard of the last changes.

use std::{collections::VecDeque, time::Duration};

use jiff::Timestamp;

/// The states after each change, the oldest first; none unless a time is given that they are kept for.
#[derive(Debug)]
pub(super) struct Past<S> {
    kept_for: Duration,
    all: VecDeque<(Timestamp, S)>,
}

impl<S: Clone> Past<S> {
    /// No state yet.
    pub(super) fn new(kept_for: Duration) -> Self {
        Self { kept_for, all: VecDeque::new() }
    }

    /// Keeps the state of now, and forgets those that were followed by another one too long ago.
    pub(super) fn keep(&mut self, now: Timestamp, state: &S) {
        if self.kept_for.is_zero() {
            return;
        }
        self.all.push_back((now, state.clone()));
        let oldest = now - self.kept_for;
        while self.all.get(1).is_some_and(|(next, _)| *next <= oldest) {
            self.all.pop_front();
        }
    }

    /// The state at a moment.
    pub(super) fn at(&self, moment: Timestamp) -> Option<S> {
        let last = self.all.partition_point(|(at, _)| *at <= moment).checked_sub(1)?;
        self.all.get(last).map(|(_, state)| state.clone())
    }
}

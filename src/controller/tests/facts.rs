//! Facts that make up a random world, for the property tests of every kind's plan.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use crate::controller::memory::sends::Sent;

/// Something that is otherwise than in the world that it changes.
pub struct Fact<Observed> {
    name: &'static str,
    change: fn(&mut Observed, Timestamp),
}

impl<Observed> Fact<Observed> {
    /// Makes it true of this world, at this moment.
    pub fn apply(self, observed: &mut Observed, now: Timestamp) {
        (self.change)(observed, now);
    }
}

impl<Observed> Clone for Fact<Observed> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Observed> Copy for Fact<Observed> {}

impl<Observed> fmt::Debug for Fact<Observed> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The fact of this name.
pub fn fact<Observed>(name: &'static str, change: fn(&mut Observed, Timestamp)) -> Fact<Observed> {
    Fact { name, change }
}

/// Makes every fact true of this world, in this order.
pub fn apply_all<Observed>(facts: &[Fact<Observed>], observed: &mut Observed, now: Timestamp) {
    for fact in facts {
        fact.apply(observed, now);
    }
}

/// So many seconds before now.
pub fn before(now: Timestamp, seconds: i64) -> Timestamp {
    now.checked_sub(SignedDuration::from_secs(seconds)).unwrap()
}

/// A moment that is still to come.
pub fn until(now: Timestamp) -> Timestamp {
    before(now, -60)
}

/// This process' one send of an attempt, so many seconds before now, whose answer did not come.
pub fn sent(now: Timestamp, seconds: i64) -> Sent {
    let last = before(now, seconds);
    let not_before = before(now, seconds - 2);
    Sent { last, times: 1, in_doubt: true, refused_after_doubt: false, not_before }
}

/// A random world: a base, up to `most` facts that are otherwise in it, and how late it is.
pub fn worlds<Observed: 'static>(
    bases: Vec<Fact<Observed>>,
    facts: Vec<Fact<Observed>>,
    most: usize,
    seconds: Vec<i64>,
) -> impl Strategy<Value = (Fact<Observed>, Vec<Fact<Observed>>, i64)> {
    let changes = prop::collection::vec(prop::sample::select(facts), 0..=most);
    (prop::sample::select(bases), changes, prop::sample::select(seconds))
}

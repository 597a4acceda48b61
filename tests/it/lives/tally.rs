//! What a life comes to in numbers, for campaigns of many lives.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::house::House;
use crate::world::OPERATOR;

/// The numbers of one life, or of many together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// The virtual time that was lived, in seconds.
    pub seconds: u64,
    /// The operators' requests to the API server.
    pub requests: u64,
    /// Those of them that may change something, but for Leases and events.
    pub writes: u64,
    /// The operators' calls to EC2.
    pub calls: u64,
    /// Those of them that may change something.
    pub changing_calls: u64,
    /// How often an operator was started.
    pub starts: u64,
    /// What became of an operator at a write, and how often.
    pub blows: BTreeMap<String, u64>,
    /// The lies, and how often each was met.
    pub lies: BTreeMap<String, u64>,
}

impl Tally {
    /// Adds the numbers of another one.
    pub fn add(&mut self, other: &Self) {
        self.seconds += other.seconds;
        self.requests += other.requests;
        self.writes += other.writes;
        self.calls += other.calls;
        self.changing_calls += other.changing_calls;
        self.starts += other.starts;
        for (sums, theirs) in [(&mut self.blows, &other.blows), (&mut self.lies, &other.lies)] {
            for (name, number) in theirs {
                *sums.entry(name.clone()).or_default() += number;
            }
        }
    }
}

impl House {
    /// What the life comes to so far.
    pub fn tally(&self) -> Tally {
        let mut tally = self.chaos.tally();
        tally.seconds = self.age().as_secs();
        for entry in self.ec2.journal().iter().filter(|it| it.caller == OPERATOR) {
            tally.calls += 1;
            tally.changing_calls += u64::from(!ec2sim::reads(&entry.action));
            for fault in &entry.faults {
                // The faults of a deed have numbers for names.
                let name = if fault.starts_with("fault-") { "a zone is out of order" } else { fault };
                *tally.lies.entry(format!("EC2: {name}")).or_default() += 1;
            }
        }
        tally
    }
}

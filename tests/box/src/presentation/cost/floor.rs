//! The least time that EC2's buckets of requests allow for the changes that a stage needed.

use std::time::Duration;

use ec2sim::{Fate, JournalEntry};

use crate::presentation::demo::observer::Calls;

/// The calls of everyone that changed something, by action. What EC2 refused is not needed twice.
pub fn changes(journal: &[JournalEntry]) -> Calls {
    let mut calls = Calls::new();
    let is_change =
        |entry: &&JournalEntry| entry.fate == Fate::Committed && entry.answer == "ok" && !entry.dry_run;
    for entry in journal.iter().filter(is_change) {
        *calls.entry(entry.action.clone()).or_default() += 1;
    }
    calls
}

/// Each action has buckets of its own, which are full at first: what they do not hold comes back at their
/// rate. The slowest action decides, since all are called side by side.
pub fn floor(changes: &Calls) -> Duration {
    let times = changes.iter().flat_map(|(action, count)| {
        ec2sim::rates(action).into_iter().map(|(holds, a_second)| (number(*count) - holds) / a_second)
    });
    Duration::from_secs_f64(times.fold(0.0, f64::max))
}

#[expect(clippy::cast_precision_loss, reason = "some thousands")]
fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn calls(calls: &[(&str, u64)]) -> Calls {
        calls.iter().map(|(action, count)| ((*action).to_owned(), *count)).collect()
    }

    #[test]
    fn the_action_whose_bucket_is_empty_for_longest_decides() {
        for (made, expected) in [
            // 5, then 2 a second
            (calls(&[("RunInstances", 50)]), 22.5),
            // 100, then 5 a second
            (calls(&[("CreateVolume", 50)]), 0.0),
            (calls(&[("CreateVolume", 300), ("RunInstances", 7)]), 40.0),
            (calls(&[("RunInstances", 50), ("CreateVolume", 50), ("AttachVolume", 50)]), 22.5),
            (calls(&[]), 0.0),
        ] {
            assert!((floor(&made).as_secs_f64() - expected).abs() < 0.001, "{made:?}: {:?}", floor(&made));
        }
    }

    #[test]
    fn what_was_refused_or_only_read_needs_no_place_in_a_bucket() {
        let entry = |action: &str, fate: &str, dry_run: bool| {
            json!({
                "seq": 1, "time": "2026-01-01T00:00:00Z", "caller": "freehold", "action": action,
                "resources": [], "tags": {}, "token": null, "params_hash": "", "dry_run": dry_run,
                "answer": "ok", "fate": fate, "faults": [], "late_of": null, "parameters": {},
            })
        };
        let journal: Vec<JournalEntry> = serde_json::from_value(json!([
            entry("RunInstances", "refused", false),
            entry("RunInstances", "committed", false),
            entry("RunInstances", "committed", true),
            entry("DescribeInstances", "read", false),
        ]))
        .unwrap();
        assert_eq!(changes(&journal), calls(&[("RunInstances", 1)]));
    }
}

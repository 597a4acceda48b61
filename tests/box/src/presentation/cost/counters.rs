//! Reads the operator's metrics: the reconciles and the refused calls that it counts itself.

use crate::presentation::demo::observer::Calls;

/// What the operator has counted since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Passes, by controller.
    pub passes: Calls,
    /// Calls that EC2 refused for their rate.
    pub throttled: u64,
}

impl Counters {
    /// Those of this text in the OpenMetrics format.
    pub fn read(metrics: &str) -> Self {
        Self {
            passes: sums(metrics, "freehold_passes_total", "controller"),
            throttled: sums(metrics, "freehold_ec2_calls_total", "outcome")
                .remove("throttled")
                .unwrap_or_default(),
        }
    }

    /// What was counted after these.
    pub fn since(&self, before: &Self) -> Self {
        let difference = |(controller, count): (&String, &u64)| {
            let more = count.saturating_sub(before.passes.get(controller).copied().unwrap_or_default());
            (more > 0).then(|| (controller.clone(), more))
        };
        Self {
            passes: self.passes.iter().filter_map(difference).collect(),
            throttled: self.throttled.saturating_sub(before.throttled),
        }
    }
}

/// The sum of a counter for each value of one of its labels.
fn sums(metrics: &str, counter: &str, label: &str) -> Calls {
    let mut sums = Calls::new();
    let lines = metrics.lines().filter_map(|line| line.strip_prefix(counter)?.strip_prefix('{'));
    for (labels, value) in lines.filter_map(|line| line.split_once("} ")) {
        let is_it = |part: &&str| part.split_once('=').is_some_and(|(name, _)| name == label);
        let of = labels.split(',').find(is_it).and_then(|part| part.split('"').nth(1)).unwrap_or_default();
        *sums.entry(of.to_owned()).or_default() += value.trim().parse::<u64>().unwrap_or_default();
    }
    sums
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use freehold::metrics::Metrics;

    use super::*;

    #[test]
    fn what_the_operator_serves_is_read() {
        let metrics = Metrics::new();
        let pass = |controller, outcome| metrics.pass(controller, outcome, Duration::from_millis(1));
        pass("node", "ok");
        pass("node", "ok");
        let before = Counters::read(&metrics.text().unwrap());
        pass("node", "failed");
        pass("database", "ok");
        metrics.ec2_call("RunInstances".to_owned(), "throttled");
        metrics.ec2_call("RunInstances".to_owned(), "ok");
        let after = Counters::read(&metrics.text().unwrap());
        let calls =
            |calls: &[(&str, u64)]| calls.iter().map(|(of, count)| ((*of).to_owned(), *count)).collect();
        assert_eq!(after, Counters { passes: calls(&[("database", 1), ("node", 3)]), throttled: 1 });
        let more = Counters { passes: calls(&[("database", 1), ("node", 1)]), throttled: 1 };
        assert_eq!(after.since(&before), more);
        assert_eq!(after.since(&after), Counters::default());
    }
}

//! Request and resource rates, as token buckets per action and account.
//!
//! Source: EC2 developer guide, "Request throttling for the Amazon EC2 API".

use super::{Model, records::Bucket};
use crate::{Refusal, Truth, params::Reader};

/// How much a bucket holds and how much comes back in a second.
type Rate = (f64, f64);

/// The buckets of an account that a call of this action takes from, about one resource: how much each holds,
/// and how much comes back in a second.
pub fn rates(action: &str) -> Vec<(f64, f64)> {
    [requests(action, false)].into_iter().chain(resources(action)).collect()
}

const DESCRIBE: Rate = (100.0, 20.0);
const DESCRIBE_ALL: Rate = (50.0, 10.0);
const MUTATE: Rate = (50.0, 5.0);

fn requests(action: &str, unfiltered: bool) -> Rate {
    match action {
        "RunInstances" | "StartInstances" => (5.0, 2.0),
        "TerminateInstances" | "CreateVolume" | "DeleteVolume" | "CreateSnapshot" | "DeleteSnapshot" => {
            (100.0, 5.0)
        }
        "CreateTags" | "DeleteTags" => (100.0, 10.0),
        _ if action.starts_with("Describe") && unfiltered => DESCRIBE_ALL,
        _ if crate::action::reads(action) => DESCRIBE,
        _ => MUTATE,
    }
}

fn resources(action: &str) -> Option<Rate> {
    match action {
        "RunInstances" | "StartInstances" => Some((1000.0, 2.0)),
        "TerminateInstances" | "StopInstances" => Some((1000.0, 20.0)),
        _ => None,
    }
}

impl Model {
    /// Takes what this request costs out of the buckets, or refuses it and takes nothing.
    pub(super) fn throttle(&mut self, reader: &Reader) -> Result<(), Refusal> {
        let Some(share) = self.rules.limits.rate else {
            return Ok(());
        };
        let action = reader.action().to_owned();
        let unfiltered = self.holds(Truth::UnfilteredDescribeRate)
            && action.starts_with("Describe")
            && !["Filter", "MaxResults", "NextToken"].iter().any(|key| reader.has(key))
            && !["InstanceId", "VolumeId", "SnapshotId"].iter().any(|key| reader.has(key));
        let mut costs = Vec::new();
        if self.holds(Truth::RequestRate) {
            let name = if unfiltered { format!("{action}:all") } else { format!("{action}:requests") };
            costs.push((name, requests(&action, unfiltered), 1.0));
        }
        if let Some(rate) = resources(&action).filter(|_| self.holds(Truth::ResourceRate)) {
            costs.push((format!("{action}:resources"), rate, f64::from(reader.resource_count())));
        }
        let mut after = Vec::new();
        for (name, rate, cost) in costs {
            let level = self.level(&name, rate, share) - cost;
            if level < 0.0 {
                return Err(Refusal::new("RequestLimitExceeded", "Request limit exceeded."));
            }
            after.push((name, level));
        }
        for (name, level) in after {
            self.state.buckets.insert(name, Bucket { level, at: self.state.now });
        }
        Ok(())
    }

    fn level(&self, name: &str, (burst, refill): Rate, share: f64) -> f64 {
        self.state.buckets.get(name).map_or(burst * share, |bucket| {
            let passed = self.state.now.duration_since(bucket.at).as_secs_f64();
            (bucket.level + passed * refill * share).min(burst * share)
        })
    }
}

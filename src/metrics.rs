//! Prometheus metrics of the operator.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

/// The operator's counters, registered once.
pub struct Metrics {
    registry: Registry,
    passes: Family<PassLabels, Counter>,
    pass_duration: Family<ControllerLabels, Histogram>,
    ec2_calls: Family<CallLabels, Counter>,
    inventory_age: Family<ResourceLabels, Gauge>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PassLabels {
    controller: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ControllerLabels {
    controller: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CallLabels {
    action: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResourceLabels {
    resource: &'static str,
}

impl Metrics {
    /// Empty metrics.
    pub fn new() -> Arc<Self> {
        let mut registry = Registry::with_prefix("freehold");
        let passes = Family::<PassLabels, Counter>::default();
        registry.register("passes", "Passes over objects, by controller and outcome", passes.clone());
        let pass_duration =
            Family::<ControllerLabels, Histogram>::new_with_constructor(|| Histogram::new(exponential_buckets(0.005, 2.0, 14)));
        registry.register_with_unit("pass_duration", "How long passes take", Unit::Seconds, pass_duration.clone());
        let ec2_calls = Family::<CallLabels, Counter>::default();
        registry.register(
            "ec2_calls",
            "Calls to EC2 on the wire, by action and outcome: ok, refused (4xx), failed (5xx), no_answer",
            ec2_calls.clone(),
        );
        let inventory_age = Family::<ResourceLabels, Gauge>::default();
        registry.register_with_unit(
            "inventory_age",
            "Since the last complete list of what EC2 has of ours",
            Unit::Seconds,
            inventory_age.clone(),
        );
        Arc::new(Self { registry, passes, pass_duration, ec2_calls, inventory_age })
    }

    /// Counts a pass.
    pub fn pass(&self, controller: &'static str, outcome: &'static str, took: Duration) {
        self.passes.get_or_create(&PassLabels { controller, outcome }).inc();
        self.pass_duration.get_or_create(&ControllerLabels { controller }).observe(took.as_secs_f64());
    }

    /// Counts a call to EC2 on the wire.
    pub fn ec2_call(&self, action: String, outcome: &'static str) {
        self.ec2_calls.get_or_create(&CallLabels { action, outcome }).inc();
    }

    /// Notes how old the inventory of a resource is, in seconds.
    pub fn inventory_age(&self, resource: &'static str, seconds: i64) {
        self.inventory_age.get_or_create(&ResourceLabels { resource }).set(seconds);
    }

    /// The metrics in the OpenMetrics text format.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_in_the_text_with_its_labels() {
        let metrics = Metrics::new();
        metrics.pass("node", "ok", Duration::from_millis(3));
        metrics.ec2_call("RunInstances".to_owned(), "ok");
        metrics.inventory_age("instances", 12);
        let text = metrics.text().unwrap();
        for line in [
            "freehold_passes_total{controller=\"node\",outcome=\"ok\"} 1",
            "freehold_ec2_calls_total{action=\"RunInstances\",outcome=\"ok\"} 1",
            "freehold_inventory_age_seconds{resource=\"instances\"} 12",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}

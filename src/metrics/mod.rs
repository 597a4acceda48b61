//! Prometheus metrics of the operator.

mod shown;

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry, Unit};

pub use shown::Shown;
use strum::IntoStaticStr;

use crate::api::database::Occurrence;

/// The operator's counters, registered once.
pub struct Metrics {
    registry: Registry,
    passes: Family<PassLabels, Counter>,
    pass_duration: Family<ControllerLabels, Histogram>,
    ec2_calls: Family<CallLabels, Counter>,
    inventory_age: Family<ResourceLabels, Gauge>,
    inventory_suspect: Family<ResourceLabels, Gauge>,
    unclaimed_instances: Gauge,
    unclaimed_volumes: Gauge,
    leader: Gauge,
    repairs: Gauge,
    machines_lost: Family<CauseLabels, Counter>,
    fences: Counter,
    fence_duration: Histogram,
    ready: Family<AfterLabels, Histogram>,
    joined: Histogram,
    occurrences: Family<OccurrenceLabels, Counter>,
    shown: Shown,
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

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CauseLabels {
    cause: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct VersionLabels {
    version: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct AfterLabels {
    after: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OccurrenceLabels {
    occurrence: &'static str,
}

/// After what a database is Ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum After {
    /// For the first time, since the Database was created.
    Creation,
    /// Something interrupted it.
    Interruption,
    /// It was paused and is resumed.
    Pause,
}

/// Registers a metric under this name.
fn registered<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

/// Registers a metric whose values are seconds.
fn registered_in_seconds<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register_with_unit(name, help, Unit::Seconds, metric.clone());
    metric
}

/// Registers a metric whose values are bytes.
fn registered_in_bytes<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register_with_unit(name, help, Unit::Bytes, metric.clone());
    metric
}

impl Metrics {
    /// Empty metrics.
    pub fn new() -> Arc<Self> {
        let mut registry = Registry::with_prefix("freehold");
        let to = &mut registry;
        let pass_durations = || Histogram::new(exponential_buckets(0.005, 2.0, 14));
        let ready_durations = || Histogram::new(exponential_buckets(1.0, 2.0, 16));
        let build: Family<VersionLabels, Gauge> =
            registered(to, "build_info", "1 for the operator's version", Family::default());
        build.get_or_create(&VersionLabels { version: env!("CARGO_PKG_VERSION") }).set(1);
        Arc::new(Self {
            passes: registered(to, "passes", "Reconciles, by controller and outcome", Family::default()),
            pass_duration: registered_in_seconds(
                to,
                "pass_duration",
                "Duration of reconciles",
                Family::new_with_constructor(pass_durations as fn() -> Histogram),
            ),
            ec2_calls: registered(
                to,
                "ec2_calls",
                "Calls to EC2 on the wire, by action and outcome: ok, throttled, refused (4xx), failed \
                (5xx), no_answer",
                Family::default(),
            ),
            inventory_suspect: registered(
                to,
                "inventory_suspect",
                "1 while the last full EC2 inventory sync shows fewer than half of the resources that \
                    statuses name, and proves no absence, by resource",
                Family::default(),
            ),
            inventory_age: registered_in_seconds(
                to,
                "inventory_age",
                "Time since the last full EC2 inventory sync, by resource",
                Family::default(),
            ),
            unclaimed_instances: registered(
                to,
                "unclaimed_instances",
                "Live EC2 instances with the tags of a Node that has not existed for --absence-window",
                Gauge::default(),
            ),
            unclaimed_volumes: registered(
                to,
                "unclaimed_volumes",
                "EBS volumes with the tags of a Volume that has not existed for --absence-window, and without a \
                    retention record",
                Gauge::default(),
            ),
            leader: registered(
                to,
                "leader",
                "1 for the operator that acts; 0 for one that stands by or refuses to act",
                Gauge::default(),
            ),
            repairs: registered(
                to,
                "repairs_underway",
                "Databases with a machine that is declared lost and not gone yet",
                Gauge::default(),
            ),
            machines_lost: registered(
                to,
                "machines_lost",
                "Machines that were declared lost, by cause",
                Family::default(),
            ),
            fences: registered(
                to,
                "fences_begun",
                "Machines whose fence was begun: EC2 was requested to stop them because they were declared \
                    lost",
                Counter::default(),
            ),
            fence_duration: registered_in_seconds(
                to,
                "fence_duration",
                "From the first sign that a machine is lost to the proof that nothing on it can write",
                Histogram::new(exponential_buckets(1.0, 2.0, 12)),
            ),
            ready: registered_in_seconds(
                to,
                "database_ready",
                "Until a database was Ready, by after what: its creation, an interruption, or a pause",
                Family::new_with_constructor(ready_durations as fn() -> Histogram),
            ),
            joined: registered_in_seconds(
                to,
                "machine_joined",
                "From the decision to launch a machine to its registration in the cluster",
                Histogram::new(exponential_buckets(1.0, 2.0, 13)),
            ),
            occurrences: registered(
                to,
                "occurrences",
                "What interrupted databases or was done to them, as in their status.history",
                Family::default(),
            ),
            shown: Shown::registered(to),
            registry,
        })
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

    /// Notes whether the inventory of a resource shows too little to prove an absence.
    pub fn inventory_suspect(&self, resource: &'static str, is_suspect: bool) {
        self.inventory_suspect.get_or_create(&ResourceLabels { resource }).set(is_suspect.into());
    }

    /// Notes how old the inventory of a resource is, in seconds.
    pub fn inventory_age(&self, resource: &'static str, seconds: i64) {
        self.inventory_age.get_or_create(&ResourceLabels { resource }).set(seconds);
    }

    /// So many live instances belong to no Node, and so many EBS volumes to neither a Volume nor a retention
    /// record.
    pub fn unclaimed(&self, instances: usize, volumes: usize) {
        self.unclaimed_instances.set(i64::try_from(instances).unwrap_or(i64::MAX));
        self.unclaimed_volumes.set(i64::try_from(volumes).unwrap_or(i64::MAX));
    }

    /// Notes whether this operator acts.
    pub fn leading(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }

    /// Notes how many databases have a machine that is declared lost and not gone yet.
    pub fn repairs_underway(&self, count: usize) {
        self.repairs.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Counts a machine that was declared lost.
    pub fn machine_lost(&self, cause: &str) {
        self.machines_lost.get_or_create(&CauseLabels { cause: cause.to_owned() }).inc();
    }

    /// Counts a machine that EC2 was requested to stop.
    pub fn fence_begun(&self) {
        self.fences.inc();
    }

    /// Notes how long it took from the first sign of a loss to its proof.
    pub fn fenced(&self, took: Duration) {
        self.fence_duration.observe(took.as_secs_f64());
    }

    /// Notes how long it took until a database was Ready.
    pub fn ready(&self, after: After, took: Duration) {
        self.ready.get_or_create(&AfterLabels { after: after.into() }).observe(took.as_secs_f64());
    }

    /// Notes how long it took until a machine had registered in the cluster.
    pub fn joined(&self, took: Duration) {
        self.joined.observe(took.as_secs_f64());
    }

    /// Counts what interrupted a database or was done to it.
    pub fn occurred(&self, what: Occurrence) {
        self.occurrences.get_or_create(&OccurrenceLabels { occurrence: what.into() }).inc();
    }

    /// What is shown of objects, as the copies of them have them.
    pub fn shown(&self) -> &Shown {
        &self.shown
    }

    /// The metrics in the OpenMetrics text format.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        // Two scrapes at once must not see each other's half of the series.
        let _read = self.shown.read();
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
        metrics.leading(true);
        metrics.repairs_underway(2);
        metrics.machine_lost("NodeNotReady");
        metrics.fence_begun();
        metrics.fenced(Duration::from_secs(3));
        metrics.ready(After::Creation, Duration::from_secs(70));
        metrics.joined(Duration::from_secs(40));
        metrics.occurred(Occurrence::EngineRestarted);
        let text = metrics.text().unwrap();
        for line in [
            "freehold_passes_total{controller=\"node\",outcome=\"ok\"} 1",
            "freehold_ec2_calls_total{action=\"RunInstances\",outcome=\"ok\"} 1",
            "freehold_inventory_age_seconds{resource=\"instances\"} 12",
            "freehold_leader 1",
            "freehold_repairs_underway 2",
            "freehold_machines_lost_total{cause=\"NodeNotReady\"} 1",
            "freehold_fences_begun_total 1",
            "freehold_fence_duration_seconds_count 1",
            concat!("freehold_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
            "freehold_database_ready_seconds_sum{after=\"creation\"} 70",
            "freehold_machine_joined_seconds_sum 40",
            "freehold_occurrences_total{occurrence=\"EngineRestarted\"} 1",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn scrapes_at_the_same_time_each_see_every_series_once() {
        let metrics = Metrics::new();
        metrics.shown().retained(|| vec![("team-a".to_owned(), 1)]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let text = metrics.text().unwrap();
                        assert!(
                            text.contains("freehold_retained_volumes{namespace=\"team-a\"} 1\n"),
                            "{text}"
                        );
                    }
                });
            }
        });
    }
}

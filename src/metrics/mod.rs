//! Prometheus metrics of the operator.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::runtime::reflector::Store;
use kube::{Resource, ResourceExt};
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry, Unit};

use crate::api::{ConditionType, Reason};

/// The operator's counters, registered once.
pub struct Metrics {
    registry: Registry,
    passes: Family<PassLabels, Counter>,
    pass_duration: Family<ControllerLabels, Histogram>,
    ec2_calls: Family<CallLabels, Counter>,
    inventory_age: Family<ResourceLabels, Gauge>,
    repairs: Gauge,
    machines_lost: Family<CauseLabels, Counter>,
    fences: Counter,
    fence_duration: Histogram,
    conditions: Family<ConditionLabels, Gauge>,
    objects: Mutex<Vec<Shown>>,
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
struct ConditionLabels {
    kind: String,
    namespace: String,
    name: String,
    r#type: String,
    status: String,
    reason: String,
}

/// Reads what is shown of the objects of one kind.
type Shown = Box<dyn Fn() -> Vec<ConditionLabels> + Send + Sync>;

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

impl Metrics {
    /// Empty metrics.
    pub fn new() -> Arc<Self> {
        let mut registry = Registry::with_prefix("freehold");
        let to = &mut registry;
        let pass_durations = || Histogram::new(exponential_buckets(0.005, 2.0, 14));
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
            inventory_age: registered_in_seconds(
                to,
                "inventory_age",
                "Time since the last full EC2 inventory sync, by resource",
                Family::default(),
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
            conditions: registered(
                to,
                "condition",
                "1 for the condition Ready of every object, and for every other that is not as it should be",
                Family::default(),
            ),
            objects: Mutex::default(),
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

    /// Notes how old the inventory of a resource is, in seconds.
    pub fn inventory_age(&self, resource: &'static str, seconds: i64) {
        self.inventory_age.get_or_create(&ResourceLabels { resource }).set(seconds);
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

    /// From now on the conditions of these objects are shown, as their copy has them at that time.
    pub fn show_conditions<K>(&self, objects: Store<K>, conditions: fn(&K) -> &[Condition])
    where
        K: Resource<DynamicType = ()> + Clone + Send + Sync + 'static,
    {
        let shown = move || {
            objects.state().iter().flat_map(|object| labels_of(object.as_ref(), conditions(object))).collect()
        };
        self.objects.lock().push(Box::new(shown));
    }

    /// The metrics in the OpenMetrics text format.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        // Written anew each time: a condition that has passed, or an object that is gone, leaves no series.
        self.conditions.clear();
        for shown in self.objects.lock().iter().flat_map(|objects| objects()) {
            self.conditions.get_or_create(&shown).set(1);
        }
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// What is shown of an object's conditions: a few series, however many conditions it has.
fn labels_of<'a, K>(object: &'a K, conditions: &'a [Condition]) -> impl Iterator<Item = ConditionLabels> + 'a
where
    K: Resource<DynamicType = ()>,
{
    conditions.iter().filter(|condition| is_shown(condition)).map(|condition| ConditionLabels {
        kind: K::kind(&()).into_owned(),
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
        r#type: condition.type_.clone(),
        status: condition.status.clone(),
        reason: condition.reason.clone(),
    })
}

fn is_shown(condition: &Condition) -> bool {
    let is_calm = match Reason::named(&condition.reason) {
        Some(Reason::AsExpected | Reason::UpToDate | Reason::Progressing) => true,
        Some(_) | None => false,
    };
    condition.type_ == ConditionType::Ready.as_str() || !is_calm
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use kube::runtime::reflector::store::Writer;
    use kube::runtime::watcher::Event;

    use super::*;
    use crate::api::Database;

    fn condition(kind: &str, status: &str, reason: &str) -> Condition {
        Condition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: String::new(),
            observed_generation: None,
            last_transition_time: Time(jiff::Timestamp::UNIX_EPOCH),
        }
    }

    fn database(conditions: &[Condition]) -> Database {
        let spec = serde_json::json!({"engine": {"type": "questdb", "version": "9.3.4"},
        "storage": {"size": "100Gi"}});
        serde_json::from_value(serde_json::json!({
            "apiVersion": "freehold.dev/v1alpha1", "kind": "Database",
            "metadata": {"name": "orders", "namespace": "team-a"}, "spec": spec,
            "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    #[test]
    fn what_is_not_as_it_should_be_is_shown_while_it_is_so() {
        let mut copy = Writer::default();
        let metrics = Metrics::new();
        metrics.show_conditions(copy.as_reader(), Database::conditions);
        let waiting = [
            condition("Ready", "False", "AwaitingNode"),
            condition("NodeReady", "False", "Launching"),
            condition("Stalled", "False", "Progressing"),
        ];
        copy.apply_watcher_event(&Event::Apply(database(&waiting)));
        let text = metrics.text().unwrap();
        let shown = |text: &str| {
            text.lines()
                .filter(|line| line.starts_with("freehold_condition{"))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let line = "freehold_condition{kind=\"Database\",namespace=\"team-a\",name=\"orders\",type=\"Ready\",status=\"False\",reason=\"AwaitingNode\"} 1";
        assert!(shown(&text).len() == 2 && text.contains(line), "{text}");

        let ready = [condition("Ready", "True", "AsExpected"), condition("NodeReady", "True", "AsExpected")];
        copy.apply_watcher_event(&Event::Apply(database(&ready)));
        let text = metrics.text().unwrap();
        assert!(shown(&text).len() == 1 && text.contains("type=\"Ready\",status=\"True\""), "{text}");

        copy.apply_watcher_event(&Event::Delete(database(&ready)));
        assert!(shown(&metrics.text().unwrap()).is_empty());
    }

    #[test]
    fn every_metric_is_in_the_text_with_its_labels() {
        let metrics = Metrics::new();
        metrics.pass("node", "ok", Duration::from_millis(3));
        metrics.ec2_call("RunInstances".to_owned(), "ok");
        metrics.inventory_age("instances", 12);
        metrics.repairs_underway(2);
        metrics.machine_lost("NodeNotReady");
        metrics.fence_begun();
        metrics.fenced(Duration::from_secs(3));
        let text = metrics.text().unwrap();
        for line in [
            "freehold_passes_total{controller=\"node\",outcome=\"ok\"} 1",
            "freehold_ec2_calls_total{action=\"RunInstances\",outcome=\"ok\"} 1",
            "freehold_inventory_age_seconds{resource=\"instances\"} 12",
            "freehold_repairs_underway 2",
            "freehold_machines_lost_total{cause=\"NodeNotReady\"} 1",
            "freehold_fences_begun_total 1",
            "freehold_fence_duration_seconds_count 1",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}

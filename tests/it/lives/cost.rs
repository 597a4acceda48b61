//! What databases cost: the requests of the operator to the API server and to EC2 for each of many that are
//! created or deleted at once, and those of an operator that starts anew, counted in virtual time.

use std::collections::BTreeMap;
use std::time::Duration;

use freehold_rig::Verb;
use serde_json::{Map, Value, json};

use super::house::{House, NAMESPACE, SLOW_ELECTION};
use super::lies::Lies;
use super::life::CALM;
use super::operators::Operators;

/// How many databases are created at once.
const DATABASES: usize = 20;

/// What one database may cost, from its creation until it is Ready, in requests. What is measured is below
/// it by less than a tenth; whoever needs more says why.
const LIMITS: [(&str, f64); 4] = [("reads", 53.0), ("writes", 53.0), ("events", 5.5), ("describes", 4.5)];

/// The same from its deletion until it is gone.
const LIMITS_OF_DELETION: [(&str, f64); 4] = [
    ("reads", 63.0),
    ("writes", 44.0),
    ("Get customresourcedefinitions.apiextensions.k8s.io", 12.0),
    ("Get namespaces", 5.0),
];

/// Creates many databases at once and counts until all are Ready.
pub async fn created() {
    let house = with_databases().await;
    judge(&house.counted(), &house.written(), &LIMITS);
    house.judge();
}

/// Deletes many databases at once and counts until all are gone.
pub async fn deleted() {
    let house = with_databases().await;
    let (counted, written) = (house.counted(), house.written());
    for number in 0..DATABASES {
        house.delete_in(NAMESPACE, &format!("db-{number:02}")).await;
    }
    let are_gone = |it: &House| it.server.objects("databases.freehold.dev").is_empty();
    house.until("all databases are gone", CALM, are_gone).await;
    judge(&since(&counted, house.counted()), &since(&written, house.written()), &LIMITS_OF_DELETION);
    house.judge();
}

/// For how long a start is counted: until it leads, since the Lease of the process before it was not
/// released, and beyond the minute in which nothing is read anew.
const START: Duration = Duration::from_mins(10);

/// Starts the operator of many databases anew, of which none has changed, and counts.
pub async fn restarted() {
    let house = with_databases().await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    let counted = house.counted();
    house.chaos.kill(Duration::from_secs(1));
    tokio::time::sleep(START).await;
    let counted = since(&counted, house.counted());
    for (what, count) in &counted {
        println!("{count:8}  {what}");
        let kind = |verb: &str| what.strip_prefix(verb).is_some_and(|kind| kind.starts_with(' '));
        if kind("Get") {
            assert!(*count < DATABASES / 4, "{count} times {what}: no object is read");
        } else if kind("List") {
            // Kubernetes nodes are copied by two labels.
            let most = if what == "List nodes" { 2 } else { 1 };
            assert!(*count <= most, "{count} times {what}: each kind is listed once");
        }
    }
    let of = |what: &str| counted.get(what).copied().unwrap_or_default();
    assert!(of("List databases.freehold.dev") == 1, "the operator has started");
    // That it leads is an event, and the NodeClass is checked anew, once for all databases.
    let others = of("writes") - of("events") - of("Patch nodeclasses.freehold.dev");
    assert_eq!(others, 0, "nothing is written of databases that have not changed");
    assert!(of("events") <= 1 && of("Patch nodeclasses.freehold.dev") <= 1, "once");
    house.judge();
}

/// What was counted since then.
fn since(before: &BTreeMap<String, usize>, mut now: BTreeMap<String, usize>) -> BTreeMap<String, usize> {
    for (what, count) in &mut now {
        *count -= before.get(what).copied().unwrap_or_default();
    }
    now.retain(|_, count| *count > 0);
    now
}

/// Prints what was counted and written, and holds it to the limits.
fn judge(counted: &BTreeMap<String, usize>, written: &BTreeMap<String, usize>, limits: &[(&str, f64)]) {
    for (what, count) in counted.iter().chain(written) {
        println!("{:8.2}  {what}", per_database(*count));
    }
    for (what, limit) in limits {
        let of_one = per_database(counted.get(*what).copied().unwrap_or_default());
        println!("{of_one:8.2}  {what} in all, of {limit}");
        assert!(
            of_one <= *limit,
            "a database costs {of_one} {what}, and {limit} are allowed: see the output"
        );
    }
}

/// Many databases, all Ready.
async fn with_databases() -> House {
    let mut house = House::build(1, Lies::none()).await;
    house.start_with(1, &SLOW_ELECTION);
    for number in 0..DATABASES {
        house.create_in(NAMESPACE, &format!("db-{number:02}"), &json!({})).await;
    }
    let are_ready = |it: &House| (0..DATABASES).all(|n| it.is_ready_in(NAMESPACE, &format!("db-{n:02}")));
    house.until("all databases are ready", CALM, are_ready).await;
    house
}

#[expect(clippy::cast_precision_loss, reason = "some thousands")]
fn per_database(count: usize) -> f64 {
    count as f64 / DATABASES as f64
}

impl House {
    /// The requests of the operators, by what they do. Those for the election and for the kubelets' Leases
    /// are not counted: they follow the clock, not the databases.
    fn counted(&self) -> BTreeMap<String, usize> {
        let mut counted = BTreeMap::new();
        let mut add = |what: String, count: usize| *counted.entry(what).or_default() += count;
        for ((caller, verb, resource), count) in self.server.requests() {
            if Operators::number(&caller).is_none() || resource.starts_with("leases.") {
                continue;
            }
            add(format!("{verb:?} {resource}"), count);
            match (verb, resource.as_str()) {
                (Verb::Get | Verb::List, _) => add("reads".to_owned(), count),
                (Verb::Watch, _) => {}
                (_, "events.events.k8s.io") => {
                    add("events".to_owned(), count);
                    add("writes".to_owned(), count);
                }
                _ => add("writes".to_owned(), count),
            }
        }
        for entry in self.ec2.journal() {
            add(entry.action.clone(), 1);
            if entry.action.starts_with("Describe") {
                add("describes".to_owned(), 1);
            }
        }
        counted
    }

    /// What the writes of statuses changed, by kind: fields, and conditions with what they became; those of
    /// which only the words changed in brackets.
    fn written(&self) -> BTreeMap<String, usize> {
        let mut written = BTreeMap::new();
        for change in self.server.changes() {
            let (Some(old), Some(new)) = (&change.old, &change.new) else { continue };
            if Operators::number(&change.caller).is_none() || old["status"] == new["status"] {
                continue;
            }
            let changed = changed(&old["status"], &new["status"]).join(", ");
            *written.entry(format!("status of {}: {changed}", change.resource)).or_default() += 1;
        }
        written
    }
}

fn changed(old: &Value, new: &Value) -> Vec<String> {
    let empty = Map::new();
    let fields = new.as_object().unwrap_or(&empty).iter();
    let other = fields.filter(|(field, value)| *field != "conditions" && old[*field] != **value);
    let mut changed: Vec<String> = other.map(|(field, _)| field.clone()).collect();
    let conditions = |status: &Value| status["conditions"].as_array().cloned().unwrap_or_default();
    let before = conditions(old);
    for condition in conditions(new) {
        let was = before.iter().find(|it| it["type"] == condition["type"]).cloned().unwrap_or_default();
        let kind = condition["type"].as_str().unwrap_or_default();
        if was["status"] != condition["status"] {
            changed.push(format!("{kind}={}", condition["status"].as_str().unwrap_or_default()));
        } else if was != condition {
            changed.push(format!("({kind})"));
        }
    }
    changed
}

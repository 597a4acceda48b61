//! What databases cost: the requests of the operator to the API server and to EC2 for each of many that are
//! created at once, counted in virtual time.

use std::collections::BTreeMap;

use freehold_rig::Verb;
use serde_json::json;

use super::house::{House, NAMESPACE, SLOW_ELECTION};
use super::lies::Lies;
use super::life::CALM;
use super::operators::Operators;

/// How many databases are created at once.
const DATABASES: usize = 20;

/// What one database may cost, from its creation until it is Ready, in requests. What is measured is below
/// it by less than a tenth; whoever needs more says why.
const LIMITS: [(&str, f64); 4] = [("reads", 55.0), ("writes", 60.0), ("events", 11.0), ("describes", 4.4)];

/// Creates many databases at once and counts until all are Ready.
pub async fn created() {
    let mut house = House::build(1, Lies::none()).await;
    house.start_with(1, &SLOW_ELECTION);
    for number in 0..DATABASES {
        house.create_in(NAMESPACE, &format!("db-{number:02}"), &json!({})).await;
    }
    let are_ready = |it: &House| (0..DATABASES).all(|n| it.is_ready_in(NAMESPACE, &format!("db-{n:02}")));
    house.until("all databases are ready", CALM, are_ready).await;
    let counted = house.counted();
    for (what, count) in &counted {
        println!("{:8.2}  {what}", per_database(*count));
    }
    for (what, limit) in LIMITS {
        let of_one = per_database(counted.get(what).copied().unwrap_or_default());
        println!("{of_one:8.2}  {what} in all, of {limit}");
        assert!(of_one <= limit, "a database costs {of_one} {what}, and {limit} are allowed: see the output");
    }
    house.judge();
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
}

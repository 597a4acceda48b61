//! Lives in which the settings of a database change: what the engine takes while it runs restarts nothing,
//! what is wrong restarts nothing either, and the rest restarts once.

use std::time::Duration;

use serde_json::{Value, json};

use super::blow::Strike;
use super::configured::{BAD, TAKEN};
use super::house::House;
use super::lies::Lies;

/// Longer than an attempt in doubt takes to be proven absent.
const LONG: Duration = Duration::from_secs(4 * 3600);

/// A PostgreSQL has a setting that is taken, a wrong value, its correction, one that is taken back at once,
/// and one that needs a restart; an operator is struck at one of its writes or calls. How many of these there
/// were before and after.
pub async fn changed(strike: Option<Strike>) -> (usize, usize) {
    let (takes, restarts) = (TAKEN, "max_connections");
    let mut house = House::build(1, Lies { strike, ..Lies::none() }).await;
    house.start();
    let engine = json!({"type": "postgresql", "version": "17.6"});
    house.create(&json!({"deletionPolicy": "Delete", "engine": engine})).await;
    house.until_ready(LONG).await;
    let (before, pod) = (house.chaos.effects(), house.uid_of_pod());
    house.patch(&json!({"config": {takes: "2"}})).await;
    house.until_config("InForce", &json!({takes: "2"})).await;
    assert_eq!(house.runs_with(takes).as_deref(), Some("2"));
    house.patch(&json!({"config": {takes: BAD}})).await;
    house.until_config("Rejected", &json!({takes: "2"})).await;
    assert_eq!(house.config()["rejected"]["message"], "invalid value: \"lots\"");
    assert_eq!(house.runs_with(takes).as_deref(), Some("2"));
    house.patch(&json!({"config": {takes: "3"}})).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    house.patch(&json!({"config": {takes: "2"}})).await;
    house.until_config("InForce", &json!({takes: "2"})).await;
    house.patch(&json!({"config": {takes: null}})).await;
    house.until_config("InForce", &Value::Null).await;
    assert_eq!(house.runs_with(takes), None);
    assert_eq!(house.uid_of_pod(), pod, "nothing restarts");
    house.patch(&json!({"config": {takes: "4", restarts: "5"}})).await;
    house.until_config("InForce", &json!({takes: "4", restarts: "5"})).await;
    let after = house.chaos.effects();
    assert_eq!((house.runs_with(takes), house.runs_with(restarts)), (Some("4".into()), Some("5".into())));
    assert_ne!(house.uid_of_pod(), pod);
    let history = house.database().unwrap_or_default()["status"]["history"].clone();
    let what = |it: &Value| (it["what"].clone(), it["count"].clone());
    let all: Vec<(Value, Value)> = history.as_array().unwrap().iter().map(what).collect();
    assert_eq!(all, [(json!("Restarted"), json!(1))], "it restarts once");
    house.end_at_rest(LONG).await;
    (before, after)
}

impl House {
    pub(super) fn pod(&self) -> Value {
        self.server.objects("pods").first().map(|pod| pod.as_ref().clone()).unwrap_or_default()
    }

    pub(super) fn uid_of_pod(&self) -> Value {
        self.pod()["metadata"]["uid"].clone()
    }

    fn config(&self) -> Value {
        self.database().unwrap_or_default()["status"]["config"].clone()
    }

    /// What the engine that runs has as the value of this key.
    fn runs_with(&self, key: &str) -> Option<String> {
        let address = self.pod()["status"]["podIP"].as_str().unwrap_or_default().to_owned();
        self.configured.of(&address, key)
    }

    /// Waits until the settings are in this state, and those in force are these.
    async fn until_config(&self, state: &str, in_force: &Value) {
        let is_so = |it: &Self| {
            it.configured.look(&it.server, it.ec2.now());
            let database = it.database().unwrap_or_default();
            let conditions = database["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let holds = |kind: &str| {
                let is_it = |it: &Value| it["type"] == kind && it["status"] == "True";
                let generation = &database["metadata"]["generation"];
                conditions.iter().any(|it| is_it(it) && it["observedGeneration"] == *generation)
            };
            let config = &database["status"]["config"];
            let is_shown = config["state"] == state && config["inForce"] == *in_force;
            is_shown && holds(if state == "Rejected" { "Stalled" } else { "Ready" }) && holds("Available")
        };
        self.until(&format!("the settings are {state}: {in_force}"), LONG, is_so).await;
    }
}

//! Lives in which the password of a database is rotated: at no time does the Secret have none that the engine
//! takes.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::blow::Strike;
use super::house::House;
use super::lies::Lies;

/// Longer than an attempt in doubt takes to be proven absent.
const LONG: Duration = Duration::from_secs(4 * 3600);

/// PostgreSQL is given two passwords one after the other, and an operator is struck at one of its writes or
/// calls. How many of these there were before the first, and after the second.
pub async fn while_it_serves(strike: Option<Strike>) -> (usize, usize) {
    let house = house(strike, &json!({"engine": {"type": "postgresql", "version": "17.6"}})).await;
    let (before, first, pod) = (house.chaos.effects(), house.password(), house.engine_pod());
    let is_known = |it: &House| {
        let taken = it.engine_password.taken();
        let known = [Some(it.password()), it.secret("next-password")];
        assert!(
            taken.is_none() || known.contains(&taken),
            "the Secret has no password that the engine takes"
        );
    };
    for generation in [2, 3] {
        house.patch(&json!({"access": {"passwordGeneration": generation}})).await;
        house.until_rotated(generation, is_known).await;
        assert_eq!(house.engine_password.taken(), Some(house.password()));
    }
    let after = house.chaos.effects();
    assert_ne!(house.password(), first);
    assert_eq!(house.engine_pod()["metadata"]["uid"], pod["metadata"]["uid"], "nothing restarts");
    house.end_at_rest(LONG).await;
    (before, after)
}

/// QuestDB is restarted with another password, and an operator is struck at one of its writes or calls. How
/// many of these there were before that, and after it.
pub async fn by_a_restart(strike: Option<Strike>) -> (usize, usize) {
    let house = house(strike, &json!({})).await;
    let (before, first) = (house.chaos.effects(), house.password());
    // Each start of an engine has an address of its own here, and keeps the password that it began with.
    let began_with = Mutex::new(BTreeMap::from([(house.address(), first.clone())]));
    let is_known = |it: &House| {
        let address = it.address();
        if !address.is_empty() {
            let mut began_with = began_with.lock();
            let password = began_with.entry(address).or_insert_with(|| it.password());
            assert_eq!(*password, it.password(), "the Secret has no password that the engine takes");
        }
    };
    house.patch(&json!({"access": {"passwordGeneration": 2}})).await;
    house.until_rotated(2, is_known).await;
    let after = house.chaos.effects();
    assert_ne!(house.password(), first);
    assert_eq!(began_with.lock().len(), 2, "it restarts once");
    let history = house.database().unwrap_or_default()["status"]["history"].clone();
    let whats: Vec<&str> = history.as_array().unwrap().iter().filter_map(|it| it["what"].as_str()).collect();
    assert_eq!(whats, ["Restarted"], "{history}");
    house.end_at_rest(LONG).await;
    (before, after)
}

async fn house(strike: Option<Strike>, engine: &Value) -> House {
    let mut house = House::build(1, Lies { strike, ..Lies::none() }).await;
    house.start();
    let mut spec = json!({"deletionPolicy": "Delete"});
    crate::kit::objects::merge(&mut spec, engine);
    house.create(&spec).await;
    house.until_ready(LONG).await;
    house
}

impl House {
    /// What the Secret has under this key.
    fn secret(&self, key: &str) -> Option<String> {
        let data = self.passwords().into_iter().next()?;
        let text = STANDARD.decode(data[key].as_str()?).unwrap();
        Some(String::from_utf8(text).unwrap())
    }

    fn password(&self) -> String {
        self.secret("password").unwrap()
    }

    fn engine_pod(&self) -> Value {
        self.server.objects("pods").first().map(|pod| pod.as_ref().clone()).unwrap_or_default()
    }

    fn address(&self) -> String {
        self.engine_pod()["status"]["podIP"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits until this password is in force, and looks at each moment before.
    async fn until_rotated(&self, generation: i64, look: impl Fn(&Self)) {
        let is_rotated = |it: &Self| {
            look(it);
            let database = it.database().unwrap_or_default();
            let conditions = database["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let holds = |kind: &str| {
                let is_it = |it: &&Value| it["type"] == kind && it["status"] == "True";
                conditions
                    .iter()
                    .any(|it| is_it(&it) && it["observedGeneration"] == database["metadata"]["generation"])
            };
            database["status"]["passwordGeneration"] == generation
                && holds("PasswordRotated")
                && holds("Ready")
        };
        self.until(&format!("password generation {generation} is in force"), LONG, is_rotated).await;
        assert_eq!(self.secret("next-password"), None);
        assert!(self.secret("uri").unwrap().contains(&self.password()));
    }
}

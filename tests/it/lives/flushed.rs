//! Lives in which a PostgreSQL is stopped by choice: it writes what it has in memory to its volume first,
//! while it serves, and nothing waits for one that does not answer, or whose machine is lost.

use std::time::Duration;

use ec2sim::Outside;
use serde_json::{Value, json};

use super::blow::Strike;
use super::house::House;
use super::lies::Lies;
use super::{SAMPLE_OF_HOURS, each, judge, struck_in_a_part};

/// Longer than an attempt in doubt takes to be proven absent.
const LONG: Duration = Duration::from_secs(4 * 3600);

/// How long a CHECKPOINT takes that ends.
const TAKES: Duration = Duration::from_secs(60);

/// Shortly before its end.
const MOST_OF_IT: Duration = Duration::from_secs(50);

/// How long one takes that does not.
const DAYS: Duration = Duration::from_secs(3 * 24 * 3600);

/// For how many seconds a stop waits for it.
const LIMIT: u64 = 300;

#[test]
fn an_engine_is_flushed_before_each_stop_by_choice_whatever_an_operator_is_struck_at() {
    struck_in_a_part(SAMPLE_OF_HOURS, 10, before_each_stop);
}

#[test]
fn a_stop_follows_though_the_engine_does_not_answer() {
    judge(each(&[(1, ())], |()| never_answered()));
}

#[test]
fn nothing_waits_for_an_engine_whose_machine_is_lost() {
    judge(each(&[(1, ())], |()| lost_meanwhile()));
}

async fn house(strike: Option<Strike>, takes: Duration) -> House {
    let mut house = House::build(1, Lies { strike, ..Lies::none() }).await;
    house.start();
    house.configured.flush_takes(takes);
    let engine = json!({"type": "postgresql", "version": "17.6"});
    house.create(&json!({"deletionPolicy": "Delete", "engine": engine})).await;
    house.until_ready(LONG).await;
    house
}

/// Restarted, moved and paused; an operator is struck at one of its writes or calls. How many of these there
/// were before and after.
async fn before_each_stop(strike: Option<Strike>) -> (usize, usize) {
    let is_struck = strike.is_some();
    let house = house(strike, TAKES).await;
    let before = house.chaos.effects();
    let changes = [
        json!({"resources": {"requests": {"cpu": "1"}}}),
        json!({"instanceTypes": ["m7i.large"]}),
        json!({"running": false}),
    ];
    for (number, change) in (1..).zip(&changes) {
        let (pod, flushes) = (house.uid_of_pod(), house.configured.flushed().len());
        house.patch(change).await;
        house.until("a CHECKPOINT begins", LONG, |it| it.configured.flushed().len() > flushes).await;
        if !is_struck {
            tokio::time::sleep(MOST_OF_IT).await;
            assert!(house.serves_in(&pod), "it is stopped before its CHECKPOINT has ended");
        }
        house.until("it is stopped", LONG, |it| it.uid_of_pod() != pod).await;
        if number < changes.len() {
            house.until_ready(LONG).await;
        }
        let all = house.configured.flushed().len();
        assert!(all == number || is_struck, "{all} for {number} stops");
    }
    house.until("the database is paused", LONG, |house| house.live().is_empty()).await;
    let after = house.chaos.effects();
    house.end_at_rest(LONG).await;
    let all = house.configured.flushed().len();
    assert!(all == changes.len() || is_struck, "a deletion awaits none");
    (before, after)
}

/// The stop follows after its time, and the next one anew.
async fn never_answered() {
    let house = house(None, DAYS).await;
    for cpu in ["1", "2"] {
        let pod = house.uid_of_pod();
        house.patch(&json!({"resources": {"requests": {"cpu": cpu}}})).await;
        let began = house.begun().await;
        house.until("it is stopped", LONG, |it| !it.serves_in(&pod)).await;
        let waited = house.age().saturating_sub(began).as_secs();
        assert!((LIMIT - 10..LIMIT + 20).contains(&waited), "{waited} s");
        house.until_ready(LONG).await;
    }
    assert_eq!(house.configured.flushed().len(), 2);
    house.end_at_rest(LONG).await;
}

/// The machine ends while a move and a pause wait for the engine on it.
async fn lost_meanwhile() {
    let house = house(None, DAYS).await;
    house.patch(&json!({"running": false})).await;
    let began = house.begun().await;
    house.strike(&Outside::Terminate);
    let is_stopped = |it: &House| it.server.objects("statefulsets.apps")[0]["spec"]["replicas"] == json!(0);
    house.until("its StatefulSet is stopped", LONG, is_stopped).await;
    let waited = house.age().saturating_sub(began).as_secs();
    assert!(waited < LIMIT / 2, "{waited} s");
    house.until("the database is paused", LONG, |house| house.live().is_empty()).await;
    house.end_at_rest(LONG).await;
}

impl House {
    /// Waits until the next CHECKPOINT begins: the age of the house then.
    async fn begun(&self) -> Duration {
        let before = self.configured.flushed().len();
        self.until("a CHECKPOINT begins", LONG, |it| it.configured.flushed().len() > before).await;
        self.age()
    }

    /// Whether the engine goes on in this pod.
    fn serves_in(&self, uid: &Value) -> bool {
        let pod = self.pod();
        pod["metadata"]["uid"] == *uid && pod["metadata"]["deletionTimestamp"].is_null()
    }
}

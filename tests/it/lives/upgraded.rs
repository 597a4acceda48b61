//! Lives in which the image of a database changes: one that cannot be pulled is left for the one that served,
//! and so is one that does not serve, where a backup was taken before it was started.

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::blow::Strike;
use super::house::House;
use super::lies::Lies;
use super::{SAMPLE_OF_HOURS, struck_in_a_part};

/// Longer than an attempt in doubt takes to be proven absent.
const LONG: Duration = Duration::from_secs(4 * 3600);

/// What the first image is called, one that no registry has, and one that is there.
const FIRST: &str = "registry.example/engine:1";
const NONE: &str = "registry.example/does-not-exist:2";
const SECOND: &str = "registry.example/engine:2";
/// One that is started, and never accepts connections.
const UNREADY: &str = "registry.example/never-ready:2";

/// A database goes back from an image that cannot be pulled, stays there, and takes one that can be; an
/// operator is struck at one of its writes. How many of these there were before and after.
async fn to_no_image_and_back(strike: Option<Strike>) -> (usize, usize) {
    let mut house = House::build(1, Lies { strike, ..Lies::none() }).await;
    house.start();
    let custom = json!({"image": FIRST, "port": 8812, "dataPath": "/data"});
    let engine = json!({"type": "custom", "version": null, "custom": custom});
    house.create(&json!({"deletionPolicy": "Delete", "engine": engine})).await;
    house.until_ready(LONG).await;
    let before = house.chaos.effects();
    house.image(NONE).await;
    house.until("the database being back", LONG, |it| it.said() == "WentBack" && it.is_available()).await;
    assert_eq!(house.running(), FIRST);
    let pod = house.uid_of_pod();
    tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
    assert_eq!(house.uid_of_pod(), pod, "the image is not tried again");
    house.image(SECOND).await;
    house.until_ready(LONG).await;
    assert_eq!(house.running(), SECOND);
    let after = house.chaos.effects();
    house.end_at_rest(LONG).await;
    (before, after)
}

/// A database changes to an engine that does not serve, is back with the data of before, and changes to one
/// that does; an operator is struck at one of its writes or calls. How many of these there were before and
/// after.
async fn behind_a_backup(strike: Option<Strike>) -> (usize, usize) {
    let mut house = House::build(1, Lies { strike, ..Lies::none() }).await;
    house.start();
    let custom = json!({"image": FIRST, "port": 8812, "dataPath": "/data"});
    let engine = json!({"type": "custom", "version": null, "custom": custom});
    let policy = json!({"timeoutMinutes": 5});
    house.create(&json!({"deletionPolicy": "Delete", "engine": engine, "upgrade": policy})).await;
    house.until_ready(LONG).await;
    let first = house.attached();
    let before = house.chaos.effects();
    house.goes_back_from(UNREADY).await;
    // Also where it was in doubt for too long whether EC2 took the snapshot.
    assert_eq!(house.upgrade()["wentBack"]["dataRestored"], true);
    assert_eq!(house.running(), FIRST);
    let second = house.attached();
    assert!(second != first, "another EBS volume serves");
    let stopped = house.upgrade()["snapshotID"].clone();
    assert_eq!(house.restored_from(&second).map(Value::String), Some(stopped));
    assert!(house.ec2.volumes().iter().any(|it| it.id == first), "what the changed engine wrote is kept");
    let pod = house.uid_of_pod();
    tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
    assert_eq!(house.uid_of_pod(), pod, "the image is not tried again");
    house.image(SECOND).await;
    house.until_ready(LONG).await;
    assert_eq!(house.running(), SECOND);
    assert_eq!(house.attached(), second, "no data is exchanged for an engine that serves");
    assert!(house.upgrade()["endedAt"].is_string() && house.upgrade()["wentBack"].is_null());
    let after = house.chaos.effects();
    house.end_at_rest(LONG).await;
    (before, after)
}

#[test]
fn a_database_goes_back_from_an_image_that_cannot_be_pulled_whatever_an_operator_is_struck_at() {
    struck_in_a_part(SAMPLE_OF_HOURS, 7, to_no_image_and_back);
}

#[test]
fn a_database_goes_back_from_an_engine_that_does_not_serve_whatever_an_operator_is_struck_at() {
    struck_in_a_part(SAMPLE_OF_HOURS, 20, behind_a_backup);
}

impl House {
    fn upgrade(&self) -> Value {
        self.database().unwrap_or_default()["status"]["upgrade"].clone()
    }

    async fn goes_back_from(&self, image: &str) {
        self.image(image).await;
        self.until("it goes back", LONG, |it| it.said() == "WentBack" && it.is_available()).await;
    }

    async fn image(&self, image: &str) {
        self.patch(&json!({"engine": {"custom": {"image": image}}})).await;
    }

    /// The image of the engine's pod.
    fn running(&self) -> String {
        self.pod()["spec"]["containers"][0]["image"].as_str().unwrap_or_default().to_owned()
    }

    fn condition(&self, kind: &str) -> Value {
        let database = self.database().unwrap_or_default();
        let all = database["status"]["conditions"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|it| it["type"] == kind).unwrap_or_default()
    }

    /// The reason of the condition Ready.
    fn said(&self) -> String {
        self.condition("Ready")["reason"].as_str().unwrap_or_default().to_owned()
    }

    fn is_available(&self) -> bool {
        self.condition("Available")["status"] == "True"
    }
}

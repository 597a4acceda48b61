//! Lives in which the image of a database changes: one that cannot be pulled is left for the one that served.

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::blow::Strike;
use super::house::House;
use super::lies::Lies;

/// Longer than an attempt in doubt takes to be proven absent.
const LONG: Duration = Duration::from_secs(4 * 3600);

/// What the first image is called, one that no registry has, and one that is there.
const FIRST: &str = "registry.example/engine:1";
const NONE: &str = "registry.example/does-not-exist:2";
const SECOND: &str = "registry.example/engine:2";

/// A database goes back from an image that cannot be pulled, stays there, and takes one that can be; an
/// operator is struck at one of its writes. How many of these there were before and after.
pub async fn to_no_image_and_back(strike: Option<Strike>) -> (usize, usize) {
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

impl House {
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

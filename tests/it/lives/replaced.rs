//! Lives in which the data of a database is replaced in place by that of a backup, and comes back where no
//! engine serves with that.

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::blow::Strike;
use super::house::House;
use super::lies::Lies;

/// Longer than an attempt in doubt takes to be proven absent.
const LONG: Duration = Duration::from_secs(4 * 3600);

/// What the image is called, and one that no registry has: no engine can serve the data.
const IMAGE: &str = "registry.example/engine:1";
const NONE: &str = "registry.example/does-not-exist:2";

/// A database goes on with the data of a backup, then goes back from data that nothing can serve, and from a
/// restore that is taken back; an operator is struck at one of its writes or calls. How many of these there
/// were before and after.
pub async fn and_back(strike: Option<Strike>) -> (usize, usize) {
    let mut house = House::build(1, Lies { strike, ..Lies::none() }).await;
    house.start();
    house.create(&json!({"deletionPolicy": "Delete", "engine": engine(IMAGE)})).await;
    house.until_ready(LONG).await;
    house.back_up("one", "Retain").await;
    house.until_ended(&["one"]).await;
    let before = house.chaos.effects();
    let first = house.attached();
    house.replace(1, IMAGE).await;
    house.until("the data is that of the backup", LONG, |it| it.has_ended(1)).await;
    house.until_ready(LONG).await;
    let second = house.attached();
    assert!(second != first, "another EBS volume serves");
    assert!(house.restored_from(&second).is_some());

    house.replace(2, NONE).await;
    house.until("it goes back", LONG, |it| it.in_place()["wentBack"].is_object()).await;
    house.patch(&json!({"engine": engine(IMAGE)})).await;
    house.until("it is back", LONG, |it| it.has_ended(2)).await;
    assert_eq!(house.attached(), second, "the data of before serves again");
    house.patch(&json!({"restoreInPlace": null})).await;
    house.until_ready(LONG).await;

    house.replace(3, IMAGE).await;
    house.until("it has begun", LONG, |it| it.in_place()["generation"] == 3).await;
    house.patch(&json!({"restoreInPlace": null})).await;
    house.until("it is over", LONG, |it| it.has_ended(3)).await;
    house.until_ready(LONG).await;
    let after = house.chaos.effects();
    let history = house.database().unwrap()["status"]["history"].to_string();
    assert!(history.contains("a restore in place") && !history.contains("PodReplaced"), "{history}");
    for volume in [&first, &second] {
        assert!(house.ec2.volumes().iter().any(|it| it.id == *volume), "{volume} is kept");
    }
    house.end_at_rest(LONG).await;
    (before, after)
}

fn engine(image: &str) -> Value {
    json!({"type": "custom", "version": null, "custom": {"image": image, "port": 8812, "dataPath": "/data"}})
}

impl House {
    async fn replace(&self, generation: i64, image: &str) {
        let request = json!({"generation": generation, "backupName": "one", "timeoutMinutes": 5});
        self.patch(&json!({"engine": engine(image), "restoreInPlace": request})).await;
    }

    fn in_place(&self) -> Value {
        self.database().unwrap_or_default()["status"]["restoredInPlace"].clone()
    }

    pub(super) fn has_ended(&self, generation: i64) -> bool {
        let record = self.in_place();
        record["generation"] == generation && record["endedAt"].is_string()
    }

    /// The EBS volume of the Database's Volume.
    pub(super) fn attached(&self) -> String {
        let volumes = self.server.objects("volumes.freehold.dev");
        let [volume] = volumes.as_slice() else { panic!("{} Volumes", volumes.len()) };
        volume["status"]["volumeID"].as_str().unwrap().to_owned()
    }

    pub(super) fn restored_from(&self, volume: &str) -> Option<String> {
        self.ec2.volumes().into_iter().find(|it| it.id == volume)?.snapshot_id
    }
}

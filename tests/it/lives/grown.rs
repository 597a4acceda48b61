//! Lives in which a file system fills up: its volume grows by itself, once for each need and up to its limit.

use std::time::Duration;

use serde_json::{Value, json};

use super::blow::Strike;
use super::house::House;
use super::lies::Lies;

/// Longer than EC2 optimizes a volume that was modified, and an attempt in doubt takes to be proven absent.
const LONG: Duration = Duration::from_secs(36 * 3600);

/// A volume of 100 GiB may have 150: it grows to 120, to 144 and to these, and no further, and keeps them
/// without the policy; an operator is struck at one of its writes or calls. How many of these there were
/// before and after.
pub async fn by_itself(strike: Option<Strike>) -> (usize, usize) {
    let mut house = House::build(1, Lies { strike, ..Lies::none() }).await;
    house.start();
    let storage = json!({"size": "100Gi", "autoGrow": {"maxSize": "150Gi"}});
    house.create(&json!({"deletionPolicy": "Delete", "storage": storage})).await;
    house.until_ready(LONG).await;
    let (before, pod) = (house.chaos.effects(), house.uid_of_pod());
    house.disks.fill(79);
    hour().await;
    assert_eq!(house.sizes(), (100, json!(null)), "79 % is not 80");
    for (used, size) in [(80, 120), (100, 144), (120, 150)] {
        house.disks.fill(used);
        house.until_grown(size).await;
        hour().await;
        assert_eq!(house.sizes(), (size, json!(format!("{size}Gi"))));
    }
    house.disks.fill(149);
    house.until("it may grow no further", LONG, |it| it.auto_grow()["state"] == "AtMaximum").await;
    house.patch(&json!({"storage": {"autoGrow": null}})).await;
    house.until("it grows no more", LONG, |it| it.auto_grow()["state"] == "Off").await;
    house.until_ready(LONG).await;
    let after = house.chaos.effects();
    assert_eq!(house.sizes(), (150, json!("150Gi")));
    assert_eq!(house.uid_of_pod(), pod, "nothing restarts");
    house.end_at_rest(LONG).await;
    (before, after)
}

async fn hour() {
    tokio::time::sleep(Duration::from_secs(3600)).await;
}

impl House {
    fn auto_grow(&self) -> Value {
        self.database().unwrap_or_default()["status"]["autoGrow"].clone()
    }

    /// The size of the EBS volume in GiB, and the one that the status says Freehold has given it.
    fn sizes(&self) -> (u32, Value) {
        (
            self.ec2.volumes().iter().map(|volume| volume.shape.size).max().unwrap(),
            self.auto_grow()["size"].clone(),
        )
    }

    async fn until_grown(&self, size: u32) {
        self.until("the volume has grown", LONG, |it| it.sizes().0 >= size).await;
        self.until_ready(LONG).await;
    }
}

//! A life in which the image of a database changes: an engine that serves is not ended for an image that its
//! machine cannot pull, and an image that only does not arrive holds nothing up for long.

use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::house::House;
use super::lies::Lies;

const LONG: Duration = Duration::from_secs(4 * 3600);

/// An image that no registry has, one that does not arrive, and one that is there.
pub async fn changed() {
    let mut house = House::build(1, Lies::none()).await;
    house.start();
    let custom = json!({"image": "registry.example/engine:1", "port": 8812, "dataPath": "/data"});
    house.create(&json!({"deletionPolicy": "Delete", "engine": {"type": "custom", "version": null, "custom": custom}})).await;
    house.until_ready(LONG).await;
    let first = house.pod_named("orders-0");
    house.image("registry.example/does-not-exist:2").await;
    house.until("the kubelet's answer being said", LONG, |it| it.reason() == "ImageNotPulled").await;
    tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
    let kept = house.pod_named("orders-0");
    assert_eq!(kept["metadata"]["uid"], first["metadata"]["uid"], "the engine is not ended");
    assert_eq!(house.condition("Available")["status"], "True");
    let message = house.condition("Ready")["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("does-not-exist:2") && message.contains("not found"), "{message}");
    assert_ne!(house.pod_named("orders-0-pull"), Value::Null);
    house.image("registry.example/engine:2").await;
    house.until_ready(LONG).await;
    let second = house.pod_named("orders-0");
    assert_eq!(second["spec"]["containers"][0]["image"], "registry.example/engine:2");
    house.until("the pod that pulled being gone", LONG, |it| it.pod_named("orders-0-pull").is_null()).await;
    house.image("registry.example/never-arrives:3").await;
    let is_replaced = |it: &House| {
        let pod = it.pod_named("orders-0");
        !pod.is_null() && pod["metadata"]["uid"] != second["metadata"]["uid"]
    };
    house.until("the pod being replaced all the same", Duration::from_secs(900), is_replaced).await;
    house.image("registry.example/engine:4").await;
    house.until_ready(LONG).await;
    house.rest().await;
    house.delete().await;
    house.until_gone(LONG).await;
    assert_eq!(house.server.objects("pods").len(), 0);
    house.rest().await;
    house.judge();
}

impl House {
    async fn image(&self, image: &str) {
        self.patch(&json!({"engine": {"custom": {"image": image}}})).await;
    }

    fn pod_named(&self, name: &str) -> Value {
        let all = self.server.objects("pods");
        let found = all.iter().find(|pod| pod["metadata"]["name"] == name);
        found.map(|pod| pod.as_ref().clone()).unwrap_or_default()
    }

    fn condition(&self, kind: &str) -> Value {
        let database = self.database().unwrap_or_default();
        let all = database["status"]["conditions"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|it| it["type"] == kind).unwrap_or_default()
    }

    fn reason(&self) -> String {
        self.condition("Ready")["reason"].as_str().unwrap_or_default().to_owned()
    }
}

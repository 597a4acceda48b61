//! What the operator's copies do not show: an earlier database of the name, and an object without our labels.

use freehold_rig::Hand;
use serde_json::json;

use super::house::House;
use super::lies::Lies;
use super::life::CALM;

/// A database is created in the minute in which one of its name ended: the Secret that the operator still
/// remembers is not its own.
pub async fn recreated() {
    let house = quiet_house().await;
    house.create(&json!({"deletionPolicy": "Delete"})).await;
    house.until_ready(CALM).await;
    let passwords = house.passwords();
    house.delete().await;
    house.until_gone(CALM).await;
    house.create(&json!({"deletionPolicy": "Delete"})).await;
    house.until_ready(CALM).await;
    // The rules are not judged: they know one database of a name, whose credentials never change.
    assert_ne!(house.passwords(), passwords, "credentials of its own");
}

/// A policy of the cluster takes our label off the pod before the engine answers.
pub async fn unlabelled_pod() {
    let house = quiet_house().await;
    house.create(&json!({})).await;
    house.until("there is a pod", CALM, |it| !it.server.objects("pods").is_empty()).await;
    assert!(!house.is_ready(), "the engine must not have answered yet");
    let patch = json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": null}}});
    for pod in house.server.objects("pods") {
        Hand::of(&house.server, "policy").merge("pods", &pod, "", &patch);
    }
    house.until_ready(CALM).await;
    house.judge();
}

async fn quiet_house() -> House {
    let mut house = House::build(1, Lies::none()).await;
    house.start();
    house
}

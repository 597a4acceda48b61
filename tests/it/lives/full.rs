//! A life in which the file system of a database is nearly full: no checkpoint is requested for a backup of
//! it until there is room again.

use std::time::Duration;

use serde_json::json;

use super::house::{House, SLOW_HEARTBEATS};
use super::lies::Lies;
use super::{each, judge};

/// Longer than EC2 optimizes a volume that was modified.
const LONG: Duration = Duration::from_secs(36 * 3600);

#[test]
fn a_backup_of_a_database_whose_volume_is_nearly_full_waits_for_room() {
    judge(each(&[(1, ())], |()| nearly_full()));
}

async fn nearly_full() {
    let mut house = House::build(1, Lies::none()).await;
    house.start_with(2, &SLOW_HEARTBEATS);
    house.create(&json!({"deletionPolicy": "Snapshot"})).await;
    house.until_ready(LONG).await;
    house.disks.fill(96);
    house.back_up("one", "Retain").await;
    house.back_up("two", "Retain").await;
    let says = |it: &House, name: &str| {
        let status = it.backup(name).unwrap_or_default()["status"].clone();
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let complete = conditions.into_iter().find(|it| it["type"] == "Complete").unwrap_or_default();
        complete["message"].as_str().unwrap_or_default().to_owned()
    };
    house.until("it waits", LONG, |it| says(it, "one").contains("nearly full")).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(says(&house, "one").contains("nearly full"), "{}", says(&house, "one"));
    assert!(says(&house, "two").contains("Backup one"), "{}", says(&house, "two"));
    assert!(house.checkpoints.all().is_empty(), "the engine is asked for none");
    house.patch(&json!({"storage": {"size": "120Gi"}})).await;
    house.until_ended(&["one", "two"]).await;
    for name in ["one", "two"] {
        let backup = house.backup(name).unwrap();
        assert_eq!(backup["status"]["consistency"], "EngineCheckpoint", "{backup}");
    }
    house.disks.fill(119);
    house.delete().await;
    house.until_gone(LONG).await;
    house.rest().await;
    house.judge_backups();
    house.judge();
    assert_eq!(house.ec2.snapshots().len(), 3, "a final snapshot waits for no room");
}

//! Lives in which backups are verified: each is restored and checked, has its result, and nothing else of it
//! is left.

use std::time::Duration;

use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::blow::Strike;
use super::house::{House, NAMESPACE};
use super::schedules::with_schedule;

/// Longer than an attempt in doubt takes to be proven absent.
const LONG: Duration = Duration::from_secs(4 * 3600);

const BACKUPS: &str = "backups.freehold.dev";
const DATABASES: &str = "databases.freehold.dev";

/// The backups of a database are verified every hour: one passes, of a later one the engine says that a table
/// is suspended, and during another the schedule is deleted. An operator is struck at one of its writes or
/// calls. How many of these there were before the schedule, and after it.
pub async fn verified(strike: Option<Strike>) -> (usize, usize) {
    let spec =
        json!({"schedule": "30 * * * *", "retention": {"count": 2}, "verify": {"schedule": "0 * * * *"}});
    let (house, schedules, before) = with_schedule(strike, &spec).await;
    house.until_verified("Passed").await;
    let backup = house.newest_verified();
    let verification = &backup["status"]["verification"];
    assert_eq!((&verification["tables"], &verification["rows"]), (&json!(1), &json!(300)), "{backup}");
    house.until_condition_is(&backup["metadata"]["name"], "True").await;

    house.suspended.set(&["trades"]);
    house.until_verified("Failed").await;
    let backup = house.newest_verified();
    let message = backup["status"]["verification"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("suspended table trades"), "{backup}");
    house.until_condition_is(&backup["metadata"]["name"], "False").await;
    let schedule = house.schedule();
    assert!(schedule["status"]["lastVerification"]["passedAt"].is_string(), "{schedule}");

    house.until("another verification runs", LONG, |it| it.databases_there() == 2).await;
    let after = house.chaos.effects();
    schedules.delete("hourly", &DeleteParams::default()).await.unwrap();
    house.until_alone().await;
    house.delete().await;
    house.until_gone(LONG).await;
    house.rest().await;
    house.judge_backups();
    house.judge();
    (before, after)
}

impl House {
    fn schedule(&self) -> Value {
        self.server.object("backupschedules.freehold.dev", NAMESPACE, "hourly").unwrap_or_default()
    }

    fn databases_there(&self) -> usize {
        self.server.objects(DATABASES).len()
    }

    /// Waits until the newest verification came to this, and nothing of it is left.
    async fn until_verified(&self, result: &str) {
        let is_over = |it: &Self| {
            let status = &it.schedule()["status"];
            status["lastVerification"]["result"] == result && status["verification"].is_null()
        };
        self.until(&format!("a verification has {result}"), LONG, is_over).await;
        self.until_alone().await;
    }

    /// Waits until there is nothing but the database itself.
    async fn until_alone(&self) {
        let is_alone =
            |it: &Self| it.databases_there() == 1 && it.live().len() == 1 && it.data_volumes().len() == 1;
        self.until("the restored database is gone with its machine and volume", LONG, is_alone).await;
    }

    /// The Backup that was verified last.
    fn newest_verified(&self) -> Value {
        let name = self.schedule()["status"]["lastVerification"]["backupName"].clone();
        self.server.object(BACKUPS, NAMESPACE, name.as_str().unwrap_or_default()).unwrap_or_default()
    }

    async fn until_condition_is(&self, name: &Value, status: &str) {
        let is_so = |it: &Self| {
            let backup = it.server.object(BACKUPS, NAMESPACE, name.as_str().unwrap_or_default());
            let conditions = backup.map(|it| it["status"]["conditions"].clone()).unwrap_or_default();
            let conditions = conditions.as_array().cloned().unwrap_or_default();
            conditions.iter().any(|it| it["type"] == "Verified" && it["status"] == status)
        };
        self.until(&format!("the condition Verified of {name} is {status}"), LONG, is_so).await;
    }
}

//! Lives in which a database is backed up by a schedule: each time once, and the last backup stays.

use std::collections::BTreeSet;
use std::time::Duration;

use freehold::api::BackupSchedule;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

use super::blow::Strike;
use super::house::{House, NAMESPACE};
use super::lies::Lies;
use super::person::NAME;
use crate::kit::objects::merge;

const HOUR: Duration = Duration::from_secs(3600);

/// Longer than an attempt in doubt takes to be proven absent.
const LONG: Duration = Duration::from_secs(4 * 3600);

const BACKUPS: &str = "backups.freehold.dev";

/// A house with a database and its BackupSchedule `hourly`; an operator is struck at one of its writes or
/// calls. How many of these there were before the schedule.
pub async fn with_schedule(strike: Option<Strike>, spec: &Value) -> (House, Api<BackupSchedule>, usize) {
    let mut house = House::build(1, Lies { strike, ..Lies::none() }).await;
    house.start();
    house.create(&json!({"deletionPolicy": "Delete"})).await;
    house.until_ready(LONG).await;
    let before = house.chaos.effects();
    let schedules = Api::<BackupSchedule>::namespaced(house.person.clone(), NAMESPACE);
    let mut hourly = json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "BackupSchedule", "metadata": {"name": "hourly"},
        "spec": {"databaseName": NAME},
    });
    merge(&mut hourly["spec"], spec);
    schedules.create(&PostParams::default(), &serde_json::from_value(hourly).unwrap()).await.unwrap();
    (house, schedules, before)
}

/// A database is backed up every hour, of which two are kept; the only operator is away for two hours, or
/// is struck at one of its writes or calls. How many of these there were before the schedule, and after it.
pub async fn scheduled(strike: Option<Strike>) -> (usize, usize) {
    let spec = json!({"schedule": "30 * * * *", "retention": {"count": 2}});
    let (house, schedules, before) = with_schedule(strike, &spec).await;
    let mut seen = BTreeSet::new();
    house.watch_backups(&mut seen, 3 * HOUR).await;
    assert!(seen.len() >= 3, "every hour has its backup: {seen:?}");
    let made = seen.len();
    house.chaos.kill(2 * HOUR);
    house.watch_backups(&mut seen, 2 * HOUR + HOUR / 4).await;
    assert!(seen.len() <= made + 1, "of the hours without an operator the newest is made up for: {seen:?}");
    house.until("two backups are kept", LONG, |it| it.kept().len() == 2 && it.all_ended()).await;
    let after = house.chaos.effects();
    assert_eq!(house.kept(), seen.iter().rev().take(2).rev().cloned().collect::<Vec<_>>());
    assert_eq!(house.ec2.snapshots().len(), 2, "the others are deleted with their snapshots");
    let schedule = house.server.object("backupschedules.freehold.dev", NAMESPACE, "hourly").unwrap();
    assert_eq!(schedule["status"]["lastComplete"]["backupName"].as_str(), seen.last().map(String::as_str));
    schedules.delete("hourly", &DeleteParams::default()).await.unwrap();
    house.delete().await;
    house.until_gone(LONG).await;
    house.watch_backups(&mut seen, HOUR + HOUR / 4).await;
    house.rest().await;
    assert_eq!(house.kept().len(), 2, "Backups outlive their schedule and their Database");
    house.judge_backups();
    house.judge();
    (before, after)
}

impl House {
    /// Notes the names of the Backups that there are in this time.
    async fn watch_backups(&self, seen: &mut BTreeSet<String>, time: Duration) {
        let end = tokio::time::Instant::now() + time;
        while tokio::time::Instant::now() < end {
            seen.extend(self.kept());
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
    }

    /// The names of the Backups, which are those of their times.
    fn kept(&self) -> Vec<String> {
        let names = self.server.objects(BACKUPS);
        names.iter().filter_map(|it| it["metadata"]["name"].as_str()).map(str::to_owned).collect()
    }

    fn all_ended(&self) -> bool {
        self.server.objects(BACKUPS).iter().all(|it| it["status"]["completedAt"].is_string())
    }
}

//! Lives in which a database is backed up: no checkpoint is held at the end, and what counts as consistent
//! began while one was.

use std::time::Duration;

use ec2sim::{Effect, Fault};
use freehold::api::Backup;
use jiff::Timestamp;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::blow::Strike;
use super::house::{House, NAMESPACE, SLOW_HEARTBEATS};
use super::lies::Lies;
use super::life::Deed;
use super::person::NAME;

/// Longer than an attempt in doubt takes to be proven absent, after the checkpoint of another one.
const LONG: Duration = Duration::from_secs(4 * 3600);

const BACKUPS: &str = "backups.freehold.dev";

/// A database is backed up twice at once, and once while it is paused; an operator is struck at one of its
/// writes, calls or statements. How many of these there were before the backups, and after them.
pub async fn backed_up(strike: Option<Strike>) -> (usize, usize) {
    let mut house = House::build(1, Lies { strike, ..Lies::none() }).await;
    house.start_with(2, &SLOW_HEARTBEATS);
    house.create(&json!({"deletionPolicy": "Delete"})).await;
    house.until_ready(LONG).await;
    let before = house.chaos.effects();
    house.back_up("one", "Retain").await;
    house.back_up("two", "Delete").await;
    house.until_ended(&["one", "two"]).await;
    house.remove_backup("two").await;
    house.until("the second is gone", LONG, |it| it.backup("two").is_none()).await;
    let after = house.chaos.effects();
    house.patch(&json!({"running": false})).await;
    house.until("the database is paused", LONG, |house| house.live().is_empty()).await;
    house.back_up("asleep", "Retain").await;
    house.until_ended(&["asleep"]).await;
    let asleep = house.backup("asleep").unwrap();
    assert_eq!(asleep["status"]["consistency"], "CrashConsistent", "{asleep}");
    house.delete().await;
    house.until_gone(LONG).await;
    house.rest().await;
    house.judge_backups();
    house.judge();
    let one = house.backup("one").expect("a Backup outlives its Database");
    if strike.is_none() {
        assert_eq!(one["status"]["consistency"], "EngineCheckpoint", "{one}");
        assert_eq!(house.ec2.snapshots().len(), 2, "the second is deleted with its snapshot");
    }
    (before, after)
}

/// The same database is backed up while things happen to it, to its machine and to EC2, whatever lies.
pub async fn backed_up_whatever_lies(seed: u64) {
    let mut house = House::build(seed, Lies::of(seed)).await;
    house.start_with(2, &SLOW_HEARTBEATS);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    house.create(&json!({"deletionPolicy": "Delete"})).await;
    house.until_ready_or(Duration::from_secs(3600)).await;
    let deeds = [Deed::Move, Deed::Upgrade, Deed::Terminate, Deed::Stop, Deed::DeletePod];
    let mut names = Vec::new();
    for number in 0..rng.random_range(1..4) {
        let name = format!("backup-{number}");
        let policy = if rng.random_bool(0.5) { "Delete" } else { "Retain" };
        house.chaos.tell(&format!("{name}, {policy}"));
        house.back_up(&name, policy).await;
        if rng.random_bool(0.3) {
            let code = ["UnauthorizedOperation", "RequestLimitExceeded", "SnapshotLimitExceeded"];
            let code = code[rng.random_range(0..3)].to_owned();
            let refused = Effect::Error { code, message: String::new() };
            let fault = Fault { action: Some("CreateSnapshot".to_owned()), ..Fault::always(refused) };
            house.ec2.add_fault(Fault { count: Some(2), ..fault });
        }
        tokio::time::sleep(Duration::from_secs([0, 1, 5, 60][rng.random_range(0..4)])).await;
        if rng.random_bool(0.6) {
            house.patch(&json!({"running": rng.random_bool(0.7)})).await;
            let deed = deeds[rng.random_range(0..deeds.len())];
            house.chaos.tell(&format!("{deed:?}"));
            house.carry_out(deed, &mut rng).await;
        }
        if rng.random_bool(0.2) {
            house.remove_backup(&name).await;
        }
        names.push(name);
    }
    house.patch(&json!({"running": true})).await;
    house.chaos.calm();
    house.until_ready_or(LONG).await;
    if house.is_volume_lost() {
        // EC2 has made it and forgotten it: there is nothing to back up.
        house.judge_backups();
        return;
    }
    assert!(house.is_ready(), "{:?}", house.database());
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    house.until_ended(&names).await;
    house.rest().await;
    house.judge_backups();
    house.judge();
}

/// A database is restored at a rate at which EC2 takes longer than the machine does: it serves meanwhile, and
/// its status says how far that is, until it has ended.
pub async fn restored(seed: u64) {
    let mut house = House::build(seed, Lies::none()).await;
    house.start_with(2, &SLOW_HEARTBEATS);
    house.create(&json!({"deletionPolicy": "Delete"})).await;
    house.until_ready(LONG).await;
    house.back_up("one", "Retain").await;
    house.until_ended(&["one"]).await;
    house.delete().await;
    house.until_gone(LONG).await;
    let restore = json!({"backupName": "one", "initializationRate": 100});
    house.create(&json!({"deletionPolicy": "Delete", "restore": restore})).await;
    house.until_ready(LONG).await;
    let initialization = |house: &House| house.database().unwrap()["status"]["initialization"].clone();
    let is_estimated = |it: &House| initialization(it)["expectedEnd"].is_string();
    house.until("an end is expected", LONG, is_estimated).await;
    assert!(initialization(&house)["progressPercent"].as_i64().unwrap() < 100, "{}", initialization(&house));
    let expected: Timestamp = initialization(&house)["expectedEnd"].as_str().unwrap().parse().unwrap();
    house.until("EC2 has read it", LONG, |it| initialization(it)["endedAt"].is_string()).await;
    let late = house.ec2.now().duration_since(expected).as_secs();
    assert!((0..600).contains(&late), "it ended {late} s after it was expected to");
    assert_eq!(initialization(&house)["progressPercent"], 100);
    house.rest().await;
    house.judge_backups();
    house.judge();
    let asked = house.ec2.journal().iter().filter(|it| it.action == "DescribeVolumeStatus").count();
    assert!((2..=6).contains(&asked), "100 GiB take 1,024 s, and EC2 was asked {asked} times");
}

impl House {
    pub(super) async fn back_up(&self, name: &str, policy: &str) {
        let object = json!({
            "apiVersion": "freehold.dev/v1alpha1", "kind": "Backup", "metadata": {"name": name},
            "spec": {"databaseName": NAME, "deletionPolicy": policy},
        });
        let backups = Api::<Backup>::namespaced(self.person.clone(), NAMESPACE);
        backups.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    }

    fn is_volume_lost(&self) -> bool {
        self.conditions().iter().any(|it| it["type"] == "VolumeReady" && it["reason"] == "VolumeLost")
    }

    async fn remove_backup(&self, name: &str) {
        self.chaos.tell(&format!("delete {name}"));
        let backups = Api::<Backup>::namespaced(self.person.clone(), NAMESPACE);
        backups.delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(super) fn backup(&self, name: &str) -> Option<Value> {
        self.server.object(BACKUPS, NAMESPACE, name)
    }

    /// Waits until each of them is complete, has failed, or is gone.
    pub(super) async fn until_ended(&self, names: &[&str]) {
        let has_ended = |it: &Self, name: &str| {
            it.backup(name).is_none_or(|backup| {
                let status = &backup["status"];
                let is_final = status["completedAt"].is_string() || status["failure"].is_object();
                let is_going = backup["metadata"]["deletionTimestamp"].is_string();
                is_final && !is_going && status["checkpoint"].is_null()
            })
        };
        for name in names {
            self.until(&format!("{name} has ended"), LONG, |it| has_ended(it, name)).await;
        }
    }

    /// No engine holds a checkpoint; every snapshot that is tagged or recorded as consistent began while one
    /// was held; none was held for longer than it may be and the operator was away.
    pub(super) fn judge_backups(&self) {
        let held = self.checkpoints.held(&self.server);
        assert!(held.is_empty(), "a checkpoint is held for ever: {held:?}");
        let all = self.checkpoints.all();
        for snapshot in self.ec2.snapshots() {
            let tag = snapshot.tags.get("freehold.dev/consistency").map(String::as_str);
            let is_under = all.iter().any(|it| {
                let has_ended = it.ended_at.is_some_and(|ended_at| ended_at < snapshot.started_at);
                it.began_at <= snapshot.started_at && !has_ended
            });
            assert!(tag != Some("EngineCheckpoint") || is_under, "{snapshot:?} is not consistent: {all:?}");
        }
        for backup in self.server.objects(BACKUPS) {
            let status = &backup["status"];
            let id = status["snapshotID"].as_str().unwrap_or_default();
            let shown = self.ec2.snapshots().into_iter().find(|it| it.id == id);
            let tag = shown.and_then(|it| it.tags.get("freehold.dev/consistency").cloned());
            if status["completedAt"].is_string() {
                assert_eq!(tag.as_deref(), status["consistency"].as_str(), "{backup}");
            }
        }
    }
}

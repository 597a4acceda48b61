//! Lives in which a PostgreSQL archives its write-ahead log, cannot for a while, and is recovered to a moment
//! after its backup; and how the archive of an engine fares.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use freehold::api::keys::WAL_ARCHIVE_TAG;
use freehold::engine::archiver::Archiver;
use parking_lot::Mutex;
use pretty_assertions::{assert_eq, assert_ne};
use serde_json::{Value, json};

use super::blow::Strike;
use super::house::House;
use super::lies::Lies;
use super::{SAMPLE_OF_HOURS, struck_in_a_part};

/// Longer than an attempt in doubt takes to be proven absent.
const LONG: Duration = Duration::from_secs(4 * 3600);

/// How the archive of a house's engine fares.
#[derive(Clone, Default)]
pub struct Archive(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The addresses of the pods whose engine was made to end a file.
    begun: HashSet<IpAddr>,
    refuses: bool,
}

impl Archive {
    /// Whether its bucket refuses everything from now on.
    fn refuses(&self, refuses: bool) {
        self.0.lock().refuses = refuses;
    }

    /// The engine at this address ends a file of its log.
    pub fn begin(&self, address: IpAddr) {
        self.0.lock().begun.insert(address);
    }

    /// What the engine at this address says.
    pub fn says(&self, address: IpAddr) -> Archiver {
        let state = self.0.lock();
        let (has_begun, has_failed) = (state.begun.contains(&address), state.refuses);
        let waits = (has_begun && has_failed).then_some(Duration::ZERO);
        Archiver { is_on: true, has_failed, has_archived: has_begun && !has_failed, waits }
    }
}

/// A database archives its log, cannot for a while, is backed up, and goes on with the data of a moment after
/// that backup; an operator is struck at one of its writes or calls. How many of these there were before and
/// after.
async fn recovered(strike: Option<Strike>) -> (usize, usize) {
    let mut house = House::build(1, Lies { strike, ..Lies::none() }).await;
    house.start();
    let engine = json!({"type": "postgresql", "version": "17.6"});
    let archive = json!({"destination": "s3://backups/one", "secretName": "archive"});
    house.create(&json!({"deletionPolicy": "Delete", "engine": engine, "walArchive": archive})).await;
    house.until("the log is archived", LONG, |it| it.archive_is("True", "AsExpected")).await;
    let before = house.chaos.effects();
    house.engine_password.archive.refuses(true);
    let fails = |it: &House| it.archive_is("False", "WalArchiveFailing") && it.is_ready();
    house.until("the failure is reported", LONG, fails).await;
    house.back_up("one", "Retain").await;
    house.until_ended(&["one"]).await;
    house.engine_password.archive.refuses(false);
    house.until("the log is archived again", LONG, |it| it.archive_is("True", "AsExpected")).await;
    let first = house.attached();
    let snapshot = house.backup("one").unwrap()["status"]["snapshotID"].as_str().unwrap().to_owned();
    let tags = house.ec2.snapshots().into_iter().find(|it| it.id == snapshot).unwrap().tags;
    assert_eq!(tags.get(WAL_ARCHIVE_TAG).map(String::as_str), Some("s3://backups/one"));

    let request = |time: &str| {
        let until = json!({"time": time});
        json!({"restoreInPlace": {"generation": 1, "backupName": "one", "pointInTime": until}})
    };
    house.patch(&request("2000-01-01T00:00:00Z")).await;
    let is_refused = |it: &House| it.waits_for("RestoreRefused") && it.attached() == first;
    house.until("an earlier moment is refused", LONG, is_refused).await;
    house
        .patch(&json!({"restoreInPlace": {"generation": 2, "pointInTime": {"time": "2999-01-01T00:00:00Z"}}}))
        .await;
    house.until("a moment that has not come is refused", LONG, is_refused).await;
    let until = json!({"time": null, "lsn": "16/B374D848"});
    house.patch(&json!({"restoreInPlace": {"generation": 3, "pointInTime": until}})).await;
    house.until("the data is that of the backup", LONG, |it| it.has_ended(3)).await;
    house.until_ready(LONG).await;
    house
        .until("the log of the new volume is archived", LONG, |it| it.archive_is("True", "AsExpected"))
        .await;
    let after = house.chaos.effects();
    let second = house.attached();
    assert_ne!(first, second);
    for (name, value) in [
        ("WAL_ARCHIVE_FOLDER", second.as_str()),
        ("WAL_RECOVERY", &snapshot),
        ("WAL_RECOVERY_ARCHIVE", "s3://backups/one"),
        ("WAL_RECOVERY_FOLDER", &first),
        ("WAL_RECOVERY_TARGET", "recovery_target_lsn=16/B374D848"),
    ] {
        assert_eq!(house.variable(name), value, "{name}");
    }
    let is_read =
        |it: &House| it.database().unwrap_or_default()["status"]["initialization"]["endedAt"].is_string();
    house.until("EC2 has read the volume", LONG, is_read).await;
    house.end_at_rest(LONG).await;
    (before, after)
}

#[test]
fn postgresql_archives_its_log_and_is_recovered_by_it_whatever_an_operator_is_struck_at() {
    struck_in_a_part(SAMPLE_OF_HOURS, 10, recovered);
}

impl House {
    /// Whether the condition of the archive has this status for this reason.
    fn archive_is(&self, status: &str, reason: &str) -> bool {
        let is_it =
            |it: &Value| it["type"] == "WalArchived" && it["status"] == status && it["reason"] == reason;
        self.conditions().iter().any(is_it)
    }

    /// The value of a variable of the pod's container.
    fn variable(&self, name: &str) -> String {
        let pod = self.pod();
        let variables = pod["spec"]["containers"][0]["env"].as_array().cloned().unwrap_or_default();
        let found = variables.into_iter().find(|it| it["name"] == name);
        found.and_then(|it| it["value"].as_str().map(str::to_owned)).unwrap_or_default()
    }
}

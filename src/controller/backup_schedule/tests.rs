//! Tables of the BackupSchedule controller: one obvious world, and what is planned when something in it is
//! otherwise.

mod messages;
mod retention;
mod times;
mod verification;

use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::observe::Observed;
use super::plan::action::{Action, Plan};
use super::plan::plan;
use super::status::status;
use super::wait::{Field, InvalidSchedule, ScheduleWait};
use crate::api::{Backup, BackupSchedule, Database};
use crate::controller::memory::checks::CheckView;
use crate::controller::pass::acted::{ActError, Acted};
use crate::settings::Timing;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Half past three in UTC, every day; seen for the first time on the first of June.
fn schedule(spec: &Value, status: &Value) -> BackupSchedule {
    let counts = json!({"since": "2026-06-01T00:00:00Z", "schedule": "30 3 * * *", "timeZone": "UTC"});
    let mut object = json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "BackupSchedule",
        "metadata": {"name": "nightly", "namespace": "team-a", "uid": "schedule-uid", "generation": 1},
        "spec": {"databaseName": "orders", "schedule": "30 3 * * *"},
        "status": {"counts": counts},
    });
    json_patch::merge(&mut object, &json!({"spec": spec, "status": status}));
    serde_json::from_value(object).unwrap()
}

/// A Backup of the schedule that is complete, of data of this moment.
fn complete(name: &str, started_at: &str) -> Backup {
    backup(
        name,
        &json!({"source": source("database-uid"), "startedAt": started_at, "completedAt": started_at}),
    )
}

fn source(database_uid: &str) -> Value {
    json!({"databaseUID": database_uid, "volumeName": "orders-1", "volumeID": "vol-1", "fileSystem": "ext4",
        "engine": "questdb", "engineVersion": "9.3.3"})
}

fn backup(name: &str, status: &Value) -> Backup {
    let mut object = json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "Backup",
        "metadata": {"name": name, "namespace": "team-a", "uid": format!("{name}-uid"),
            "resourceVersion": "7", "creationTimestamp": "2026-06-01T00:00:00Z",
            "labels": {"freehold.dev/backup-schedule": "nightly"}},
        "spec": {"databaseName": "orders"},
        "status": {"conditions": []},
    });
    json_patch::merge(&mut object, &json!({"status": status}));
    serde_json::from_value(object).unwrap()
}

fn failed(name: &str, created_at: &str) -> Backup {
    let mut failed =
        backup(name, &json!({"failure": {"at": "2026-06-01T00:00:00Z", "what": "SnapshotFailed"}}));
    failed.metadata.creation_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(created_at)));
    failed
}

fn database() -> Database {
    serde_json::from_value(json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "Database",
        "metadata": {"name": "orders", "namespace": "team-a", "uid": "database-uid"},
        "spec": {"engine": {"type": "questdb", "version": "9.3.4"}, "storage": {"size": "200Gi"},
            "config": {"cairo.max.uncommitted.rows": "1000"}, "deletionProtection": true},
    }))
    .unwrap()
}

fn world(backups: Vec<Backup>) -> Observed {
    Observed {
        schedule: schedule(&json!({}), &json!({})),
        database: Some(database()),
        restored: None,
        left: vec![],
        check: CheckView::NotBegun,
        listed: Some(backups.iter().map(ResourceExt::name_any).collect()),
        backups,
        timing: Timing::default(),
    }
}

/// The plan at this moment, with this changed in spec and status.
fn planned(spec: &Value, state: &Value, backups: Vec<Backup>, now: &str) -> Plan {
    plan(&Observed { schedule: schedule(spec, state), ..world(backups) }, at(now))
}

fn created(plan: &Plan) -> Vec<&str> {
    let names = plan.actions.iter().map(|action| match action {
        Action::Create(name) => Some(name.as_str()),
        Action::Expire { .. }
        | Action::BeginVerification(..)
        | Action::CreateDatabase(_)
        | Action::Check(_)
        | Action::Record(..)
        | Action::DeleteDatabase { .. } => None,
    });
    names.flatten().collect()
}

#[test]
fn a_time_that_comes_has_its_backup_and_the_next_pass_waits_for_the_next_time() {
    let none = json!({});
    let early = planned(&none, &none, vec![], "2026-06-01T03:29:59Z");
    assert_eq!((created(&early), early.came), (vec![], None));
    assert_eq!(early.requeue.map(|it| it.as_secs()), Some(1));
    let due = planned(&none, &none, vec![], "2026-06-01T03:30:00Z");
    assert_eq!(created(&due), ["nightly-202606010330"]);
    assert_eq!(due.next, Some(at("2026-06-02T03:30:00Z")));
    assert_eq!(due.requeue.map(|it| it.as_secs()), Some(24 * 3600));
    assert_eq!(due.waiting, None);
}

#[test]
fn a_time_is_answered_once_whatever_is_lost_of_the_status() {
    let none = json!({});
    let there = || vec![complete("nightly-202606010330", "2026-06-01T03:30:05Z")];
    let told = json!({"lastTime": "2026-06-01T03:30:00Z"});
    for state in [&none, &told] {
        let plan = planned(&none, state, there(), "2026-06-01T03:31:00Z");
        assert_eq!((plan.actions, plan.waiting), (vec![], None), "{state}");
    }
    // Without a status times count from now on.
    let lost =
        Observed { schedule: BackupSchedule { status: None, ..schedule(&none, &none) }, ..world(vec![]) };
    let plan = plan(&lost, at("2026-06-01T12:00:00Z"));
    assert_eq!(
        (created(&plan), plan.counts.as_ref().map(|it| it.since.0)),
        (vec![], Some(at("2026-06-01T12:00:00Z")))
    );
}

#[test]
fn of_the_times_that_were_missed_only_the_newest_is_made_up_for() {
    let told = json!({"lastTime": "2026-06-01T03:30:00Z"});
    let plan = planned(&json!({}), &told, vec![], "2026-06-09T12:00:00Z");
    assert_eq!(created(&plan), ["nightly-202606090330"]);
    assert_eq!(plan.came, Some(at("2026-06-09T03:30:00Z")));
}

#[test]
fn no_backup_begins_beside_one_that_is_not_complete() {
    let running = || vec![backup("nightly-202606010330", &json!({}))];
    let told = json!({"lastTime": "2026-06-01T03:30:00Z"});
    let before = planned(&json!({}), &told, running(), "2026-06-01T04:00:00Z");
    assert_eq!((before.left_out, before.waiting), (None, None), "its own time is answered");
    let unfinished = ScheduleWait::Unfinished("nightly-202606010330".to_owned());
    let due = planned(&json!({}), &told, running(), "2026-06-02T03:30:00Z");
    assert_eq!((created(&due), due.came), (vec![], Some(at("2026-06-02T03:30:00Z"))));
    assert_eq!(due.left_out, Some(("nightly-202606020330".to_owned(), unfinished.clone())));
    let told = json!({"lastTime": "2026-06-02T03:30:00Z"});
    let after = planned(&json!({}), &told, running(), "2026-06-02T03:31:00Z");
    assert_eq!(
        (after.left_out, after.waiting),
        (None, Some(unfinished)),
        "it is reported as long as it lasts"
    );
}

#[test]
fn a_name_that_is_taken_is_left_out_and_no_other_object_is_taken_for_a_backup_of_the_schedule() {
    let mut foreign = backup("nightly-202606010330", &json!({}));
    foreign.metadata.labels = None;
    let plan = planned(&json!({}), &json!({}), vec![foreign], "2026-06-01T03:30:00Z");
    let taken = ScheduleWait::NameTaken("nightly-202606010330".to_owned());
    assert_eq!((created(&plan), plan.waiting.clone()), (vec![], Some(taken.clone())));
    assert_eq!(plan.left_out, Some(("nightly-202606010330".to_owned(), taken)));
}

#[test]
fn what_cannot_be_carried_out_is_said_and_no_time_counts_meanwhile() {
    let invalid = |why| Some(ScheduleWait::Invalid(Field::Schedule, why));
    let no_zone = InvalidSchedule::TimeZone("Mars/Olympus".to_owned());
    let rows = [
        (json!({"suspend": true}), Some(ScheduleWait::Suspended)),
        (json!({"schedule": "30 3 * *"}), invalid(InvalidSchedule::Fields(4))),
        (json!({"schedule": "30 3 * * * UTC"}), invalid(InvalidSchedule::Fields(6))),
        (json!({"schedule": "0 3 L * *"}), invalid(InvalidSchedule::Day("L".to_owned()))),
        (json!({"schedule": "0 3 h * *"}), invalid(InvalidSchedule::Day("h".to_owned()))),
        (json!({"schedule": "0 3 * * 5l"}), invalid(InvalidSchedule::Day("5l".to_owned()))),
        (
            json!({"schedule": "0 0 30 2 *"}),
            Some(ScheduleWait::NeverComes(Field::Schedule, "0 0 30 2 *".to_owned())),
        ),
        (json!({"timeZone": "Mars/Olympus"}), invalid(no_zone)),
    ];
    for (spec, waiting) in rows {
        let plan = planned(&spec, &json!({}), vec![], "2026-06-02T03:30:00Z");
        assert_eq!((&plan.waiting, &plan.counts, plan.actions.len()), (&waiting, &None, 0), "{spec}");
    }
    let gone = Observed { database: None, ..world(vec![]) };
    let plan = plan(&gone, at("2026-06-02T03:30:00Z"));
    assert_eq!(plan.waiting, Some(ScheduleWait::NoDatabase("orders".to_owned())));
    assert_eq!((plan.counts, plan.requeue), (None, Some(Timing::default().instance_sync_interval)));
}

#[test]
fn a_schedule_that_is_changed_or_resumed_makes_up_for_nothing() {
    let told = json!({"lastTime": "2026-06-01T03:30:00Z"});
    for (spec, state) in [
        (json!({"schedule": "0 9 * * *"}), told.clone()),
        (json!({"timeZone": "Asia/Tokyo"}), told),
        (json!({}), json!({"counts": null, "lastTime": "2026-06-01T03:30:00Z"})),
    ] {
        let plan = planned(&spec, &state, vec![], "2026-06-05T12:00:00Z");
        assert_eq!((created(&plan), plan.came), (vec![], None), "{spec}");
        assert_eq!(plan.counts.map(|it| it.since.0), Some(at("2026-06-05T12:00:00Z")), "{spec}");
    }
}

#[test]
fn a_clock_that_was_ahead_for_a_while_ends_no_schedule() {
    let told = json!({"lastTime": "2027-06-01T03:30:00Z"});
    let there = || vec![complete("nightly-202606010330", "2026-06-01T03:30:05Z")];
    let before = planned(&json!({}), &told, there(), "2026-06-02T03:29:00Z");
    assert_eq!((created(&before), before.came), (vec![], Some(at("2026-06-01T03:30:00Z"))));
    let due = planned(&json!({}), &told, there(), "2026-06-02T03:30:01Z");
    assert_eq!(created(&due), ["nightly-202606020330"]);
    // Also where it was ahead when the schedule was seen first.
    let counts = json!({"since": "2027-06-01T00:00:00Z", "schedule": "30 3 * * *", "timeZone": "UTC"});
    let plan = planned(&json!({}), &json!({"counts": counts}), vec![], "2026-06-02T12:00:00Z");
    assert_eq!(plan.counts.map(|it| it.since.0), Some(at("2026-06-02T12:00:00Z")));
}

#[test]
fn a_backup_that_failed_is_told_until_a_newer_one_is_complete() {
    let told = json!({"lastTime": "2026-06-02T03:30:00Z"});
    let broken = || failed("nightly-202606020330", "2026-06-02T03:30:00Z");
    let plan = planned(&json!({}), &told, vec![broken()], "2026-06-02T04:00:00Z");
    assert_eq!(plan.waiting, Some(ScheduleWait::Failed("nightly-202606020330".to_owned())));
    let mut newer = complete("nightly-202606030330", "2026-06-03T03:30:00Z");
    newer.metadata.creation_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at("2026-06-03T03:30:00Z")));
    let told = json!({"lastTime": "2026-06-03T03:30:00Z"});
    let plan = planned(&json!({}), &told, vec![broken(), newer], "2026-06-03T04:00:00Z");
    assert_eq!(plan.waiting, None);
}

#[test]
fn a_time_whose_backup_could_not_be_created_comes_again() {
    let observed = world(vec![]);
    let now = at("2026-06-01T03:30:00Z");
    let plan = plan(&observed, now);
    let mut acted = Acted::new(observed.schedule.clone());
    let done = status(&observed, &plan, &acted, true, now);
    assert_eq!(done.last_time.map(|it| it.0), Some(now));
    acted.error = Some(ActError::Conflict);
    assert_eq!(status(&observed, &plan, &acted, false, now).last_time, None);
    let other_failed = status(&observed, &plan, &acted, true, now);
    assert_eq!(other_failed.last_time.map(|it| it.0), Some(now), "what failed was no creation");
}

#[test]
fn the_newest_backup_that_can_be_restored_is_in_the_status() {
    let missing = json!({"conditions": [{"type": "SnapshotMissing", "status": "True", "reason": "SnapshotMissing",
        "message": "", "lastTransitionTime": "2026-06-01T00:00:00Z"}]});
    let mut gone = complete("nightly-202606030330", "2026-06-03T03:30:05Z");
    gone.status.as_mut().unwrap().conditions = serde_json::from_value(missing["conditions"].clone()).unwrap();
    let backups = vec![
        complete("nightly-202606010330", "2026-06-01T03:30:05Z"),
        complete("nightly-202606020330", "2026-06-02T03:30:05Z"),
        gone,
    ];
    let observed = world(backups);
    let now = at("2026-06-03T04:00:00Z");
    let acted = Acted::new(observed.schedule.clone());
    let last = status(&observed, &plan(&observed, now), &acted, true, now).last_complete.unwrap();
    assert_eq!(last.backup_name, "nightly-202606020330");
}

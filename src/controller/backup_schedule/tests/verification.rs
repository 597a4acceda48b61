//! Verifications: when one begins, and each of its steps, whatever was lost or changed in between.

mod ending;

use pretty_assertions::assert_eq;

use super::*;
use crate::api::database::DeletionPolicy;
use crate::api::keys::VERIFICATION_LABEL;
use crate::api::verification::{BackupVerification, Verification, VerificationResult};
use crate::controller::backup_schedule::build;
use crate::engine::verify::{Finding, Verified};

const BACKUP: &str = "nightly-202606010330";

/// Verified at five.
fn verify() -> Value {
    json!({"verify": {"schedule": "0 5 * * *", "timeoutMinutes": 60, "instanceType": "r7i.large"}})
}

fn due() -> Timestamp {
    at("2026-06-01T05:00:00Z")
}

fn newest() -> Backup {
    let mut backup = complete(BACKUP, "2026-06-01T03:30:05Z");
    backup.status.as_mut().unwrap().size = Some(crate::api::Size::from_gib(100));
    backup
}

/// At five, with one complete Backup.
fn at_five(spec: &Value, state: &Value) -> Observed {
    let told = json!({"lastTime": "2026-06-01T03:30:00Z"});
    let mut state = state.clone();
    json_patch::merge(&mut state, &told);
    Observed { schedule: schedule(spec, &state), ..world(vec![newest()]) }
}

fn running(database_uid: Option<&str>) -> Verification {
    Verification {
        backup_name: BACKUP.to_owned(),
        backup_uid: format!("{BACKUP}-uid"),
        database_name: build::database_name(&schedule(&verify(), &json!({})), due()),
        database_uid: database_uid.map(str::to_owned),
        started_at: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(due()),
    }
}

/// A verification runs since five.
fn underway(database_uid: Option<&str>) -> Observed {
    let state =
        json!({"verification": running(database_uid), "lastVerificationTime": "2026-06-01T05:00:00Z"});
    at_five(&verify(), &state)
}

/// Its Database, with these conditions.
fn restored(conditions: &[(&str, &str, &str)]) -> Database {
    let observed = underway(None);
    let verify = observed.schedule.spec.verify.clone();
    let mut database =
        build::database(&observed.schedule, verify.as_ref(), &running(None), &newest(), &super::database())
            .unwrap();
    database.metadata.uid = Some("restored-uid".to_owned());
    database.metadata.generation = Some(1);
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|(kind, status, message)| {
            json!({"type": kind, "status": status, "reason": "Any", "message": message, "observedGeneration": 1,
                "lastTransitionTime": "2026-06-01T05:00:00Z"})
        })
        .collect();
    database.status = serde_json::from_value(json!({"conditions": conditions})).unwrap();
    database
}

/// A verification runs, its Database is there with these conditions, and this is known of the check.
fn with(conditions: &[(&str, &str, &str)], check: CheckView) -> Observed {
    Observed { restored: Some(restored(conditions)), check, ..underway(Some("restored-uid")) }
}

const READY: [(&str, &str, &str); 1] = [("Ready", "True", "")];

fn ended(findings: Vec<Finding>) -> CheckView {
    CheckView::Ended(Ok(Verified { tables: 2, rows: 300, indexes: Some(4), findings }))
}

/// The names of what a plan does about the verification.
fn steps(plan: &Plan) -> Vec<&'static str> {
    let steps = plan.actions.iter().map(|action| match action {
        Action::Create(_) => "back up",
        Action::Expire { .. } => "expire",
        Action::BeginVerification(..) => "begin",
        Action::CreateDatabase(_) => "create",
        Action::Check(_) => "check",
        Action::Record(..) => "record",
        Action::DeleteDatabase { .. } => "delete",
    });
    steps.collect()
}

fn recorded(plan: &Plan) -> BackupVerification {
    let recorded = plan.actions.iter().find_map(|action| match action {
        Action::Record(_, verification) => Some((**verification).clone()),
        Action::Create(_)
        | Action::Expire { .. }
        | Action::BeginVerification(..)
        | Action::CreateDatabase(_)
        | Action::Check(_)
        | Action::DeleteDatabase { .. } => None,
    });
    recorded.expect("a result is recorded")
}

/// The status after a plan of which everything was done.
fn after(observed: &Observed, now: Timestamp) -> crate::api::BackupScheduleStatus {
    status(observed, &plan(observed, now), &Acted::new(observed.schedule.clone()), true, now)
}

#[test]
fn a_verification_writes_its_intent_down_before_it_creates_a_database() {
    let none = json!({});
    let early = plan(&at_five(&verify(), &none), at("2026-06-01T04:59:59Z"));
    assert_eq!((steps(&early), early.next_verification), (vec![], Some(due())));
    assert_eq!(early.requeue.map(|it| it.as_secs()), Some(1));
    let begun = plan(&at_five(&verify(), &none), due());
    assert_eq!(steps(&begun), ["begin", "create"]);
    let [Action::BeginVerification(intent, time), Action::CreateDatabase(database)] = &begun.actions[..]
    else {
        panic!("{begun:?}")
    };
    assert_eq!((**intent == running(None), *time, begun.waiting), (true, due(), None));
    let spec = &database.spec;
    assert_eq!(database.name_any(), intent.database_name);
    assert_eq!(database.owner_references()[0].uid, "schedule-uid");
    assert_eq!(database.labels()[VERIFICATION_LABEL], "nightly");
    assert_eq!(spec.engine.version.as_deref(), Some("9.3.3"), "the version that wrote the data");
    assert_eq!((spec.storage.size.0.as_str(), spec.storage.file_system.as_str()), ("100Gi", "ext4"));
    assert_eq!((spec.deletion_policy, spec.deletion_protection), (DeletionPolicy::Delete, false));
    assert_eq!(spec.instance_types, ["r7i.large"]);
    assert_eq!(spec.config.len(), 1, "it runs as the database does");
    assert_eq!(spec.restore.as_ref().unwrap().backup_name.as_deref(), Some(BACKUP));
}

#[test]
fn a_verification_does_not_grow_by_itself_and_is_as_large_as_what_was_backed_up() {
    let observed = underway(None);
    let verify = observed.schedule.spec.verify.as_ref();
    let mut of = super::database();
    of.spec.storage.size = crate::api::Size::from_gib(50);
    of.spec.storage.auto_grow = serde_json::from_value(json!({"maxSize": "60Gi"})).unwrap();
    let made = build::database(&observed.schedule, verify, &running(None), &newest(), &of).unwrap();
    let storage = made.spec.storage;
    assert_eq!((storage.size.0.as_str(), storage.auto_grow), ("100Gi", None));
}

#[test]
fn a_verification_has_the_settings_that_an_engine_has_begun_with() {
    let observed = underway(None);
    let verify = observed.schedule.spec.verify.as_ref();
    let mut of = super::database();
    let in_force = json!({"state": "Rejected", "inForce": {"cairo.commit.mode": "nosync"}});
    of.status = serde_json::from_value(json!({"conditions": [], "config": in_force})).unwrap();
    let database = build::database(&observed.schedule, verify, &running(None), &newest(), &of).unwrap();
    assert_eq!(json!(database.spec.config), in_force["inForce"]);
}

#[test]
fn the_name_of_the_database_is_its_time_s_own_and_fits() {
    let mut long = schedule(&verify(), &json!({}));
    long.metadata.name = Some(format!("{}.{}", "a".repeat(23), "b".repeat(39)));
    let name = build::database_name(&long, due());
    assert_eq!(name, build::database_name(&long, due()));
    assert_ne!(name, build::database_name(&long, at("2026-06-02T05:00:00Z")));
    assert!(name.len() <= 40 && name.starts_with("verify-aaa") && !name.contains("--"), "{name}");
    let other = BackupSchedule {
        metadata: kube::core::ObjectMeta { uid: Some("other".to_owned()), ..long.metadata.clone() },
        ..long
    };
    assert_ne!(name, build::database_name(&other, due()), "each BackupSchedule has its own");
}

#[test]
fn no_verification_begins_that_is_not_due_or_has_nothing_to_verify() {
    let told = json!({"lastVerificationTime": "2026-06-01T05:00:00Z"});
    let mut suspended = verify();
    suspended["suspend"] = json!(true);
    let no_backup = |it: &Observed| Observed { backups: vec![], ..it.clone() };
    let no_database = |it: &Observed| Observed { database: None, ..it.clone() };
    let five = at_five(&verify(), &json!({}));
    let mut other = five.clone();
    other.database.as_mut().unwrap().spec.engine.kind = crate::api::database::EngineType::Postgresql;
    let rows = vec![
        ("answered", at_five(&verify(), &told), "05:00:30", None),
        ("suspended", at_five(&suspended, &json!({})), "05:00:00", None),
        ("not requested", at_five(&json!({}), &json!({})), "05:00:00", None),
        ("no Database", no_database(&five), "05:00:00", None),
        ("no Backup yet", no_backup(&five), "05:30:00", None),
        ("missed", five.clone(), "06:00:01", Some(due())),
        ("another engine by now", other, "05:00:00", Some(due())),
    ];
    for (name, observed, time, skipped) in rows {
        let plan = plan(&observed, at(&format!("2026-06-01T{time}Z")));
        let is_begun = steps(&plan).contains(&"begin");
        assert_eq!((is_begun, plan.skipped_verification), (false, skipped), "{name}");
    }
    let late = plan(&five, at("2026-06-01T05:59:59Z"));
    assert_eq!(steps(&late), ["begin", "create"], "within its hour");
    let missed = after(&five, at("2026-06-01T06:00:01Z"));
    assert_eq!(missed.last_verification_time.map(|it| it.0), Some(due()), "it is not made up for");
}

#[test]
fn what_cannot_be_carried_out_of_a_verification_is_said_and_backups_go_on() {
    let custom = json!({"type": "custom", "custom": {"image": "db:1", "port": 9000, "dataPath": "/data"}});
    let mut of_custom = world(vec![]);
    of_custom.database.as_mut().unwrap().spec.engine = serde_json::from_value(custom).unwrap();
    let query = json!({"verify": {"schedule": "0 5 * * *", "query": "SELECT true"}});
    let four = json!({"verify": {"schedule": "0 5 * *"}});
    let never = json!({"verify": {"schedule": "0 0 30 2 *"}});
    let rows = vec![
        (four, world(vec![]), ScheduleWait::Invalid(Field::Verify, InvalidSchedule::Fields(4))),
        (never, world(vec![]), ScheduleWait::NeverComes(Field::Verify, "0 0 30 2 *".to_owned())),
        (query, of_custom, ScheduleWait::QueryOfCustom),
    ];
    for (spec, world, waiting) in rows {
        let observed = Observed { schedule: schedule(&spec, &json!({})), ..world };
        let plan = plan(&observed, at("2026-06-01T03:30:00Z"));
        assert_eq!((created(&plan), &plan.waiting), (vec![BACKUP], &Some(waiting)), "{spec}");
    }
}

#[test]
fn each_step_of_a_verification_follows_from_what_is_there() {
    let waiting = [("Ready", "False", "waiting for the machine")];
    let failed = CheckView::Ended(Err("no answer".to_owned()));
    let old = [("Ready", "True", ""), ("Stalled", "False", "")];
    let rows = vec![
        ("the operator ended after the intent", underway(None), vec!["create"]),
        ("created, not seen before", Observed { restored: Some(restored(&[])), ..underway(None) }, vec![]),
        ("not ready", with(&waiting, CheckView::NotBegun), vec![]),
        ("ready", with(&READY, CheckView::NotBegun), vec!["check"]),
        ("ready and not stalled", with(&old, CheckView::NotBegun), vec!["check"]),
        ("checked", with(&READY, CheckView::Running), vec![]),
        ("no answer", with(&READY, failed), vec!["check"]),
        ("nothing found", with(&READY, ended(vec![])), vec!["record", "delete"]),
    ];
    for (name, observed, expected) in rows {
        let plan = plan(&observed, at("2026-06-01T05:10:00Z"));
        assert_eq!((steps(&plan), plan.ends_verification), (expected, false), "{name}");
    }
    let seen = Observed { restored: Some(restored(&[])), ..underway(None) };
    let noted = after(&seen, at("2026-06-01T05:10:00Z")).verification.unwrap();
    assert_eq!(noted.database_uid.as_deref(), Some("restored-uid"));
    let mut changed = with(&READY, CheckView::NotBegun);
    changed.restored.as_mut().unwrap().metadata.generation = Some(2);
    assert_eq!(
        steps(&plan(&changed, at("2026-06-01T05:10:00Z"))),
        Vec::<&str>::new(),
        "ready as it was before"
    );
}

#[test]
fn a_result_is_recorded_once_and_then_the_database_is_deleted() {
    let now = at("2026-06-01T05:10:00Z");
    let passed = recorded(&plan(&with(&READY, ended(vec![])), now));
    assert_eq!((passed.result, passed.tables, passed.rows), (VerificationResult::Passed, Some(2), Some(300)));
    assert_eq!(passed.indexes, Some(4));
    assert_eq!((passed.duration_seconds, passed.message.as_deref()), (600, None));
    let mut told = with(&READY, CheckView::NotBegun);
    told.backups[0].status.as_mut().unwrap().verification = Some(passed.clone());
    assert_eq!(steps(&plan(&told, now)), ["delete"], "the operator ended after the record");
    let last = after(&told, now).last_verification.unwrap();
    assert_eq!((last.result, last.passed_at.map(|it| it.0)), (VerificationResult::Passed, Some(now)));
    let mut going = told.clone();
    let deleted = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now);
    going.restored.as_mut().unwrap().metadata.deletion_timestamp = Some(deleted);
    let waiting = plan(&going, now);
    assert_eq!((steps(&waiting), waiting.ends_verification), (vec![], false), "until it is gone");
    let gone = Observed { restored: None, ..told };
    let over = plan(&gone, now);
    assert_eq!((steps(&over), over.ends_verification), (vec![], true));
    let status = after(&gone, now);
    assert_eq!(status.verification, None);
    assert_eq!(status.last_verification_time.map(|it| it.0), Some(due()), "its time is answered");
    // A result of an earlier verification of the same Backup does not count.
    let mut again = with(&READY, ended(vec![]));
    let earlier = BackupVerification { database_name: "verify-earlier".to_owned(), ..passed };
    again.backups[0].status.as_mut().unwrap().verification = Some(earlier);
    assert_eq!(steps(&plan(&again, now)), ["record", "delete"]);
}

#[test]
fn a_verification_that_runs_comes_to_its_end_whatever_becomes_of_the_schedule() {
    let now = at("2026-06-01T05:10:00Z");
    let mut suspended = verify();
    suspended["suspend"] = json!(true);
    for spec in [json!({}), suspended, json!({"schedule": "0 0 30 2 *"})] {
        let state = serde_json::to_value(underway(Some("restored-uid")).schedule.status).unwrap();
        let observed = Observed { schedule: schedule(&spec, &state), ..with(&READY, ended(vec![])) };
        assert_eq!(steps(&plan(&observed, now)), ["record", "delete"], "{spec}");
    }
    let next = plan(&with(&[], CheckView::NotBegun), at("2026-06-02T05:00:00Z"));
    assert_eq!(next.skipped_verification, Some(at("2026-06-02T05:00:00Z")), "one at a time");
}

#[test]
fn what_is_left_of_a_verification_of_which_nothing_is_written_down_is_deleted_before_another_begins() {
    let left = |change: fn(&mut Database)| {
        let mut database = restored(&READY);
        change(&mut database);
        Observed { left: vec![database], ..at_five(&verify(), &json!({})) }
    };
    let going = |it: &mut Database| {
        let deleted = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(due());
        it.metadata.deletion_timestamp = Some(deleted);
    };
    let rows: Vec<(&str, Observed, &[&str])> = vec![
        ("left", left(|_| {}), &["delete"]),
        ("going", left(going), &[]),
        (
            "a person's own, with the label",
            left(|it| it.metadata.owner_references = None),
            &["begin", "create"],
        ),
        ("protected", left(|it| it.spec.deletion_protection = true), &["begin", "create"]),
    ];
    for (name, observed, expected) in rows {
        assert_eq!(steps(&plan(&observed, due())), expected, "{name}");
    }
}

#[test]
fn retention_deletes_no_backup_that_is_being_verified() {
    let mut spec = verify();
    spec["retention"] = json!({"count": 1});
    let backups = || vec![newest(), complete("nightly-202606020330", "2026-06-02T03:30:05Z")];
    let now = at("2026-06-02T03:31:00Z");
    let listed = || Some(backups().iter().map(ResourceExt::name_any).collect());
    let told = json!({"lastTime": "2026-06-02T03:30:00Z"});
    let quiet = Observed { schedule: schedule(&spec, &told), listed: listed(), ..world(backups()) };
    assert_eq!(steps(&plan(&quiet, now)), ["expire"]);
    let mut running = told.clone();
    json_patch::merge(
        &mut running,
        &json!({"verification": super::verification::running(Some("restored-uid"))}),
    );
    let mut restored = restored(&[]);
    restored.metadata.uid = Some("restored-uid".to_owned());
    let busy = Observed {
        schedule: schedule(&spec, &running),
        listed: listed(),
        restored: Some(restored),
        ..world(backups())
    };
    assert!(!steps(&plan(&busy, now)).contains(&"expire"));
}

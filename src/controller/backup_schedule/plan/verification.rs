//! The verification of a Backup: the newest complete one is restored in a Database of its own, which is
//! checked and deleted. Pure.
//!
//! What is intended is written down first, then the Database is created, its check is recorded in the Backup,
//! and the Database is deleted: each step is found out from what is there, so each may be repeated.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::action::{Action, Plan};
use super::mine::newest;
use crate::api::database::EngineType;
use crate::api::verification::{
    BackupVerification, DEFAULT_TIMEOUT_MINUTES, Verification, VerificationResult, Verify,
};
use crate::api::{Backup, BackupSchedule, ConditionType, Database};
use crate::controller::backup_schedule::build;
use crate::controller::backup_schedule::observe::Observed;
use crate::controller::backup_schedule::times::Times;
use crate::controller::backup_schedule::wait::{Field, NotVerified, ScheduleWait};
use crate::controller::conditions;
use crate::controller::memory::checks::CheckView;
use crate::controller::safety;
use crate::engine::verify::Verified;
use crate::time::{later, until, whole_second};

/// For so long after its time a verification may begin: a new operator leads by then, and a Backup of the
/// same time is complete.
const WINDOW: SignedDuration = SignedDuration::from_hours(1);

/// Adds what a verification needs to what the Backups need.
pub(super) fn plan(observed: &Observed, now: Timestamp, plan: &mut Plan) {
    let due = due(observed, now, plan);
    if let Some(running) = running(&observed.schedule) {
        plan.skipped_verification = due;
        go_on(observed, running, now, plan);
        return;
    }
    let is_ours = |it: &&Database| safety::may_delete_restored(it, None, &observed.schedule);
    let left: Vec<&Database> = observed.left.iter().filter(is_ours).collect();
    if left.is_empty() {
        begin(observed, due, now, plan);
    }
    // What is left of an earlier one goes first.
    let left = left.into_iter().filter(|it| it.metadata.deletion_timestamp.is_none());
    plan.actions.extend(left.map(delete));
}

fn delete(database: &Database) -> Action {
    Action::DeleteDatabase {
        name: database.name_any(),
        uid: database.uid().unwrap_or_default(),
        resource_version: database.resource_version().unwrap_or_default(),
    }
}

/// The verification that runs.
fn running(schedule: &BackupSchedule) -> Option<&Verification> {
    schedule.status.as_ref()?.verification.as_ref()
}

/// Whether this Backup is being verified.
pub(super) fn is_of(backup: &Backup, schedule: &BackupSchedule) -> bool {
    running(schedule).is_some_and(|it| backup.metadata.uid.as_ref() == Some(&it.backup_uid))
}

/// The newest time of a verification that has come and is not answered yet. None comes while no Backup is
/// scheduled.
fn due(observed: &Observed, now: Timestamp, plan: &mut Plan) -> Option<Timestamp> {
    let (schedule, spec) = (&observed.schedule, &observed.schedule.spec);
    let since = plan.counts.as_ref()?.since.0;
    let verify = spec.verify.as_ref()?;
    let times = match Times::of(&verify.schedule, &spec.time_zone, &schedule.uid().unwrap_or_default()) {
        Ok(times) => times,
        Err(why) => {
            plan.waiting.get_or_insert(ScheduleWait::Invalid(Field::Verify, why));
            return None;
        }
    };
    let Some(next) = times.next(now) else {
        let never = || ScheduleWait::NeverComes(Field::Verify, verify.schedule.clone());
        plan.waiting.get_or_insert_with(never);
        return None;
    };
    let is_custom = observed.database.as_ref().is_some_and(|it| it.spec.engine.kind == EngineType::Custom);
    if verify.query.is_some() && is_custom {
        plan.waiting.get_or_insert(ScheduleWait::QueryOfCustom);
        return None;
    }
    plan.next_verification = Some(next);
    plan.again(until(next, now));
    let last = schedule.status.as_ref().and_then(|status| status.last_verification_time.as_ref());
    // What a clock that was ahead has written does not count.
    let last = last.map(|last| last.0).filter(|last| *last <= now);
    times.newest(last.map_or(since, |last| last.max(since)), now)
}

/// Begins the verification of this time, unless it is too late for it. As long as it is not, a complete
/// Backup is waited for.
fn begin(observed: &Observed, due: Option<Timestamp>, now: Timestamp, plan: &mut Plan) {
    let Some(time) = due else { return };
    let (schedule, verify) = (&observed.schedule, observed.schedule.spec.verify.as_ref());
    if now.duration_since(time) > WINDOW {
        plan.skipped_verification = Some(time);
        return;
    }
    let (Some(backup), Some(of)) = (newest(&observed.backups, schedule), &observed.database) else { return };
    let running = Verification {
        backup_name: backup.name_any(),
        backup_uid: backup.uid().unwrap_or_default(),
        database_name: build::database_name(schedule, time),
        database_uid: None,
        started_at: Time(whole_second(now)),
    };
    match build::database(schedule, verify, &running, backup, of) {
        Some(database) => {
            plan.actions.push(Action::BeginVerification(Box::new(running), time));
            plan.actions.push(Action::CreateDatabase(Box::new(database)));
        }
        None => plan.skipped_verification = Some(time),
    }
}

/// The next step of the verification that runs.
fn go_on(observed: &Observed, running: &Verification, now: Timestamp, plan: &mut Plan) {
    let backup = observed.backups.iter().find(|backup| {
        backup.metadata.uid.as_ref() == Some(&running.backup_uid)
            && backup.metadata.deletion_timestamp.is_none()
    });
    // A result of this verification is one of its own Database.
    let is_awaited = |it: &&Backup| {
        let result = it.status.as_ref().and_then(|status| status.verification.as_ref());
        result.is_none_or(|result| result.database_name != running.database_name)
    };
    let backup = backup.filter(is_awaited);
    match &observed.restored {
        None => without_database(observed, running, backup, now, plan),
        Some(database) if safety::may_delete_restored(database, Some(running), &observed.schedule) => {
            with_database(observed, running, backup, database, now, plan);
        }
        // A foreign object of the name, or one that a person keeps.
        Some(_) => plan.ends_verification = true,
    }
}

/// The Database is to be created, or is gone. `backup`: the one that is verified, while that has no result.
fn without_database(
    observed: &Observed,
    running: &Verification,
    backup: Option<&Backup>,
    now: Timestamp,
    plan: &mut Plan,
) {
    let (schedule, verify) = (&observed.schedule, observed.schedule.spec.verify.as_ref());
    let backup = backup.filter(|_| running.database_uid.is_none());
    let Some((backup, of)) = backup.zip(observed.database.as_ref()) else {
        plan.ends_verification = true;
        return;
    };
    let deadline = deadline(running, verify);
    if now >= deadline {
        let failure = NotVerified::NotCreated { minutes: minutes(verify) };
        plan.actions.push(record(backup, running, None, &[failure], now));
        plan.again(observed.timing.requeue_interval);
        return;
    }
    match build::database(schedule, verify, running, backup, of) {
        Some(database) => plan.actions.push(Action::CreateDatabase(Box::new(database))),
        None => plan.ends_verification = true,
    }
}

/// The Database is there: it is waited for and checked as long as `backup` has no result, and deleted then.
fn with_database(
    observed: &Observed,
    running: &Verification,
    backup: Option<&Backup>,
    database: &Database,
    now: Timestamp,
    plan: &mut Plan,
) {
    plan.restored_uid = database.uid();
    if database.metadata.deletion_timestamp.is_some() {
        return;
    }
    let Some(backup) = backup else {
        plan.actions.push(delete(database));
        return;
    };
    let verify = observed.schedule.spec.verify.as_ref();
    if let Some((verified, failures)) = verdict(observed, running, database, now) {
        plan.actions.push(record(backup, running, verified, &failures, now));
        plan.actions.push(delete(database));
        return;
    }
    plan.again(until(deadline(running, verify), now));
    if is_ready(database) {
        // The end of a check wakes no object.
        plan.again(observed.timing.requeue_interval);
        if observed.check != CheckView::Running {
            plan.actions.push(Action::Check(Box::new(database.clone())));
        }
    }
}

/// What was read of the database, and what is wrong; `None` while that is not known.
fn verdict<'a>(
    observed: &'a Observed,
    running: &Verification,
    database: &Database,
    now: Timestamp,
) -> Option<(Option<&'a Verified>, Vec<NotVerified>)> {
    let verify = observed.schedule.spec.verify.as_ref();
    let message = |kind| conditions::find(database.conditions(), kind).map(|it| it.message.clone());
    let name = database.name_any();
    if conditions::is_true(database.conditions(), ConditionType::Stalled) {
        let why = message(ConditionType::Stalled).unwrap_or_default();
        return Some((None, vec![NotVerified::Stalled { name, why }]));
    }
    let is_ready = is_ready(database);
    if is_ready && database.spec.engine.kind == EngineType::Custom {
        return Some((None, Vec::new()));
    }
    if let (true, CheckView::Ended(Ok(verified))) = (is_ready, &observed.check) {
        let found = verified.findings.iter().cloned().map(NotVerified::Found).collect();
        return Some((Some(verified), found));
    }
    if now < deadline(running, verify) {
        return None;
    }
    let minutes = minutes(verify);
    let failure = match &observed.check {
        CheckView::Ended(Err(why)) => NotVerified::NotChecked { name, minutes, why: Some(why.clone()) },
        CheckView::Running => NotVerified::NotChecked { name, minutes, why: None },
        CheckView::NotBegun | CheckView::Ended(Ok(_)) => {
            NotVerified::NotReady { name, minutes, why: message(ConditionType::Ready).unwrap_or_default() }
        }
    };
    Some((None, vec![failure]))
}

/// Whether the database serves, as its spec is now.
fn is_ready(database: &Database) -> bool {
    let ready = conditions::find(database.conditions(), ConditionType::Ready);
    ready.is_some_and(|it| it.status == "True" && it.observed_generation == database.metadata.generation)
}

fn record(
    backup: &Backup,
    running: &Verification,
    verified: Option<&Verified>,
    failures: &[NotVerified],
    now: Timestamp,
) -> Action {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let is_passed = failures.is_empty();
    let verification = BackupVerification {
        verified_at: Time(whole_second(now)),
        result: if is_passed { VerificationResult::Passed } else { VerificationResult::Failed },
        database_name: running.database_name.clone(),
        tables: verified.map(|it| number(it.tables)),
        rows: verified.map(|it| number(it.rows)),
        indexes: verified.and_then(|it| it.indexes).map(number),
        message: (!is_passed).then(|| NotVerified::message_of(failures)),
        duration_seconds: now.duration_since(running.started_at.0).as_secs().max(0),
    };
    Action::Record(Box::new(backup.clone()), Box::new(verification))
}

/// A BackupSchedule that says nothing of verifications any more lets the one that runs come to its end.
fn minutes(verify: Option<&Verify>) -> u32 {
    verify.map_or(DEFAULT_TIMEOUT_MINUTES, |verify| verify.timeout_minutes)
}

fn deadline(running: &Verification, verify: Option<&Verify>) -> Timestamp {
    later(running.started_at.0, Duration::from_secs(60 * u64::from(minutes(verify))))
}

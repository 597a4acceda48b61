//! The plan step of the BackupSchedule controller: which Backup is created now, which are deleted, and what
//! the verification of one does next. Pure.
//!
//! A Backup is named after its time, so that a time is never answered twice: whatever was lost of the status,
//! the Backup is there. Of the times that have passed without an operator only the newest is made up for.

pub mod action;
mod mine;
mod retention;
mod verification;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use self::action::{Action, Plan};
pub(super) use self::mine::{is_of, newest};
use super::observe::Observed;
use super::times::Times;
use super::wait::{Field, ScheduleWait};
use crate::api::backup_schedule::Counts;
use crate::api::{Backup, BackupSchedule};
use crate::time::{until, whole_second};

/// Decides what to do about a BackupSchedule.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let mut plan = backups(observed, now);
    verification::plan(observed, now, &mut plan);
    plan
}

/// Which Backup is created, and which are deleted.
fn backups(observed: &Observed, now: Timestamp) -> Plan {
    let (schedule, spec) = (&observed.schedule, &observed.schedule.spec);
    let times = match Times::of(&spec.schedule, &spec.time_zone, &schedule.uid().unwrap_or_default()) {
        Ok(times) => times,
        Err(why) => return Plan::idle(ScheduleWait::Invalid(Field::Schedule, why)),
    };
    if spec.suspend {
        return Plan::idle(ScheduleWait::Suspended);
    }
    if observed.database.is_none() {
        let missing = ScheduleWait::NoDatabase(spec.database_name.clone());
        // Databases are not watched.
        return Plan { requeue: Some(observed.timing.instance_sync_interval), ..Plan::idle(missing) };
    }
    let Some(next) = times.next(now) else {
        return Plan::idle(ScheduleWait::NeverComes(Field::Schedule, spec.schedule.clone()));
    };
    let counts = counts(schedule, now);
    let mine: Vec<&Backup> = observed.backups.iter().filter(|it| is_of(it, schedule)).collect();
    let came = times.newest(after(schedule, &counts, now), now);
    let mut plan = Plan {
        counts: Some(counts),
        came,
        next: Some(next),
        requeue: Some(until(next, now)),
        ..Plan::done()
    };
    if let Some(time) = came {
        answer(observed, &mine, time, &mut plan);
    }
    let last = came.or_else(|| last_time(schedule)).map(|time| backup_name(schedule, time));
    plan.waiting = trouble(&mine, last.as_deref(), &plan);
    if let (Some(retention), Some(listed)) = (&spec.retention, &observed.listed) {
        let expired = retention::expired(retention, &mine, listed, now).into_iter();
        let expired = expired.filter(|backup| !verification::is_of(backup, schedule));
        plan.actions.extend(expired.map(Action::expire));
    }
    plan
}

/// Creates the Backup of a time that has come, or leaves it out.
fn answer(observed: &Observed, mine: &[&Backup], time: Timestamp, plan: &mut Plan) {
    let name = backup_name(&observed.schedule, time);
    match observed.backups.iter().find(|backup| backup.name_any() == name) {
        Some(backup) if is_of(backup, &observed.schedule) => {}
        Some(_) => plan.left_out = Some((name.clone(), ScheduleWait::NameTaken(name))),
        None => match unfinished(mine) {
            Some(earlier) => plan.left_out = Some((name, ScheduleWait::Unfinished(earlier.name_any()))),
            None => plan.actions.push(Action::Create(name)),
        },
    }
}

/// Why the backups are not as scheduled. `last` is the name of the Backup of the newest time.
fn trouble(mine: &[&Backup], last: Option<&str>, plan: &Plan) -> Option<ScheduleWait> {
    if let Some((_, why)) = &plan.left_out {
        return Some(why.clone());
    }
    if let Some(earlier) = unfinished(mine).filter(|it| last.is_some_and(|last| it.name_any() != last)) {
        return Some(ScheduleWait::Unfinished(earlier.name_any()));
    }
    let ended = mine.iter().filter(|backup| backup.is_over());
    let newest = ended.max_by_key(|backup| (backup.creation_timestamp(), backup.name_any()))?;
    let is_failed = newest.status.as_ref().is_some_and(|status| status.failure.is_some());
    is_failed.then(|| ScheduleWait::Failed(newest.name_any()))
}

/// The oldest Backup that has not come to its end.
fn unfinished<'a>(mine: &[&'a Backup]) -> Option<&'a Backup> {
    let unfinished = mine.iter().copied().filter(|backup| !backup.is_over());
    unfinished.min_by_key(|backup| (backup.creation_timestamp(), backup.name_any()))
}

/// Which times count: as before, while the schedule is the same; else those after now.
fn counts(schedule: &BackupSchedule, now: Timestamp) -> Counts {
    let before = schedule.status.as_ref().and_then(|status| status.counts.clone());
    let spec = &schedule.spec;
    // What a clock that was ahead has written does not count.
    let is_same =
        |it: &Counts| it.schedule == spec.schedule && it.time_zone == spec.time_zone && it.since.0 <= now;
    before.filter(is_same).unwrap_or_else(|| Counts {
        since: Time(whole_second(now)),
        schedule: spec.schedule.clone(),
        time_zone: spec.time_zone.clone(),
    })
}

/// The moment after which a time is new. What a clock that was ahead has written into the future does not
/// count: the Backups of the times that were answered are known by their names.
fn after(schedule: &BackupSchedule, counts: &Counts, now: Timestamp) -> Timestamp {
    let last = last_time(schedule).filter(|last| *last <= now);
    last.map_or(counts.since.0, |last| last.max(counts.since.0))
}

fn last_time(schedule: &BackupSchedule) -> Option<Timestamp> {
    schedule.status.as_ref()?.last_time.as_ref().map(|time| time.0)
}

/// The Backup of this time, which is in UTC: `nightly-202611260330`.
fn backup_name(schedule: &BackupSchedule, time: Timestamp) -> String {
    format!("{}-{}", schedule.name_any(), time.strftime("%Y%m%d%H%M"))
}

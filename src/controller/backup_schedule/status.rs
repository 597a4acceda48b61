//! The status step of the BackupSchedule controller: computes its status, its conditions, and the events of
//! what was left out. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::messages;
use super::observe::Observed;
use super::plan::action::Plan;
use super::plan::{is_of, newest};
use super::wait::ScheduleWait;
use crate::api::backup_schedule::LastComplete;
use crate::api::verification::{BackupVerification, LastVerification, Verification, VerificationResult};
use crate::api::{BackupSchedule, BackupScheduleStatus, EventReason};
use crate::cluster::events::Happened;
use crate::controller::conditions::{self, Entry};
use crate::controller::pass::acted::{Acted, ready_and_stalled};

/// The status to write. `is_answered`: every Backup that was to be created is.
pub fn status(
    observed: &Observed,
    plan: &Plan,
    acted: &Acted<BackupSchedule>,
    is_answered: bool,
    now: Timestamp,
) -> BackupScheduleStatus {
    let old = acted.object.status.clone().unwrap_or_default();
    let generation = observed.schedule.metadata.generation;
    // A time whose Backup could not be created comes again with the next pass.
    let came = plan.came.filter(|_| is_answered).map(Time);
    let running = old.verification.filter(|_| !plan.ends_verification).map(|running| Verification {
        database_uid: running.database_uid.or_else(|| plan.restored_uid.clone()),
        ..running
    });
    BackupScheduleStatus {
        observed_generation: generation,
        conditions: conditions::merge(&old.conditions, &entries(plan, acted), generation, now),
        counts: plan.counts.clone(),
        last_time: came.or(old.last_time),
        next_time: plan.next.map(Time),
        last_complete: last_complete(observed),
        verification: running,
        last_verification: last_verification(observed, old.last_verification),
        last_verification_time: plan.skipped_verification.map(Time).or(old.last_verification_time),
        next_verification_time: plan.next_verification.map(Time),
    }
}

fn entries(plan: &Plan, acted: &Acted<BackupSchedule>) -> Vec<Entry> {
    let waiting = plan.waiting.as_ref();
    let why = waiting.map(|waiting| (waiting.reason(), waiting.message()));
    let is_stalled = waiting.is_some_and(ScheduleWait::is_stalled);
    ready_and_stalled(acted.error.as_ref(), why, is_stalled, messages::READY)
}

/// The newest Backup that can be restored.
fn last_complete(observed: &Observed) -> Option<LastComplete> {
    let newest = newest(&observed.backups, &observed.schedule)?;
    let started_at = newest.status.as_ref()?.started_at.clone()?;
    Some(LastComplete { backup_name: newest.name_any(), started_at })
}

/// What the newest verification came to, also once its Backup is gone.
fn last_verification(observed: &Observed, old: Option<LastVerification>) -> Option<LastVerification> {
    let mine = observed.backups.iter().filter(|backup| is_of(backup, &observed.schedule));
    let ended =
        mine.filter_map(|backup| Some((backup.name_any(), backup.status.as_ref()?.verification.clone()?)));
    let newest = ended.max_by_key(|(name, it)| (it.verified_at.0, name.clone()));
    let newer = newest.filter(|(_, it)| old.as_ref().is_none_or(|old| old.verified_at.0 <= it.verified_at.0));
    let Some((backup_name, BackupVerification { verified_at, result, .. })) = newer else { return old };
    let passed_at = match result {
        VerificationResult::Passed => Some(verified_at.clone()),
        VerificationResult::Failed => old.and_then(|old| old.passed_at),
    };
    Some(LastVerification { backup_name, verified_at, result, passed_at })
}

/// What an event reports.
pub fn changes(plan: &Plan) -> Vec<Happened> {
    let happened = plan.left_out.iter().map(|(name, why)| {
        Happened::warning(EventReason::BackupSkipped, messages::events::skipped(name, &why.message()))
    });
    happened.collect()
}

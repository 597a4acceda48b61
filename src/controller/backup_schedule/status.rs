//! The status step of the BackupSchedule controller: computes its status, its conditions, and the events of
//! what was left out. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::messages;
use super::observe::Observed;
use super::plan::action::Plan;
use super::plan::is_of;
use crate::api::ConditionType as Type;
use crate::api::backup_schedule::LastComplete;
use crate::api::{BackupSchedule, BackupScheduleStatus, EventReason, Reason};
use crate::cluster::events::Happened;
use crate::controller::conditions::{self, Entry};
use crate::controller::pass::acted::{Acted, why};

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
    BackupScheduleStatus {
        observed_generation: generation,
        conditions: conditions::merge(&old.conditions, &entries(plan, acted), generation, now),
        counts: plan.counts.clone(),
        last_time: came.or(old.last_time),
        next_time: plan.next.map(Time),
        last_complete: last_complete(observed),
    }
}

fn entries(plan: &Plan, acted: &Acted<BackupSchedule>) -> Vec<Entry> {
    let waiting = plan.waiting.as_ref().map(|waiting| (waiting.reason(), waiting.message()));
    let is_ready = waiting.is_none() && acted.error.is_none();
    let (reason, message) = why(acted.error.as_ref(), None, waiting);
    let ready = if is_ready {
        Entry::yes(Type::Ready, Reason::AsExpected, messages::READY)
    } else {
        Entry::no(Type::Ready, reason, message)
    };
    let stalled = plan.waiting.as_ref().filter(|waiting| waiting.is_stalled());
    vec![ready, conditions::stalled(stalled.map(|waiting| (waiting.reason(), waiting.message())))]
}

/// The newest Backup that can be restored.
fn last_complete(observed: &Observed) -> Option<LastComplete> {
    let mine = observed.backups.iter().filter(|backup| is_of(backup, &observed.schedule));
    let complete = mine.filter(|backup| backup.can_be_restored()).filter_map(|backup| {
        let started_at = backup.status.as_ref()?.started_at.clone()?;
        Some(LastComplete { backup_name: backup.name_any(), started_at })
    });
    complete.max_by_key(|it| (it.started_at.0, it.backup_name.clone()))
}

/// What an event reports.
pub fn changes(plan: &Plan) -> Vec<Happened> {
    let happened = plan.left_out.iter().map(|(name, why)| {
        Happened::warning(EventReason::BackupSkipped, messages::events::skipped(name, &why.message()))
    });
    happened.collect()
}

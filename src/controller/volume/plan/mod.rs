//! The plan step of the Volume controller: compares what is with what should be, and decides the actions.
//! Pure.

mod adopted;
mod adoption;
mod binding;
mod check;
mod check_adopted;
mod creation;
mod deletion;
pub(super) mod facts;
mod modification;
mod release;
mod restored;
mod snapshot;
mod wakes;

pub mod action;

use jiff::Timestamp;
use kube::ResourceExt;

use self::action::{Action, Plan, Stage};
use super::observe::Observed;
use super::recorded;
use super::wait::VolumeWait;
use super::wait::creation::CreationWait;
use crate::api::{VolumeId, VolumeStatus};
use crate::cloud::VolumeState;
use crate::cluster::finalizer;
use crate::cluster::ownership::Ownership;
use crate::time::sooner;

/// Decides what to do about a Volume. A debug build checks each plan by the rules of `check.rs`.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let mut plan = decide(observed, now);
    if observed.ownership == Ownership::Unowned {
        // The end of its Database wakes it no more.
        plan.requeue = Some(sooner(observed.timing.requeue_interval, plan.requeue));
    }
    debug_assert_eq!(
        check::violations(observed, &plan),
        Vec::<String>::new(),
        "the plan of {}",
        observed.volume.name_any()
    );
    plan
}

fn decide(observed: &Observed, now: Timestamp) -> Plan {
    if observed.volume.metadata.deletion_timestamp.is_some() {
        return deletion::plan(observed, now);
    }
    if !finalizer::has(&observed.volume) {
        return Plan::act(Stage::Nothing, vec![Action::AddFinalizer], VolumeWait::AddingFinalizer);
    }
    if observed.volumes.swept_at.is_none() {
        return Plan::wait(Stage::Nothing, VolumeWait::FirstSync);
    }
    let Some(size) = observed.volume.spec.size.gib() else {
        return Plan::wait(Stage::Nothing, VolumeWait::InvalidSize(observed.volume.spec.size.clone()));
    };
    let status = observed.volume.status.clone().unwrap_or_default();
    if let Some(adopt) = &observed.volume.spec.adopt
        && status.volume_id.as_ref() != Some(&adopt.volume_id)
    {
        return adopted::take(observed, adopt, size);
    }
    match (&status.creation, &status.volume_id) {
        (_, Some(id)) => identified(observed, &status, id, size, now),
        (Some(creation), None) => creation::unidentified(observed, creation, size, now),
        (None, None) => creation::uncreated(observed, size, now),
    }
}

/// The Volume has an EBS volume.
fn identified(observed: &Observed, status: &VolumeStatus, id: &VolumeId, size: i32, now: Timestamp) -> Plan {
    let seen = observed.volumes.volumes.iter().find(|volume| volume.id == *id);
    match seen.map(|volume| (volume, volume.state)) {
        Some((_, VolumeState::Creating)) => {
            Plan::wait(Stage::Nothing, CreationWait::Creating(id.clone())).pending()
        }
        Some((volume, VolumeState::Available | VolumeState::InUse | VolumeState::Unknown)) => {
            match &observed.volume.spec.adopt {
                Some(adopt) => adopted::bind(observed, status, adopt, volume, size, now),
                // Nothing that is to be released is changed.
                None if observed.volume.spec.release => Plan::done(),
                None => binding::plan(observed, status, volume, size, now),
            }
        }
        Some((_, VolumeState::Error)) => Plan::wait(Stage::Nothing, VolumeWait::Broken(id.clone())),
        None => match &observed.volume.spec.adopt {
            Some(adopt) => adopted::moving(observed, adopt, now)
                .unwrap_or_else(|| missing_by_id(observed, status, id, size, now)),
            None => adoption::moving(observed, id, now).unwrap_or_else(|| {
                let plan = missing(observed, status, id, size, now);
                if !matches!(plan.waiting, Some(VolumeWait::Lost { .. })) {
                    return plan;
                }
                // Tags can be taken off.
                let wait = missing_wait(observed, status, id);
                facts::once_confirmed(observed, id, plan, wait)
            }),
        },
        Some((_, VolumeState::Deleting | VolumeState::Deleted)) => missing(observed, status, id, size, now),
    }
}

/// No look-up by tag shows the volume that was adopted in place: what EC2 shows by its id is not lost.
fn missing_by_id(
    observed: &Observed,
    status: &VolumeStatus,
    id: &VolumeId,
    size: i32,
    now: Timestamp,
) -> Plan {
    let wait = missing_wait(observed, status, id);
    facts::once_confirmed(observed, id, missing(observed, status, id, size, now), wait)
}

/// What is said of an EBS volume that no look-up by tag shows, until EC2 has answered by its id.
fn missing_wait(observed: &Observed, status: &VolumeStatus, id: &VolumeId) -> VolumeWait {
    match recorded::lost_since(status) {
        Some(_) => VolumeWait::Lost { volume: observed.volume.name_any(), id: id.clone() },
        None => VolumeWait::Missing(id.clone()),
    }
}

/// EC2 does not show the volume that the status names.
fn missing(observed: &Observed, status: &VolumeStatus, id: &VolumeId, size: i32, now: Timestamp) -> Plan {
    let proven = facts::proven_absent(observed, status.creation.as_ref()).is_some();
    // What was proven once need not be proven again while EC2 goes on not showing it.
    let was_lost = recorded::lost_since(status).is_some();
    match (observed.has_held(), proven || was_lost, &status.creation) {
        (true, true, _) => Plan::wait(
            Stage::Nothing,
            VolumeWait::Lost { volume: observed.volume.name_any(), id: id.clone() },
        ),
        (true, false, _) => Plan::wait(Stage::Nothing, VolumeWait::Missing(id.clone())).pending(),
        // A volume may vanish soon after it was made (a KMS refusal is asynchronous): it never held anything.
        // Pending, since the look-ups that are the proof are forgotten when nothing is awaited any more.
        (false, true, creation) if proven => {
            let attempt = creation.as_ref().map_or(1, |creation| creation.attempt.number) + 1;
            let plan = creation::next_attempt(observed, attempt, size, now).pending();
            if plan.actions.is_empty() {
                return plan;
            }
            facts::once_confirmed(observed, id, plan, CreationWait::NotListed(id.clone()))
        }
        (false, _, _) => Plan::wait(Stage::Nothing, CreationWait::NotListed(id.clone())).pending(),
    }
}

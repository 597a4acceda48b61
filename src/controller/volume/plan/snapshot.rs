//! The plan of the final snapshot of a Volume that is deleted under the policy Snapshot. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::action::{Action, Plan, Stage, VolumeInterest};
use super::facts::blocked;
use crate::api::VolumeStatus;
use crate::api::backup::Consistency;
use crate::api::creation::Attempt;
use crate::cloud::absence::{self, AbsenceProven, TokenLookup};
use crate::cloud::call::Call;
use crate::cloud::{EbsVolume, Snapshot, SnapshotState, VolumeState};
use crate::controller::contents::{Contents, class_tags};
use crate::controller::creation::judge::{Facts, last_possible_send};
use crate::controller::creation::next::{Next, next};
use crate::controller::volume::observe::Observed;
use crate::controller::volume::wait::deletion::SnapshotWait;
use crate::time::whole_second;

/// What is done until the final snapshot is complete; `None` once it is, and the EBS volume may be deleted.
pub(super) fn plan(
    observed: &Observed,
    status: &VolumeStatus,
    volume: &EbsVolume,
    now: Timestamp,
) -> Option<Plan> {
    if !observed.attachments.is_empty() || volume.state != VolumeState::Available {
        let wait = SnapshotWait::NotDetached(volume.id.clone());
        return Some(Plan::wait(Stage::Created, wait).pending().after(observed.timing.requeue_interval));
    }
    if observed.snapshots.swept_at.is_none() {
        return Some(waits_for(SnapshotWait::FirstSync));
    }
    let Some(announced) = &status.final_snapshot else {
        return Some(take_snapshot(observed, volume, 1, now));
    };
    let Some(id) = &announced.snapshot_id else {
        return Some(unidentified(observed, volume, &announced.attempt, now));
    };
    match of_volume(observed, volume).find(|snapshot| snapshot.id == *id) {
        Some(snapshot) => after_snapshot(volume, snapshot),
        // One that is gone is taken anew: the volume still has everything.
        None if proven_absent(observed, &announced.attempt).is_some() => {
            Some(take_snapshot(observed, volume, announced.attempt.number + 1, now))
        }
        None => Some(waits_for(SnapshotWait::NotListed(id.clone()))),
    }
}

/// An attempt was decided and has no id yet. What may have been sent is looked up by tag, and another one
/// follows only on proof that it made nothing.
fn unidentified(observed: &Observed, volume: &EbsVolume, attempt: &Attempt, now: Timestamp) -> Plan {
    // One that failed only if there is no other.
    let found = of_volume(observed, volume).min_by_key(|snapshot| snapshot.state == SnapshotState::Error);
    let facts = Facts {
        // The snapshot is part of the deletion.
        deleting: false,
        started_at: attempt.started_at.0,
        refused: attempt.refused.clone(),
        has_token: false,
        sent: None,
        found: found.map(|snapshot| snapshot.id.clone()),
        looked_up: true,
        absent: proven_absent(observed, attempt),
        same_request: true,
    };
    match next(facts, None, observed.timing.client_token_max_age, now) {
        Next::Adopt(id) => {
            let actions = vec![Action::RecordSnapshot(id.clone())];
            Plan { actions, ..waits_for(SnapshotWait::Recording(id)) }
        }
        // What was refused last pauses the call.
        Next::Refused(_) | Next::Another => take_snapshot(observed, volume, attempt.number + 1, now),
        Next::Resend | Next::Wait(..) => waits_for(SnapshotWait::InDoubt(volume.id.clone())),
    }
}

fn of_volume<'a>(observed: &'a Observed, volume: &'a EbsVolume) -> impl Iterator<Item = &'a Snapshot> {
    observed.snapshots.snapshots.iter().filter(|snapshot| snapshot.volume == volume.id)
}

/// The proof that the snapshot of this attempt does not exist.
fn proven_absent(observed: &Observed, attempt: &Attempt) -> Option<AbsenceProven> {
    let last = last_possible_send(Some(attempt), None, observed.leading_since);
    absence::prove(last, observed.snapshots.empty, TokenLookup::NotPossible, observed.timing.absence_window)
}

fn take_snapshot(observed: &Observed, volume: &EbsVolume, attempt: i32, now: Timestamp) -> Plan {
    blocked(observed, Call::CreateSnapshot, Stage::Created, now).unwrap_or_else(|| {
        let attempt = Attempt::new(attempt, Time(whole_second(now)));
        let actions = vec![Action::Snapshot(volume.id.clone(), attempt, contents(observed))];
        Plan { actions, ..waits_for(SnapshotWait::Requesting(volume.id.clone())) }
    })
}

/// What its class has asked for, and what is in the final snapshot, as far as the Database says it: its
/// engine has ended, or was never started on the data of a checkpoint.
fn contents(observed: &Observed) -> BTreeMap<String, String> {
    let of = |database| {
        let consistency = if Contents::is_unrecovered(database, &observed.volume) {
            Consistency::EngineCheckpoint
        } else {
            Consistency::CrashConsistent
        };
        Contents::of(database, &observed.volume, observed.around.namespace_uid.clone())
            .tags(consistency.as_str())
    };
    let mut tags = class_tags(&observed.volume, observed.class.as_ref());
    tags.extend(observed.owner.iter().flat_map(of));
    tags
}

fn after_snapshot(volume: &EbsVolume, snapshot: &Snapshot) -> Option<Plan> {
    Some(match snapshot.state {
        SnapshotState::Completed => return None,
        SnapshotState::Pending => waits_for(SnapshotWait::Pending(snapshot.id.clone())),
        SnapshotState::Error => Plan::wait(
            Stage::Created,
            SnapshotWait::Failed { snapshot: snapshot.id.clone(), id: volume.id.clone() },
        ),
    })
}

/// The snapshot is about to change in EC2.
fn waits_for(wait: SnapshotWait) -> Plan {
    Plan::wait(Stage::Created, wait).interested_in(VolumeInterest::Snapshot)
}

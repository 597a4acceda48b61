//! The plan of the final snapshot of a Volume that is deleted under the policy Snapshot. Pure.

use jiff::Timestamp;

use super::action::{Action, Plan, Stage};
use super::facts::blocked;

use crate::api::volume::FinalSnapshot;
use crate::api::{Reason, VolumeStatus};
use crate::cloud::absence::{self, TokenLookup};
use crate::cloud::call::Call;
use crate::cloud::{EbsVolume, Snapshot, SnapshotState, VolumeState};
use crate::controller::volume::observe::Observed;

/// What is done until the final snapshot is complete; `None` once it is, and the EBS volume may be deleted.
pub(super) fn plan(observed: &Observed, status: &VolumeStatus, volume: &EbsVolume, now: Timestamp) -> Option<Plan> {
    if !observed.attachments.is_empty() || volume.state != VolumeState::Available {
        let message = format!("EBS volume {} must be detached before its final snapshot", volume.id);
        let plan = Plan::wait(Stage::Created, Reason::AwaitingDetach, message).pending();
        return Some(Plan { again: Some(observed.timing.recheck), ..plan });
    }
    if observed.snapshots.swept_at.is_none() {
        return Some(
            Plan::wait(Stage::Created, Reason::AwaitingSnapshot, "the first complete look at EC2's snapshots is awaited").pending(),
        );
    }
    let Some(announced) = &status.final_snapshot else { return Some(take_snapshot(observed, volume, now)) };
    let mut of_this_volume = observed.snapshots.snapshots.iter().filter(|snapshot| snapshot.volume == volume.id);
    let found = match &announced.snapshot_id {
        Some(id) => of_this_volume.find(|snapshot| snapshot.id == *id),
        // One that failed only if there is no other.
        None => of_this_volume.min_by_key(|snapshot| snapshot.state == SnapshotState::Error),
    };
    match found {
        Some(snapshot) if announced.snapshot_id.is_none() => {
            let message = format!("snapshot {} of the volume was taken and is recorded", snapshot.id);
            Some(Plan::act(Stage::Created, vec![Action::RecordSnapshot(snapshot.id.clone())], Reason::AwaitingSnapshot, message).pending())
        }
        Some(snapshot) => after_snapshot(volume, snapshot),
        None => Some(snapshot_in_doubt(observed, volume, announced, now)),
    }
}

fn take_snapshot(observed: &Observed, volume: &EbsVolume, now: Timestamp) -> Plan {
    blocked(observed, Call::CreateSnapshot, Stage::Created, now).unwrap_or_else(|| {
        let message = format!("the final snapshot of EBS volume {} is being taken", volume.id);
        Plan::act(Stage::Created, vec![Action::Snapshot(volume.id.clone())], Reason::AwaitingSnapshot, message).pending()
    })
}

fn after_snapshot(volume: &EbsVolume, snapshot: &Snapshot) -> Option<Plan> {
    Some(match snapshot.state {
        SnapshotState::Completed => return None,
        SnapshotState::Pending => Plan::wait(
            Stage::Created,
            Reason::AwaitingSnapshot,
            format!("snapshot {} is not complete yet; the volume is kept until it is", snapshot.id),
        )
        .pending(),
        SnapshotState::Error => Plan::stalled(
            Stage::Created,
            Reason::AwaitingSnapshot,
            format!(
                "the final snapshot {} failed, so EBS volume {} is kept: set deletionPolicy to Retain, or delete the failed snapshot in EC2 and have status.finalSnapshot removed",
                snapshot.id, volume.id
            ),
        ),
    })
}

/// CreateSnapshot has no token: what may have been sent is looked for by tag, and sent again only on proof that it made nothing.
fn snapshot_in_doubt(observed: &Observed, volume: &EbsVolume, announced: &FinalSnapshot, now: Timestamp) -> Plan {
    let last = announced.started_at.0.max(observed.process_started);
    let proof = absence::prove(last, observed.snapshots.empty, TokenLookup::NotPossible, observed.timing.absence_window);
    match (&announced.snapshot_id, proof) {
        // One that had an id and is gone is taken anew: the volume still has everything.
        (_, Some(_)) => take_snapshot(observed, volume, now),
        (None, None) => Plan::wait(
            Stage::Created,
            Reason::AwaitingSnapshot,
            format!("it is not known whether EC2 took the final snapshot of {}: it is looked up until its absence is proven", volume.id),
        )
        .pending(),
        (Some(id), None) => {
            Plan::wait(Stage::Created, Reason::AwaitingSnapshot, format!("EC2 does not show snapshot {id} yet; the volume is kept"))
                .pending()
        }
    }
}

//! The plan of the final snapshot of a Volume that is deleted under the policy Snapshot. Pure.

use jiff::Timestamp;

use super::action::{Action, Plan, Stage, VolumeInterest};
use super::facts::blocked;

use crate::api::VolumeStatus;
use crate::api::volume::FinalSnapshot;
use crate::cloud::absence::{self, TokenLookup};
use crate::cloud::call::Call;
use crate::cloud::{EbsVolume, Snapshot, SnapshotState, VolumeState};
use crate::controller::volume::observe::Observed;
use crate::controller::volume::wait::deletion::SnapshotWait;

/// What is done until the final snapshot is complete; `None` once it is, and the EBS volume may be deleted.
pub(super) fn plan(observed: &Observed, status: &VolumeStatus, volume: &EbsVolume, now: Timestamp) -> Option<Plan> {
    if !observed.attachments.is_empty() || volume.state != VolumeState::Available {
        let wait = SnapshotWait::NotDetached(volume.id.clone());
        return Some(Plan::wait(Stage::Created, wait).pending().after(observed.timing.recheck));
    }
    if observed.snapshots.swept_at.is_none() {
        return Some(awaits(SnapshotWait::FirstSync));
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
            let actions = vec![Action::RecordSnapshot(snapshot.id.clone())];
            Some(Plan { actions, ..awaits(SnapshotWait::Recording(snapshot.id.clone())) })
        }
        Some(snapshot) => after_snapshot(volume, snapshot),
        None => Some(snapshot_in_doubt(observed, volume, announced, now)),
    }
}

fn take_snapshot(observed: &Observed, volume: &EbsVolume, now: Timestamp) -> Plan {
    blocked(observed, Call::CreateSnapshot, Stage::Created, now).unwrap_or_else(|| {
        let actions = vec![Action::Snapshot(volume.id.clone())];
        Plan { actions, ..awaits(SnapshotWait::Requesting(volume.id.clone())) }
    })
}

fn after_snapshot(volume: &EbsVolume, snapshot: &Snapshot) -> Option<Plan> {
    Some(match snapshot.state {
        SnapshotState::Completed => return None,
        SnapshotState::Pending => awaits(SnapshotWait::Pending(snapshot.id.clone())),
        SnapshotState::Error => Plan::wait(Stage::Created, SnapshotWait::Failed { snapshot: snapshot.id.clone(), id: volume.id.clone() }),
    })
}

/// CreateSnapshot has no token: what may have been sent is looked for by tag, and sent again only on proof that it made nothing.
fn snapshot_in_doubt(observed: &Observed, volume: &EbsVolume, announced: &FinalSnapshot, now: Timestamp) -> Plan {
    let last = announced.started_at.0.max(observed.process_started);
    let proof = absence::prove(last, observed.snapshots.empty, TokenLookup::NotPossible, observed.timing.absence_window);
    match (&announced.snapshot_id, proof) {
        // One that had an id and is gone is taken anew: the volume still has everything.
        (_, Some(_)) => take_snapshot(observed, volume, now),
        (None, None) => awaits(SnapshotWait::InDoubt(volume.id.clone())),
        (Some(id), None) => awaits(SnapshotWait::NotListed(id.clone())),
    }
}

/// The snapshot is about to change in EC2.
fn awaits(wait: SnapshotWait) -> Plan {
    Plan::wait(Stage::Created, wait).interested_in(VolumeInterest::Snapshot)
}

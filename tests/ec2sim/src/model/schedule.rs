//! Changes that time brings: an ordered list of moments, worked off by `advance`.

use std::time::Duration;

use jiff::Timestamp;

use super::{
    Model,
    records::{Change, Scheduled},
};
use crate::{ModificationState, OutsideAction, SnapshotState, VolumeState};

impl Model {
    /// Lets time pass until `now`. Time never goes back.
    pub fn advance(&mut self, now: Timestamp) {
        while self.state.schedule.first().is_some_and(|next| next.at <= now) {
            let next = self.state.schedule.remove(0);
            self.state.now = self.state.now.max(next.at);
            self.bring(next.change);
            self.note_transitions();
        }
        self.note_transitions();
        self.state.now = self.state.now.max(now);
    }

    /// When the next change is due.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.state.schedule.first().map(|next| next.at)
    }

    /// Does something to the account after `delay`.
    pub(crate) fn outside_later(&mut self, delay: Duration, action: OutsideAction) {
        self.after(delay, Change::Outside { action });
    }

    pub(super) fn after(&mut self, delay: Duration, change: Change) {
        let at = self.state.now + delay;
        let place = self.state.schedule.partition_point(|scheduled| scheduled.at <= at);
        self.state.schedule.insert(place, Scheduled { at, change });
    }

    fn bring(&mut self, change: Change) {
        match change {
            Change::InstanceRuns { id, epoch } => self.instance_runs(&id, epoch),
            Change::LaunchDies { id, epoch, code } => self.launch_dies(&id, epoch, &code),
            Change::StatusOk { id, epoch } => self.status_ok(&id, epoch),
            Change::InstanceStops { id, epoch } => self.instance_stops(&id, epoch),
            Change::InstanceTerminates { id, epoch } => self.instance_terminates(&id, epoch),
            Change::InstanceForgotten { id } => {
                self.state.instances.remove(&id);
                self.changed();
            }
            Change::VolumeAvailable { id, epoch } => self.volume_available(&id, epoch),
            Change::VolumeGone { id } => self.volume_gone(&id),
            Change::VolumeAttached { id, epoch } => self.volume_attached(&id, epoch),
            Change::VolumeDetached { id, epoch } => self.volume_detached(&id, epoch),
            Change::ModificationOptimizes { id, started_at } => {
                self.modification_optimizes(&id, started_at);
            }
            Change::ModificationCompletes { id, started_at } => {
                self.modification_completes(&id, started_at);
            }
            Change::SnapshotProgresses { id, percent } => self.snapshot_progresses(&id, percent),
            Change::Fails { id } => self.ends_badly(&id),
            Change::Outside { action } => {
                // What it was meant for may be gone by now; then there is nothing to do it to.
                let _ = self.outside(&action);
            }
        }
    }

    fn ends_badly(&mut self, id: &str) {
        let now = self.state.now;
        if let Some(held) = self.state.snapshots.get_mut(id) {
            held.view.state = SnapshotState::Error;
        }
        if let Some(held) = self.state.volumes.get_mut(id) {
            let last = held.view.modifications.last_mut();
            if held.view.state == VolumeState::Creating {
                held.view.state = VolumeState::Error;
            } else if let Some(modification) = last {
                modification.state = ModificationState::Failed;
                modification.ended_at = Some(now);
            }
        }
        self.changed();
    }
}

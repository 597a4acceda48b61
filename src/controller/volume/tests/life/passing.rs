//! How time passes in the model of a Volume's life: what EC2 and Kubernetes do by themselves, and what
//! look-ups show of it.

use super::*;

impl Life {
    /// Time moves to what the plan waits for, or to what moves by itself before that.
    pub(super) fn wait_for(&mut self, plan: &Plan) {
        let mut pause = plan.requeue.unwrap_or(Duration::from_secs(900));
        if self.is_moving() || !plan.actions.is_empty() {
            pause = pause.min(Duration::from_secs(10));
        }
        if plan.interest != VolumeInterest::Settled {
            pause = pause.min(Duration::from_secs(300));
        }
        self.now = later(self.now, pause.max(Duration::from_secs(1)));
        self.settle();
        self.look_up();
    }

    /// Whether something changes by itself.
    pub(super) fn is_moving(&self) -> bool {
        let is_on_its_way = |disk: &Disk| {
            disk.listed_from > self.now
                || matches!(disk.volume.state, VolumeState::Creating | VolumeState::Deleting)
        };
        self.disks.iter().any(is_on_its_way)
            || self.snapshots.iter().any(|(it, from)| it.state == SnapshotState::Pending || *from > self.now)
            || self.modification.as_ref().is_some_and(|(it, _)| it.state != ModificationState::Completed)
            || self
                .claim
                .as_ref()
                .is_some_and(|it| it.metadata.deletion_timestamp.is_some() && !self.is_attached)
    }

    /// What EC2 and Kubernetes have done by now.
    fn settle(&mut self) {
        if let Some((modification, size)) = &mut self.modification {
            let disk = self.disks.iter_mut().find(|disk| disk.volume.id == modification.volume);
            modification.state = if modification.state == ModificationState::Modifying {
                ModificationState::Optimizing
            } else {
                ModificationState::Completed
            };
            if let Some(disk) = disk {
                disk.volume.size = *size;
            }
        }
        for disk in &mut self.disks {
            let is_deleted = matches!(disk.volume.state, VolumeState::Deleting | VolumeState::Deleted);
            disk.volume.state = match (is_deleted, self.is_attached) {
                (true, _) => VolumeState::Deleted,
                (false, true) => VolumeState::InUse,
                (false, false) => VolumeState::Available,
            };
        }
        for (snapshot, _) in &mut self.snapshots {
            snapshot.state = SnapshotState::Completed;
        }
        self.claim =
            self.claim.take().filter(|it| it.metadata.deletion_timestamp.is_none() || self.is_attached);
        self.bind();
    }

    /// Kubernetes binds the claim, and grows the file system to what the claim asks for.
    fn bind(&mut self) {
        let Some(claim) = &self.claim else { return };
        let claimed_by =
            self.record.as_ref().and_then(|it| it.spec.as_ref()?.claim_ref.as_ref()?.uid.clone());
        let is_free = self.record.is_some() && claimed_by.is_none();
        let uid = claim.metadata.uid.clone();
        if !is_free && claimed_by != uid {
            return;
        }
        self.claimed_by(uid.as_ref());
        if let Some(claim) = &mut self.claim {
            let requested = claim.spec.as_ref().and_then(|it| it.resources.as_ref()?.requests.clone());
            let status = json!({"phase": "Bound", "capacity": requested});
            claim.status = serde_json::from_value(status).unwrap();
        }
    }

    /// The look-ups of a proof of absence.
    fn look_up(&mut self) {
        if let Some(last) = self.awaited.flatten() {
            self.empty = EmptyRun::after(self.empty, last, self.now, !self.listed().is_empty());
        }
        if let Some(last) = self.snapshot_awaited.flatten() {
            let is_hit = !self.listed_snapshots().is_empty();
            self.snapshot_empty = EmptyRun::after(self.snapshot_empty, last, self.now, is_hit);
        }
    }
}

//! How the plans of a Volume are carried out in the model: what each action changes, and what EC2 answers.

use super::*;

impl Life {
    /// Whether the next action follows.
    pub(super) fn carry_out(&mut self, action: &Action) -> bool {
        let now = self.now;
        match action {
            Action::AddFinalizer => self.volume.metadata.finalizers = Some(vec![FINALIZER.to_owned()]),
            Action::Create(creation) => {
                (self.status().creation, self.status().volume_id) = (Some(creation.as_ref().clone()), None);
                return self.send();
            }
            Action::Resend => {
                if let Some(creation) = self.status().creation.clone() {
                    self.sends.found_at_start(&creation.client_token, self.leading_since);
                }
                return self.send();
            }
            Action::RecordVolume(id) => self.status().volume_id = Some(id.clone()),
            Action::CreatePersistentVolume(record) => {
                self.status().ever_held = true;
                self.record.get_or_insert_with(|| record.as_ref().clone());
            }
            Action::ReopenPersistentVolume(_) => self.claimed_by(None),
            Action::CreateClaim(claim) => {
                self.claims_made += 1;
                let mut claim = claim.as_ref().clone();
                claim.metadata.uid = Some(format!("claim-{}", self.claims_made));
                self.claim.get_or_insert(claim);
            }
            Action::Modify(modify) => return self.modify(modify),
            Action::GrowClaim(claim) | Action::DeleteClaim(claim) => {
                let is_deleted = matches!(action, Action::DeleteClaim(_));
                self.claim = Some(claim.as_ref().clone());
                for claim in self.claim.iter_mut().filter(|_| is_deleted) {
                    claim.metadata.deletion_timestamp = Some(Time(now));
                }
            }
            Action::MarkRetained(record) => self.record = Some(record.as_ref().clone()),
            Action::Snapshot(id, attempt, _) => return self.snapshot(id, attempt),
            Action::RecordSnapshot(id) => {
                if let Some(snapshot) = &mut self.status().final_snapshot {
                    snapshot.snapshot_id = Some(id.clone());
                }
            }
            Action::DeleteVolume(id) => {
                let disk = self.disk(id).unwrap();
                assert_eq!(disk.volume.state, VolumeState::Available);
                disk.volume.state = VolumeState::Deleting;
                self.status().deleted_at = Some(Time(now));
            }
            Action::NoteDeleted => self.status().deleted_at = Some(Time(now)),
            Action::DeletePersistentVolume(_) => self.record = None,
            Action::RemoveFinalizer => self.is_gone = true,
            Action::FreeClaim(_)
            | Action::Adopt(..)
            | Action::Retag(..)
            | Action::ReleaseRecord(_)
            | Action::RecordAdopted(_)
            | Action::OwnClaim(_)
            | Action::DisownClaim(_)
            | Action::GiveBackRecord(_)
            | Action::Untag(..) => {
                panic!("nothing is adopted in the model: {action:?}")
            }
        }
        true
    }

    pub(super) fn disk(&mut self, id: &VolumeId) -> Option<&mut Disk> {
        self.disks.iter_mut().find(|it| it.volume.id == *id && it.volume.state != VolumeState::Deleted)
    }

    pub(super) fn claimed_by(&mut self, uid: Option<&String>) {
        for spec in self.record.iter_mut().filter_map(|record| record.spec.as_mut()) {
            spec.claim_ref.get_or_insert_default().uid = uid.cloned();
        }
    }

    /// CreateVolume with the recorded attempt, and what is recorded of its answer.
    fn send(&mut self) -> bool {
        let (now, answer) = (self.now, self.answers.pop_front().unwrap_or(Answer::Made));
        let Some(mut creation) = self.status().creation.clone() else { return true };
        let token = creation.client_token.clone();
        let made = |life: &Self| {
            life.disks.iter().find(|disk| disk.token == token).map(|disk| disk.volume.id.clone())
        };
        if let Some(listed_from) = answer.listed_from(now).filter(|_| made(self).is_none()) {
            self.make(&creation, listed_from);
        }
        let is_recorded = answer.note(&token, &mut creation.attempt, &self.sends, now);
        if is_recorded {
            self.status().volume_id = made(self);
        }
        self.status().creation = Some(creation);
        is_recorded
    }

    fn make(&mut self, creation: &VolumeCreation, listed_from: Timestamp) {
        let name = format!("vol-{}", self.disks.len() + 1);
        let volume = EbsVolume {
            size: creation.size,
            tags: creation.tags.clone(),
            ..ebs(&name, creation.attempt.number, VolumeState::Creating)
        };
        self.disks.push(Disk { volume, token: creation.client_token.clone(), listed_from });
    }

    fn modify(&mut self, modify: &Modify) -> bool {
        let answer = self.answers.pop_front().unwrap_or(Answer::Made);
        let before = self.status().modifications.clone();
        let modifications = &mut self.status().modifications;
        modifications.truncate(modifications.len() - usize::from(modify.replaces_last));
        modifications.push(modify.record.clone());
        let is_running = self.modification.as_ref().is_some_and(|(it, _)| {
            matches!(it.state, ModificationState::Modifying | ModificationState::Optimizing)
        });
        assert!(!is_running, "a modification is requested while another runs");
        match answer {
            Answer::Made | Answer::MadeInDoubt => {
                let id = modify.request.id.clone();
                let (state, started_at) = (ModificationState::Modifying, Some(self.now));
                self.modification =
                    Some((Modification { volume: id, state, started_at }, modify.record.size));
            }
            Answer::InDoubt => {}
            Answer::Throttled | Answer::Refused(_) => self.status().modifications = before,
        }
        false
    }

    /// CreateSnapshot, announced before.
    fn snapshot(&mut self, id: &VolumeId, attempt: &Attempt) -> bool {
        let now = self.now;
        let answer = self.answers.pop_front().unwrap_or(Answer::Made);
        let name = SnapshotId(format!("snap-{}", self.snapshots.len() + 1));
        if let Some(listed_from) = answer.listed_from(now) {
            let snapshot = Snapshot {
                id: name.clone(),
                volume: id.clone(),
                size: None,
                state: SnapshotState::Pending,
                started_at: Some(now),
                tags: BTreeMap::new(),
            };
            self.snapshots.push((snapshot, listed_from));
        }
        let mut attempt = attempt.clone();
        let snapshot_id = answer.note_without_token(&mut attempt, now).then_some(name);
        self.status().final_snapshot = Some(FinalSnapshot { attempt, snapshot_id });
        false
    }
}

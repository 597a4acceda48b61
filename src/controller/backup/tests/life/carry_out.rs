//! The model carries out the actions of a plan, each step with what becomes of it.

use super::*;

impl Life {
    /// Whether the next action follows.
    pub(super) fn carry_out(&mut self, action: &Action) -> bool {
        match action {
            Action::AddFinalizer => self.backup.metadata.finalizers = Some(vec![FINALIZER.to_owned()]),
            Action::Checkpoint { pod_uid, engine_time } => return self.checkpoint(pod_uid, *engine_time),
            Action::NoteConsistent => self.status().consistency = Some(Consistency::EngineCheckpoint),
            Action::Release(began_at) => return self.release(*began_at),
            Action::NoteReleased => self.note_released(),
            Action::Create(creation, source) => return self.create(creation, source),
            Action::RecordSnapshot(id) => self.status().snapshot_id = Some(id.clone()),
            Action::Tag(id, consistency) => {
                if self.step() != Step::Never {
                    let taken = self.taken.iter_mut().filter(|it| it.snapshot.id == *id);
                    for it in taken {
                        let value = consistency.as_str().to_owned();
                        it.snapshot.tags.insert("freehold.dev/consistency".to_owned(), value);
                    }
                }
            }
            Action::DeleteSnapshot(id) => {
                if self.step() != Step::Never {
                    self.taken.retain(|it| it.snapshot.id != *id);
                    let now = Time(self.now);
                    self.status().deleted_at = Some(now);
                }
            }
            Action::PutPolicyBack => self.backup.spec.deletion_policy = SnapshotPolicy::Retain,
            Action::RemoveFinalizer => self.is_gone = true,
        }
        true
    }

    fn checkpoint(&mut self, pod_uid: &str, engine_time: Timestamp) -> bool {
        let owed = OwedCheckpoint {
            since: Time(self.now),
            pod_uid: pod_uid.to_owned(),
            engine_time: MicroTime(engine_time),
            began_at: None,
            engine: Some(engine(&database(&json!({"type": "questdb", "version": "9.3.4"})))),
        };
        self.status().checkpoint = Some(owed);
        // Killed between the write and the statement.
        if self.step() == Step::Killed {
            return false;
        }
        if self.held.is_some() {
            self.status().checkpoint = None;
            return false;
        }
        let step = self.step();
        if step != Step::Never {
            self.held = Some((self.now, false));
        }
        if step != Step::Fine {
            return false;
        }
        let now = self.now;
        self.status().checkpoint.as_mut().unwrap().began_at = Some(MicroTime(now));
        true
    }

    fn release(&mut self, began_at: Timestamp) -> bool {
        let step = self.step();
        if step != Step::Never && self.held.is_some_and(|(since, _)| since == began_at) {
            let (_, is_others) = self.held.take().unwrap();
            assert!(!is_others, "the checkpoint of another client is released");
        }
        if step == Step::Fine {
            self.note_released();
        }
        step == Step::Fine
    }

    fn note_released(&mut self) {
        let now = Time(self.now);
        let status = self.status();
        status.checkpoint = None;
        if status.snapshot_id.is_none() {
            status.released_in_vain_at = Some(now);
        }
    }

    fn create(&mut self, creation: &SnapshotCreation, source: &BackupSource) -> bool {
        let status = self.status();
        status.creation = Some(creation.clone());
        status.source = Some(source.clone());
        if self.step() == Step::Killed {
            return false;
        }
        if self.now < self.refused_until {
            let now = Time(self.now);
            let refusal = Refusal { code: "UnauthorizedOperation".into(), message: "no".into(), at: now };
            self.status().creation.as_mut().unwrap().attempt.refused = Some(refusal);
            return false;
        }
        let step = self.step();
        let id = snap(&format!("snap-{}", self.taken.len()));
        if step != Step::Never {
            let snapshot = Snapshot {
                id: id.clone(),
                volume: creation.volume_id.clone(),
                size: Some(100),
                state: SnapshotState::Pending,
                started_at: Some(self.now),
                tags: creation.tags.clone(),
            };
            let is_consistent = self.held.is_some_and(|(_, is_others)| !is_others);
            let listed_from = self.now + SignedDuration::from_secs(7);
            self.taken.push(Taken { snapshot, listed_from, is_consistent });
        }
        match step {
            Step::Fine => self.status().snapshot_id = Some(id),
            Step::Lost | Step::Never => {
                let now = Time(self.now);
                self.status().creation.as_mut().unwrap().attempt.in_doubt_since = Some(now);
            }
            Step::Killed => {}
        }
        step == Step::Fine
    }
}

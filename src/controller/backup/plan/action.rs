//! What a plan of the Backup controller is made of: the actions, how the backup ends, and what is waited for.

use std::time::Duration;

use jiff::Timestamp;

use crate::api::backup::{BackupFault, BackupSource, Consistency, SnapshotCreation};
use crate::api::{SnapshotId, VolumeId};
use crate::controller::backup::wait::BackupWait;
use crate::time::until;

/// What one pass does and what it waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// In this order.
    pub actions: Vec<Action>,
    /// What the Backup waits for; `None` when it has come to its end.
    pub waiting: Option<BackupWait>,
    /// How the backup ends, if this pass sees it.
    pub verdict: Option<Verdict>,
    /// EC2 does not list the snapshot of a complete backup.
    pub is_missing: bool,
    /// The next reconcile starts at the latest after this time, even without a watch event.
    pub requeue: Option<Duration>,
    /// Whether the snapshot is about to change in EC2, and is looked up often.
    pub is_pending: bool,
    /// The plan is made once more when this snapshot was read by its id.
    pub look_up: Option<SnapshotId>,
    /// The EBS volume that must be read by its id before this can be decided.
    pub look_up_volume: Option<VolumeId>,
}

/// How a backup ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It can be restored, and is this.
    Complete(Consistency),
    /// There will be none.
    Failed(BackupFault),
}

impl Plan {
    /// Nothing is done, and nothing waited for.
    pub(in crate::controller::backup) fn done() -> Self {
        Self {
            actions: Vec::new(),
            waiting: None,
            verdict: None,
            is_missing: false,
            requeue: None,
            is_pending: false,
            look_up: None,
            look_up_volume: None,
        }
    }

    pub(in crate::controller::backup) fn act(actions: Vec<Action>, wait: BackupWait) -> Self {
        Self { actions, ..Self::wait(wait) }
    }

    pub(in crate::controller::backup) fn wait(wait: BackupWait) -> Self {
        Self { waiting: Some(wait), ..Self::done() }
    }

    pub(in crate::controller::backup) fn ends(verdict: Verdict) -> Self {
        Self { verdict: Some(verdict), ..Self::done() }
    }

    /// The snapshot is about to change in EC2.
    pub(in crate::controller::backup) fn pending(self) -> Self {
        Self { is_pending: true, ..self }
    }

    pub(in crate::controller::backup) fn until(self, when: Timestamp, now: Timestamp) -> Self {
        self.after(until(when, now))
    }

    pub(in crate::controller::backup) fn after(self, requeue: Duration) -> Self {
        Self { requeue: Some(requeue), ..self }
    }
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Put our finalizer on the Backup.
    AddFinalizer,
    /// Write down that a release is owed, then have the engine begin a checkpoint, then write down when it
    /// began: one compound action.
    Checkpoint {
        /// The UID of the engine's pod.
        pod_uid: String,
        /// The engine's own time, as it said in this pass.
        engine_time: Timestamp,
    },
    /// Write down that the engine holds the checkpoint, and the snapshot has started.
    NoteConsistent,
    /// Have the engine end the checkpoint that began then, and write down that nothing is owed any more.
    Release(Timestamp),
    /// Write down that nothing is owed any more: the engine holds no checkpoint of this Backup.
    NoteReleased,
    /// Intent, CreateSnapshot, id: one compound action.
    Create(Box<SnapshotCreation>, Box<BackupSource>),
    /// Record the snapshot that a look-up found.
    RecordSnapshot(SnapshotId),
    /// Tag the snapshot with what it is.
    Tag(SnapshotId, Consistency),
    /// Set the deletion policy back to Retain: a BackupSchedule has begun to delete the Backup, and has not.
    PutPolicyBack,
    /// DeleteSnapshot.
    DeleteSnapshot(SnapshotId),
    /// Take our finalizer off the Backup.
    RemoveFinalizer,
}

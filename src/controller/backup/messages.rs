//! The sentences of a Backup's waits, conditions and events. Pure.

use super::wait::BackupWait;
use crate::api::SnapshotId;
use crate::api::backup::{BackupFault, Consistency};
use crate::api::keys::{BACKUP_UID_TAG, CLUSTER_ID_TAG};
use crate::api::verification::BackupVerification;
use crate::controller::messages::FIRST_SYNC;

/// Condition Failed, when it is false.
pub const NOT_FAILED: &str = "the backup has not failed";

/// Condition Complete, when it is true.
pub fn complete(consistency: Option<Consistency>) -> String {
    match consistency {
        Some(Consistency::EngineCheckpoint) => {
            "the snapshot is complete, and began while the engine held a checkpoint".to_owned()
        }
        Some(Consistency::CrashConsistent) | None => {
            "the snapshot is complete: it has what a power cut at its start would have left".to_owned()
        }
    }
}

/// Condition Failed, when it is true, and event BackupFailed.
pub fn failed(fault: BackupFault, snapshot: Option<&SnapshotId>) -> String {
    let snapshot = snapshot.map_or_else(|| "the snapshot".to_owned(), |id| format!("snapshot {id}"));
    match fault {
        BackupFault::SnapshotFailed => {
            format!("EC2 shows {snapshot} in the state error: delete this Backup and create another")
        }
        BackupFault::CheckpointLost => format!(
            "the engine did not hold its checkpoint any more when {snapshot} had started (the engine was \
            restarted, the checkpoint was released outside Freehold or held for --checkpoint-hold-limit): \
            the snapshot is not used; create another Backup"
        ),
        BackupFault::SnapshotGone => {
            format!("{snapshot} was deleted outside Freehold before it was complete: create another Backup")
        }
    }
}

/// Condition SnapshotMissing, and its event.
pub fn missing(snapshot: Option<&SnapshotId>) -> String {
    let snapshot = snapshot.map(ToString::to_string).unwrap_or_default();
    format!(
        "EC2 does not list snapshot {snapshot} any more: it was deleted outside Freehold, or lost its tag \
        {BACKUP_UID_TAG}; nothing can be restored from this Backup"
    )
}

impl BackupWait {
    /// For the conditions: what is waited for, why, and what a person can do about it.
    pub fn message(&self) -> String {
        match self {
            Self::AddingFinalizer => "adding the Freehold finalizer to the Backup".to_owned(),
            Self::FirstSync => FIRST_SYNC.to_owned(),
            Self::NoDatabase(name) => {
                format!("Database {name} does not exist: create it, or delete this Backup")
            }
            Self::NeverReady(name) => format!(
                "Database {name} was never Ready, or is being restored in place or upgraded, so its volume has no \
                data yet, or data that no engine has served from: waiting until one has"
            ),
            Self::NoVolume(name) => {
                format!("Database {name} has no EBS volume yet that a snapshot can be taken of")
            }
            Self::Attached(id) => format!(
                "the engine is stopped for this Backup: the snapshot of EBS volume {id} is taken once the volume \
                is detached"
            ),
            Self::Other(name) => format!("Backup {name} of the same Database goes first"),
            Self::EngineNotReady(name) => format!(
                "the engine of Database {name} does not accept connections, and its volume is in use: \
                waiting for the engine. To have a backup without it, pause the Database"
            ),
            Self::EngineUnreadable(why) => {
                format!("requesting the engine's checkpoint is not possible: {why}")
            }
            Self::OtherCheckpoint(since) => format!(
                "the engine holds a checkpoint of another client since {since}: waiting for its release. If \
                no client uses it, run CHECKPOINT RELEASE in the database"
            ),
            Self::RootElsewhere(name) => format!(
                "the pod of Database {name} does not mount its EBS volume as the engine's root, so a snapshot of \
                the volume would not have the checkpoint in it: pause the Database to have a backup without \
                a checkpoint"
            ),
            Self::Pausing => "the last checkpoint was released before a snapshot had started; the next one \
                follows after --checkpoint-hold-limit"
                .to_owned(),
            Self::NearlyFull(name) => format!(
                "the file system of Database {name} is nearly full, and the engine frees no space while it holds \
                a checkpoint, so none is requested: raise spec.storage.size of the Database, set \
                spec.storage.autoGrow, or free space in the database. To have a backup without a checkpoint, \
                pause the Database"
            ),
            Self::BeginningCheckpoint => "requesting a checkpoint of the engine".to_owned(),
            Self::CheckpointUnconfirmed => {
                "the engine's checkpoint is unconfirmed (no response): the engine is \
                asked until it shows the checkpoint, or it is certain that none begins"
                    .to_owned()
            }
            Self::Releasing => "releasing the engine's checkpoint".to_owned(),
            Self::ReleaseOwed(why) => format!(
                "the engine may hold a checkpoint of this Backup, and its release is not possible yet: {why}. \
                Freehold retries by itself; CHECKPOINT RELEASE in the database does the same"
            ),
            Self::Blocked(call_blocked) => call_blocked.message(),
            Self::Requesting(volume) => format!("requesting a snapshot of EBS volume {volume}"),
            Self::InDoubt(volume) => format!(
                "the snapshot of EBS volume {volume} is unconfirmed (EC2 may have taken it): EC2 is searched \
                until its absence is proven"
            ),
            Self::Recording(snapshot) => format!("snapshot {snapshot} has started; recording its id"),
            Self::NotListed(snapshot) => format!("EC2 does not list snapshot {snapshot} yet"),
            Self::Tagging(snapshot) => format!("tagging snapshot {snapshot} with its consistency"),
            Self::Pending(snapshot) => {
                format!("snapshot {snapshot} has started; waiting for EC2 to complete it")
            }
            Self::PuttingPolicyBack => "a BackupSchedule did not delete this Backup after all: setting \
                spec.deletionPolicy back to Retain"
                .to_owned(),
            Self::OtherFinalizers => "waiting for other controllers to remove their finalizers from the \
                Backup"
                .to_owned(),
            Self::Retained(Some(snapshot)) => format!("snapshot {snapshot} is retained"),
            Self::Retained(None) => "the Backup has no snapshot that is known".to_owned(),
            Self::InUse(database) => format!(
                "Database {database} is being restored from this Backup: its snapshot is deleted once the database \
                was ready, or is deleted"
            ),
            Self::Unsafe(blocker) => blocker.message(),
            Self::Deleting(snapshot) => format!("snapshot {snapshot} is being deleted"),
            Self::WithoutTags(snapshot, uid) => format!(
                "EC2 has snapshot {snapshot} without this Backup's tags, so Freehold does not use or delete it: \
                restore the tag {BACKUP_UID_TAG}={uid}, and {CLUSTER_ID_TAG} if it is missing; or set \
                spec.deletionPolicy to Retain to delete this Backup and leave the snapshot in EC2"
            ),
            Self::ProvingAbsence => "EC2 does not list the snapshot; proving its absence".to_owned(),
            Self::Gone => "the snapshot is gone".to_owned(),
        }
    }
}

/// Condition Verified, when it is true.
pub fn verified(verification: &BackupVerification) -> String {
    let BackupVerification { verified_at, tables, rows, indexes, .. } = verification;
    let read =
        tables.zip(*rows).map(|(tables, rows)| format!(": {tables} tables with {rows} rows were read"));
    let compared = indexes.map(|indexes| format!(", and {indexes} indexes compared with their tables"));
    let (read, compared) = (read.unwrap_or_default(), compared.unwrap_or_default());
    format!("restored and checked at {}{read}{compared}", verified_at.0)
}

/// The notes of a Backup's events.
pub mod events {
    use crate::api::{SnapshotId, VolumeId};
    use crate::cloud::CloudError;

    /// Event BackupStarted.
    pub fn started(snapshot: &SnapshotId, volume: &VolumeId) -> String {
        format!("EC2 has started snapshot {snapshot} of EBS volume {volume}")
    }

    /// Event BackupRefused.
    pub fn refused(error: &CloudError) -> String {
        format!("EC2 refused the snapshot: {error}")
    }

    /// Event SnapshotDeleted.
    pub fn deleted(snapshot: &SnapshotId) -> String {
        format!("snapshot {snapshot} is deleted")
    }
}

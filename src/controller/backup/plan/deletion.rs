//! The plan of a Backup that is being deleted, once it owes the engine nothing any more. Pure.

use jiff::{SignedDuration, Timestamp};

use super::action::{Action, Plan};
use super::facts::{blocked, once_confirmed, owner_of, proven_absent};
use crate::api::backup::SnapshotPolicy;
use crate::api::keys::CONSISTENCY_TAG;
use crate::api::{BackupStatus, SnapshotId};
use crate::cloud::call::Call;
use crate::cloud::identity;
use crate::controller::backup::observe::Observed;
use crate::controller::backup::wait::BackupWait;
use crate::controller::safety;

/// The policy that counts: in a teardown Retain, since it is no decision about this very backup.
pub(super) fn effective_policy(observed: &Observed) -> SnapshotPolicy {
    if observed.teardown { SnapshotPolicy::Retain } else { observed.backup.spec.deletion_policy }
}

pub(super) fn plan(observed: &Observed, status: &BackupStatus, now: Timestamp) -> Plan {
    match effective_policy(observed) {
        SnapshotPolicy::Retain => untagged(observed, status, now)
            .unwrap_or_else(|| finished(BackupWait::Retained(status.snapshot_id.clone()))),
        SnapshotPolicy::Delete => deleted(observed, status, now),
    }
}

/// A snapshot that is retained is tagged with what it is before its Backup is gone: nothing else says that it
/// can be restored. It need not be listed yet, and an accepted call is not made again.
fn untagged(observed: &Observed, status: &BackupStatus, now: Timestamp) -> Option<Plan> {
    let (id, consistency) = (status.snapshot_id.as_ref()?, status.consistency?);
    let shown = observed.snapshots.snapshots.iter().find(|it| it.id == *id);
    let is_tagged =
        shown.and_then(|it| it.tags.get(CONSISTENCY_TAG)).is_some_and(|it| it == consistency.as_str());
    let is_accepted = observed.issued.get(&Call::CreateTags).is_some_and(|it| it.call_blocked.is_none());
    let attempt = status.creation.as_ref().map(|creation| &creation.attempt);
    let is_gone = shown.is_none() && proven_absent(observed, attempt).is_some();
    if status.is_final() || is_tagged || is_accepted || is_gone {
        return None;
    }
    let wait = BackupWait::Tagging(id.clone());
    let tags = || Plan::act(vec![Action::Tag(id.clone(), consistency)], wait.clone()).pending();
    Some(blocked(observed, Call::CreateTags, wait.clone(), now).unwrap_or_else(tags))
}

fn finished(wait: BackupWait) -> Plan {
    Plan::act(vec![Action::RemoveFinalizer], wait)
}

/// Every snapshot of this Backup is deleted, also one that no status names.
fn deleted(observed: &Observed, status: &BackupStatus, now: Timestamp) -> Plan {
    if observed.snapshots.swept_at.is_none() {
        return Plan::wait(BackupWait::FirstSync);
    }
    if let Some(user) = observed.users.first() {
        return Plan::wait(BackupWait::InUse(user.clone())).after(observed.timing.requeue_interval);
    }
    let Some(snapshot) = observed.snapshots.snapshots.first() else {
        return gone(observed, status);
    };
    let owner = owner_of(&observed.backup, &observed.cluster_id);
    let tags = identity::owner_tags(&owner.cluster_id, owner.kind, &owner.uid);
    if let Err(blocker) = safety::may_delete_snapshot(snapshot, &tags) {
        return Plan::wait(BackupWait::Unsafe(blocker)).pending();
    }
    let wait = BackupWait::Deleting(snapshot.id.clone());
    blocked(observed, Call::DeleteSnapshot, wait.clone(), now)
        .unwrap_or_else(|| Plan::act(vec![Action::DeleteSnapshot(snapshot.id.clone())], wait).pending())
}

/// EC2 shows no snapshot.
fn gone(observed: &Observed, status: &BackupStatus) -> Plan {
    let attempt = status.creation.as_ref().map(|creation| &creation.attempt);
    let id: Option<&SnapshotId> = status.snapshot_id.as_ref();
    let made_nothing = id.is_none() && attempt.is_none_or(|attempt| attempt.refused.is_some());
    let was_deleted = status.deleted_at.as_ref().is_some_and(|at| {
        let after = |swept: Timestamp| swept.duration_since(at.0) > SignedDuration::from_secs(1);
        observed.snapshots.swept_at.is_some_and(after)
    });
    if made_nothing || was_deleted {
        return finished(BackupWait::Gone);
    }
    match (proven_absent(observed, attempt), id) {
        (Some(_), Some(id)) => {
            once_confirmed(observed, id, finished(BackupWait::Gone), BackupWait::ProvingAbsence)
        }
        (Some(_), None) => finished(BackupWait::Gone),
        (None, _) => Plan::wait(BackupWait::ProvingAbsence).pending(),
    }
}

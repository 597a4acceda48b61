//! What no plan of the Backup controller may ever do, whatever was observed: checked on every plan of a debug
//! build. Pure.

use super::action::{Action, Plan, Verdict};
use super::deletion::effective_policy;
use super::facts::{Held, held, is_under, owner_of};
use super::wakes::{is_registered, wakes};
use crate::api::BackupStatus;
use crate::api::backup::{Consistency, SnapshotPolicy};
use crate::cloud::identity;
use crate::cluster::finalizer;
use crate::controller::backup::observe::{EngineView, Observed};
use crate::controller::safety;

/// The rules that this plan breaks, each as a sentence.
pub(super) fn violations(observed: &Observed, plan: &Plan) -> Vec<String> {
    let status = observed.backup.status.clone().unwrap_or_default();
    let mut broken: Vec<String> =
        plan.actions.iter().flat_map(|action| broken_by(action, observed, &status)).collect();
    let mut rule = |holds: bool, sentence: &str| {
        if !holds {
            broken.push(sentence.to_owned());
        }
    };
    if let Some(Verdict::Complete(Consistency::EngineCheckpoint)) = plan.verdict {
        let is_noted = status.consistency == Some(Consistency::EngineCheckpoint) || status.creation.is_none();
        rule(is_noted, "no backup counts as one of a checkpoint of which it is not certain");
    }
    rule(plan.verdict.is_none() || !status.is_final(), "an end is final");
    rule(plan.verdict.is_none() || status.checkpoint.is_none(), "no end while a release is owed");
    rule(plan.waiting.is_some() || plan.actions.is_empty(), "who acts says what is awaited");
    if let Some(wait) = &plan.waiting {
        for wake in wakes(wait).iter().filter(|wake| !is_registered(**wake, observed, plan)) {
            rule(false, &format!("a wait has its wakes, and {wait:?} has none by {wake:?}"));
        }
    }
    broken
}

/// The rules that this action breaks.
fn broken_by(action: &Action, observed: &Observed, status: &BackupStatus) -> Vec<String> {
    let mut broken = Vec::new();
    let mut rule = |holds: bool, sentence: &str| {
        if !holds {
            broken.push(sentence.to_owned());
        }
    };
    let is_deleting = observed.backup.metadata.deletion_timestamp.is_some();
    match action {
        Action::Checkpoint { .. } => {
            rule(!is_deleting && finalizer::has(&observed.backup), "no checkpoint without the finalizer");
            rule(status.checkpoint.is_none(), "one checkpoint at a time");
            rule(status.snapshot_id.is_none(), "no checkpoint for a snapshot that has started");
            let is_free = match &observed.engine {
                EngineView::Shown(shown) => shown.held_since.is_none(),
                EngineView::NotRead | EngineView::Unreadable(_) => false,
            };
            rule(is_free, "no checkpoint while the engine holds one");
            rule(!observed.is_root_elsewhere, "no checkpoint beside the volume");
        }
        Action::Create(creation, _) => {
            rule(!is_deleting, "nothing is created for a Backup that is being deleted");
            rule(finalizer::has(&observed.backup), "nothing is created before the finalizer is there");
            rule(status.snapshot_id.is_none(), "one snapshot for a Backup");
            let is_held = is_held(observed, status);
            let engine = status.checkpoint.as_ref().and_then(|owed| owed.engine.as_ref());
            let uid = observed.database.as_ref().and_then(|database| database.metadata.uid.as_ref());
            let is_of_it = engine.is_none_or(|engine| uid == Some(&engine.database_uid));
            rule(is_of_it, "no snapshot under the checkpoint of another Database");
            rule(creation.with_checkpoint == is_held, "with a checkpoint exactly while one is held");
        }
        Action::NoteConsistent => {
            let owed = status.checkpoint.as_ref();
            let is_under = owed.is_some_and(|owed| is_under(status, owed));
            rule(is_under && is_held(observed, status), "consistent only while the checkpoint is held");
        }
        Action::NoteReleased => {
            rule(!is_held(observed, status), "a release is owed as long as the checkpoint is held");
        }
        Action::Release(began_at) => {
            let is_ours = status
                .checkpoint
                .as_ref()
                .is_some_and(|owed| held(observed, owed, began_at.to_owned()) == Held::Ours(*began_at));
            rule(is_ours, "no checkpoint of another client is released");
        }
        Action::DeleteSnapshot(id) => {
            rule(is_deleting, "a snapshot is deleted only with its Backup");
            rule(effective_policy(observed) == SnapshotPolicy::Delete, "only under the policy Delete");
            let owner = owner_of(&observed.backup, &observed.cluster_id);
            let tags = identity::owner_tags(&owner.cluster_id, owner.kind, &owner.uid);
            let shown = observed.snapshots.snapshots.iter().find(|snapshot| snapshot.id == *id);
            let may = shown.is_some_and(|it| safety::may_delete_snapshot(it, &tags).is_ok());
            rule(may, "only a snapshot that is provably this Backup's is deleted");
        }
        Action::RemoveFinalizer => {
            rule(is_deleting, "a Backup loses its finalizer only when it is being deleted");
            rule(status.checkpoint.is_none(), "a Backup that owes a release stays");
        }
        Action::PutPolicyBack => {
            rule(!is_deleting, "the policy of a Backup that is being deleted is a person's");
        }
        Action::AddFinalizer | Action::RecordSnapshot(_) | Action::Tag(..) => {}
    }
    broken
}

fn is_held(observed: &Observed, status: &BackupStatus) -> bool {
    let owed = status.checkpoint.as_ref();
    owed.is_some_and(|owed| matches!(held(observed, owed, owed.since.0), Held::Ours(_)))
}

//! What no plan of the Volume controller may ever do, whatever was observed: checked on every plan of a debug
//! build. Pure.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};

use super::action::{Action, Plan};
use super::facts::owner_of;
use super::wakes::{is_registered, wakes};
use crate::api::DeletionPolicy;
use crate::cloud::identity;
use crate::cloud::{Snapshot, SnapshotState};
use crate::cluster::finalizer;
use crate::controller::safety;
use crate::controller::volume::adopted;
use crate::controller::volume::observe::Observed;
use crate::controller::volume::wait::VolumeWait;

/// The rules that this plan breaks, each as a sentence.
pub(super) fn violations(observed: &Observed, plan: &Plan) -> Vec<String> {
    let mut broken = Vec::new();
    let mut rule = |holds: bool, sentence: &str| {
        if !holds {
            broken.push(sentence.to_owned());
        }
    };
    let is_deleting = observed.volume.metadata.deletion_timestamp.is_some();
    let is_stalled = plan.waiting.as_ref().is_some_and(VolumeWait::is_stalled);
    let policy = observed
        .owner
        .as_ref()
        .map_or(observed.volume.spec.deletion_policy, |owner| owner.spec.deletion_policy);
    let adopt = observed.volume.spec.adopt.as_ref().map(|adopt| &adopt.volume_id);
    let is_released = adopt.is_some() && observed.volume.spec.release;
    for action in &plan.actions {
        match action {
            Action::Create(_) | Action::Resend => {
                rule(!is_deleting, "nothing is created for a Volume that is being deleted");
                rule(finalizer::has(&observed.volume), "nothing is created before the finalizer is there");
                rule(
                    !observed.has_held(),
                    "an EBS volume that may have held data is never replaced by an empty one",
                );
                rule(!is_stalled, "a stalled Volume costs nothing more");
                rule(adopt.is_none(), "nothing is ever created in place of an EBS volume that was adopted");
            }
            Action::CreateClaim(_) | Action::Modify(_) | Action::GrowClaim(_) => {
                rule(!is_deleting, "a Volume that is being deleted is not changed");
                rule(!is_released, "nothing of a volume that would be given back is changed");
            }
            Action::OwnClaim(_) => {
                rule(!is_deleting, "a Volume that is being deleted is not changed");
                rule(!is_released, "nothing that would be given back is owned");
                let record = observed.persistent_volume.as_ref();
                let is_kept =
                    record.is_some_and(|record| adopted::record(record, &observed.volume).is_none());
                rule(is_kept, "a claim is owned only once its PersistentVolume outlives it");
            }
            Action::GiveBackRecord(change) => {
                rule(is_deleting && is_released, "only what is released is given back");
                let policy = |it: &PersistentVolume| it.spec.clone()?.persistent_volume_reclaim_policy;
                let is_owned = |it: &PersistentVolumeClaim| adopted::is_owned(it, &observed.volume);
                let disowns = plan.actions.iter().any(|it| matches!(it, Action::DisownClaim(_)));
                let is_safe = observed.claim.as_ref().is_some_and(|claim| {
                    claim.metadata.deletion_timestamp.is_none() && (disowns || !is_owned(claim))
                });
                rule(
                    is_safe || policy(&change.to) == policy(&change.from),
                    "a reclaim policy is restored only where nothing deletes the claim",
                );
            }
            Action::DisownClaim(_) => {
                rule(is_released, "only the claim of a volume that would be given back is disowned");
            }
            Action::Untag(id, _) => {
                rule(is_deleting && is_released, "only what is released is given back");
                rule(adopt == Some(id), "only the EBS volume that was adopted is untagged");
            }
            Action::DeleteVolume(id) => {
                rule(is_deleting, "an EBS volume is deleted only with its Volume");
                rule(!is_released, "an EBS volume that is given back is not deleted");
                rule(!observed.teardown, "an EBS volume is never deleted because its namespace is");
                rule(
                    policy != DeletionPolicy::Retain,
                    "an EBS volume is not deleted under the policy Retain",
                );
                let owner = owner_of(&observed.volume, &observed.cluster_id);
                let tags = identity::owner_tags(&owner.cluster_id, owner.kind, &owner.uid);
                let shown = observed.volumes.volumes.iter().find(|volume| volume.id == *id);
                let may =
                    shown.is_some_and(|volume| safety::may_delete_volume(volume, &tags, is_released).is_ok());
                rule(may, "only an EBS volume that is provably this Volume's, and available, is deleted");
                let complete = |it: &Snapshot| it.volume == *id && it.state == SnapshotState::Completed;
                let is_saved =
                    policy != DeletionPolicy::Snapshot || observed.snapshots.snapshots.iter().any(complete);
                rule(
                    is_saved,
                    "an EBS volume is deleted under the policy Snapshot only after its final snapshot is \
                    complete",
                );
            }
            Action::Snapshot(..) | Action::MarkRetained(_) | Action::DeleteClaim(_) => {
                rule(is_deleting, "what ends a Volume is done only to one that is being deleted");
                rule(!is_released, "what is given back is not ended");
            }
            Action::RemoveFinalizer => {
                rule(is_deleting, "what ends a Volume is done only to one that is being deleted");
            }
            Action::CreatePersistentVolume(_) | Action::DeletePersistentVolume(_) => {
                rule(!is_released, "what is given back is not ended");
                rule(adopt.is_none() || is_deleting, "what was adopted is used as it is");
            }
            Action::Adopt(id, _) | Action::Retag(id, _) => {
                rule(
                    adopt.is_none_or(|adopt| adopt == id),
                    "what the spec names is adopted, and nothing else",
                );
            }
            Action::AddFinalizer
            | Action::RecordAdopted(_)
            | Action::ReleaseRecord(_)
            | Action::RecordVolume(_)
            | Action::ReopenPersistentVolume(_)
            | Action::RecordSnapshot(_)
            | Action::NoteDeleted => {}
        }
    }
    rule(plan.waiting.is_some() || plan.actions.is_empty(), "who acts says what is awaited");
    if let Some(wait) = &plan.waiting {
        for wake in wakes(wait).iter().filter(|wake| !is_registered(**wake, observed, plan)) {
            rule(false, &format!("a wait has its wakes, and {wait:?} has none by {wake:?}"));
        }
    }
    broken
}

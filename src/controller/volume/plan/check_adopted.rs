//! What no plan may ever do to an EBS volume that was adopted in place or is to be released, its
//! PersistentVolume and its claim: checked with the rules of `check.rs`. Pure.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};

use super::action::{Action, Plan};
use crate::api::VolumeId;
use crate::controller::volume::adopted::{self, Change};
use crate::controller::volume::observe::Observed;

/// The rules that this plan breaks, each as a sentence.
pub(super) fn violations(observed: &Observed, plan: &Plan) -> Vec<&'static str> {
    let adopt = observed.volume.spec.adopt.as_ref().map(|adopt| &adopt.volume_id);
    let of_adopted = plan
        .actions
        .iter()
        .flat_map(|action| adopt.map(|adopt| of_action(observed, adopt, action)).unwrap_or_default());
    let of_released = plan.actions.iter().flat_map(|action| of_release(observed, plan, action));
    let rules = of_adopted.chain(of_released);
    rules.filter(|(holds, _)| !holds).map(|(_, sentence)| sentence).collect()
}

/// What must hold where this is done, and whether it does.
fn of_action(observed: &Observed, adopt: &VolumeId, action: &Action) -> Vec<(bool, &'static str)> {
    let is_deleting = observed.volume.metadata.deletion_timestamp.is_some();
    match action {
        Action::Create(_) | Action::Resend => {
            vec![(false, "nothing is ever created in place of an EBS volume that was adopted")]
        }
        Action::ReopenPersistentVolume(_) => vec![(false, "the claim that was adopted is used as it is")],
        Action::CreateClaim(_) => {
            let is_gone = (observed.claim.is_none(), "only a claim that is gone is created again");
            vec![is_gone, (outlives(observed), "a claim is created for what outlives it")]
        }
        Action::CreatePersistentVolume(_) => {
            let is_gone = observed.persistent_volume.is_none();
            vec![(is_gone, "only a PersistentVolume that is gone is created again")]
        }
        Action::OwnClaim(_) => {
            let is_last = (outlives(observed), "a claim is owned only once its PersistentVolume outlives it");
            vec![is_last, (!is_deleting, "a Volume that is being deleted is not changed")]
        }
        Action::Adopt(id, _) | Action::Retag(id, _) => {
            vec![(id == adopt, "what the spec names is adopted, and nothing else")]
        }
        Action::Untag(id, _) => vec![(id == adopt, "only what was adopted is untagged")],
        Action::GiveBackRecord(_)
        | Action::DisownClaim(_)
        | Action::Modify(_)
        | Action::GrowClaim(_)
        | Action::FreeClaim(_)
        | Action::DeleteClaim(_)
        | Action::MarkRetained(_)
        | Action::Snapshot(..)
        | Action::DeleteVolume(_)
        | Action::DeletePersistentVolume(_)
        | Action::AddFinalizer
        | Action::RecordAdopted(_)
        | Action::ReleaseRecord(_)
        | Action::RecordVolume(_)
        | Action::RecordSnapshot(_)
        | Action::NoteDeleted
        | Action::RemoveFinalizer => Vec::new(),
    }
}

/// What must hold of any Volume where this is done, since its EBS volume may be released.
fn of_release(observed: &Observed, plan: &Plan, action: &Action) -> Vec<(bool, &'static str)> {
    let is_deleting = observed.volume.metadata.deletion_timestamp.is_some();
    let is_released = observed.volume.spec.release;
    let is_kept = (!is_released, "nothing that is to be released is changed, owned or ended");
    let releases = (is_deleting && is_released, "only what is released is made as it was");
    match action {
        Action::Untag(..) => vec![releases],
        Action::GiveBackRecord(change) => vec![
            releases,
            (
                is_safe(observed, plan, change),
                "a reclaim policy is restored only where nothing ends the claim",
            ),
        ],
        Action::DisownClaim(_) => {
            vec![(is_released, "only the claim of what is to be released is disowned")]
        }
        Action::CreatePersistentVolume(_)
        | Action::ReopenPersistentVolume(_)
        | Action::CreateClaim(_)
        | Action::OwnClaim(_)
        | Action::Modify(_)
        | Action::GrowClaim(_)
        | Action::FreeClaim(_)
        | Action::DeleteClaim(_)
        | Action::MarkRetained(_)
        | Action::Snapshot(..)
        | Action::DeleteVolume(_)
        | Action::DeletePersistentVolume(_) => vec![is_kept],
        Action::AddFinalizer
        | Action::Create(_)
        | Action::Resend
        | Action::Adopt(..)
        | Action::Retag(..)
        | Action::RecordAdopted(_)
        | Action::ReleaseRecord(_)
        | Action::RecordVolume(_)
        | Action::RecordSnapshot(_)
        | Action::NoteDeleted
        | Action::RemoveFinalizer => Vec::new(),
    }
}

/// Whether the PersistentVolume is the record of the Volume, and kept when its claim goes.
fn outlives(observed: &Observed) -> bool {
    let record = observed.persistent_volume.as_ref();
    record.is_some_and(|it| adopted::record(it, &observed.volume).is_none())
}

/// Whether the EBS volume cannot be deleted by the reclaim policy that its PersistentVolume gets.
fn is_safe(observed: &Observed, plan: &Plan, change: &Change<PersistentVolume>) -> bool {
    let policy = |it: &PersistentVolume| it.spec.clone()?.persistent_volume_reclaim_policy;
    let disowns = plan.actions.iter().any(|it| matches!(it, Action::DisownClaim(_)));
    let is_owned = |it: &PersistentVolumeClaim| adopted::is_owned(it, &observed.volume) && !disowns;
    let is_staying = |it: &PersistentVolumeClaim| it.metadata.deletion_timestamp.is_none() && !is_owned(it);
    observed.claim.as_ref().is_some_and(is_staying) || policy(&change.to) == policy(&change.from)
}

//! What no plan of the Volume controller may ever do, whatever was observed: checked on every plan of a debug
//! build. Pure.

use super::action::{Action, Plan};
use super::check_adopted;
use super::deletion::effective_policy;
use super::facts::{is_decided, owner_of};
use super::wakes::{is_registered, wakes};
use crate::api::DeletionPolicy;
use crate::cloud::identity;
use crate::cloud::{Snapshot, SnapshotState};
use crate::cluster::finalizer;
use crate::controller::safety;
use crate::controller::volume::observe::Observed;
use crate::controller::volume::wait::VolumeWait;

/// The rules that this plan breaks, each as a sentence.
pub(super) fn violations(observed: &Observed, plan: &Plan) -> Vec<String> {
    let mut broken: Vec<String> =
        check_adopted::violations(observed, plan).into_iter().map(str::to_owned).collect();
    let mut rule = |holds: bool, sentence: &str| {
        if !holds {
            broken.push(sentence.to_owned());
        }
    };
    let is_deleting = observed.volume.metadata.deletion_timestamp.is_some();
    let is_stalled = plan.waiting.as_ref().is_some_and(VolumeWait::is_stalled);
    let policy = effective_policy(observed);
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
            }
            Action::CreateClaim(_) | Action::Modify(_) | Action::GrowClaim(_) => {
                rule(!is_deleting, "a Volume that is being deleted is not changed");
            }
            Action::DeleteVolume(id) => {
                rule(is_deleting, "an EBS volume is deleted only with its Volume");
                rule(is_decided(observed), "no EBS volume is deleted before its Database has decided");
                rule(
                    !observed.around.is_torn_down,
                    "an EBS volume is never deleted because its namespace is",
                );
                rule(
                    policy != DeletionPolicy::Retain,
                    "an EBS volume is not deleted under the policy Retain",
                );
                let owner = owner_of(&observed.volume, &observed.cluster_id);
                let tags = identity::owner_tags(&owner.cluster_id, owner.kind, &owner.uid);
                let is_released = observed.volume.spec.release;
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
            Action::Snapshot(..)
            | Action::MarkRetained(_)
            | Action::FreeClaim(_)
            | Action::DeleteClaim(_)
            | Action::RemoveFinalizer => {
                rule(is_deleting, "what ends a Volume is done only to one that is being deleted");
                rule(is_decided(observed), "nothing of a Volume ends before its Database has decided");
            }
            Action::AddFinalizer
            | Action::Adopt(..)
            | Action::Retag(..)
            | Action::RecordAdopted(_)
            | Action::OwnClaim(_)
            | Action::DisownClaim(_)
            | Action::GiveBackRecord(_)
            | Action::Untag(..)
            | Action::ReleaseRecord(_)
            | Action::RecordVolume(_)
            | Action::CreatePersistentVolume(_)
            | Action::ReopenPersistentVolume(_)
            | Action::RecordSnapshot(_)
            | Action::NoteDeleted
            | Action::DeletePersistentVolume(_) => {}
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

//! The plan of a Volume whose EBS volume is there: PersistentVolume and claim first, then what the spec wants. Pure.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::{Resource, ResourceExt};

use super::action::{Action, Plan, Stage};
use super::facts::class_not_found;
use super::{adoption, modification};

use crate::api::{Reason, Size, Volume, VolumeStatus};
use crate::cloud::EbsVolume;
use crate::controller::volume::build;
use crate::controller::volume::observe::Observed;

/// The EBS volume is there: bound next, then as wanted.
pub(super) fn plan(observed: &Observed, status: &VolumeStatus, volume: &EbsVolume, size: i32, now: Timestamp) -> Plan {
    let storage_class = observed.class.as_ref().map(|class| &class.spec.storage_class_name);
    let Some(persistent_volume) = &observed.persistent_volume else {
        let Some(storage_class) = storage_class else { return class_not_found(observed, Stage::Created) };
        let size = Size::from_gib(volume.size);
        let built = build::persistent_volume(&observed.volume, &volume.id, &size, storage_class, None);
        let message = "the PersistentVolume is being made";
        return Plan::act(Stage::Created, vec![Action::CreatePersistentVolume(Box::new(built))], Reason::AwaitingBinding, message);
    };
    if !build::is_record_of(persistent_volume, &observed.volume) {
        return conflict("PersistentVolume", &persistent_volume.name_any());
    }
    if let Some(named) = observed.recorded_volume().filter(|named| *named != volume.id) {
        return Plan::stalled(
            Stage::Created,
            Reason::NameConflict,
            format!(
                "PersistentVolume {} names EBS volume {named}, but this Volume's is {}: which of them has the data must be decided by hand",
                persistent_volume.name_any(),
                volume.id
            ),
        );
    }
    let Some(claim) = &observed.claim else {
        let Some(storage_class) = storage_class else { return class_not_found(observed, Stage::Created) };
        let size = Size::from_gib(volume.size);
        // A PersistentVolume that belonged to another claim is opened after this one was made: where none can be made (the namespace
        // goes), it stays Released, the record of what is kept.
        let actions = vec![Action::CreateClaim(Box::new(build::claim(&observed.volume, &size, storage_class)))];
        return Plan::act(Stage::Created, actions, Reason::AwaitingBinding, "the claim is being made");
    };
    if !is_ours(observed, claim) {
        return conflict("PersistentVolumeClaim", &claim.name_any());
    }
    if claim.metadata.deletion_timestamp.is_some() {
        let message = format!("claim {} was deleted by somebody and is made anew once it is gone", claim.name_any());
        return Plan::wait(Stage::Created, Reason::AwaitingBinding, message);
    }
    if claim.status.as_ref().and_then(|status| status.phase.as_deref()) != Some("Bound") {
        let message = format!("claim {} and PersistentVolume {} are not bound yet", claim.name_any(), persistent_volume.name_any());
        // The claim was made, and the PersistentVolume still belongs to the one before it.
        let claimed_by = persistent_volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()).and_then(|claim| claim.uid.as_ref());
        if claimed_by.is_some() && claimed_by != claim.metadata.uid.as_ref() {
            let reopen = Action::ReopenPersistentVolume(Box::new(persistent_volume.clone()));
            return Plan::act(Stage::Created, vec![reopen], Reason::AwaitingBinding, message);
        }
        return Plan::wait(Stage::Created, Reason::AwaitingBinding, message);
    }
    adoption::closing(observed, &volume.id).unwrap_or_else(|| modification::plan(observed, status, volume, claim, size, now))
}

fn is_ours(observed: &Observed, claim: &PersistentVolumeClaim) -> bool {
    claim
        .owner_references()
        .iter()
        .any(|owner| Some(&owner.uid) == observed.volume.metadata.uid.as_ref() && owner.kind == Volume::kind(&()))
}

fn conflict(kind: &str, name: &str) -> Plan {
    Plan::stalled(
        Stage::Created,
        Reason::NameConflict,
        format!("a {kind} {name} exists that is not this Volume's: it is left alone; delete or rename it"),
    )
}

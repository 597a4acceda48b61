//! The plan of a Volume whose EBS volume is there: PersistentVolume and claim first, then what the spec
//! wants. Pure.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::ResourceExt;

use super::action::{Action, Plan, Stage};
use super::facts::class_not_found;
use super::{adoption, modification};
use crate::api::{Size, VolumeStatus};
use crate::cloud::EbsVolume;
use crate::controller::volume::observe::Observed;
use crate::controller::volume::wait::VolumeWait;
use crate::controller::volume::wait::adopted::AdoptedWait;
use crate::controller::volume::wait::modification::BindingWait;
use crate::controller::volume::{adopted, build};
use crate::time::sooner;

/// The EBS volume is there: kept whatever becomes of its claim, then bound, then as wanted.
pub(super) fn plan(
    observed: &Observed,
    status: &VolumeStatus,
    volume: &EbsVolume,
    size: i32,
    now: Timestamp,
) -> Plan {
    let plan = bound(observed, status, volume, size, now);
    match retaining(observed) {
        Some((action, wait)) => Plan {
            actions: [vec![action], plan.actions].concat(),
            waiting: plan.waiting.or(Some(wait)),
            requeue: Some(sooner(observed.timing.requeue_interval, plan.requeue)),
            ..plan
        },
        None => plan,
    }
}

/// The PersistentVolume of this Volume outlives its claim, whatever another client has written into it: with
/// the policy Delete the CSI driver would delete the EBS volume once the claim is gone.
pub(super) fn retaining(observed: &Observed) -> Option<(Action, VolumeWait)> {
    let is_ours = |record: &&PersistentVolume| build::is_record_of(record, &observed.volume);
    let record = observed.persistent_volume.as_ref().filter(is_ours)?;
    let change = adopted::retained(record).filter(|_| !observed.volume.spec.release)?;
    Some((Action::RecordAdopted(change), AdoptedWait::Recording(record.name_any()).into()))
}

fn bound(observed: &Observed, status: &VolumeStatus, volume: &EbsVolume, size: i32, now: Timestamp) -> Plan {
    let storage_class = observed.class.as_ref().map(|class| &class.spec.storage_class_name);
    let Some(persistent_volume) = &observed.persistent_volume else {
        let Some(storage_class) = storage_class else { return class_not_found(observed, Stage::Created) };
        return persistent_volume_of(observed, volume, storage_class);
    };
    if !build::is_record_of(persistent_volume, &observed.volume) {
        return conflict(observed, "PersistentVolume", persistent_volume.name_any());
    }
    if let Some(named) = observed.recorded_volume().filter(|named| *named != volume.id) {
        let persistent_volume = persistent_volume.name_any();
        return Plan::wait(
            Stage::Created,
            BindingWait::OtherVolume { persistent_volume, named, id: volume.id.clone() },
        );
    }
    let Some(claim) = &observed.claim else {
        let Some(storage_class) = storage_class else { return class_not_found(observed, Stage::Created) };
        let size = Size::from_gib(volume.size);
        // A PersistentVolume that belonged to another claim is opened after this one was made: where none can
        // be made (the namespace goes), it stays Released, the record of what is kept.
        let actions =
            vec![Action::CreateClaim(Box::new(build::claim(&observed.volume, &size, storage_class)))];
        return Plan::act(Stage::Created, actions, BindingWait::CreatingClaim);
    };
    if !adopted::is_owned(claim, &observed.volume) {
        return conflict(observed, "PersistentVolumeClaim", claim.name_any());
    }
    let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
    if claim.metadata.deletion_timestamp.is_some() {
        let wait = BindingWait::ClaimDeleted(claim.name_any());
        if phase != Some("Bound") {
            return Plan::wait(Stage::Created, wait);
        }
        // Kubernetes keeps it until its pod has ended: until then the volume is used, and grows.
        let plan = modification::plan(observed, status, volume, claim, size, now);
        return if plan.waiting.is_some() { plan } else { Plan::wait(Stage::Bound, wait) };
    }
    if phase != Some("Bound") {
        return unbound(persistent_volume, claim, phase);
    }
    adoption::closing(observed, &volume.id)
        .unwrap_or_else(|| modification::plan(observed, status, volume, claim, size, now))
}

/// The PersistentVolume is made. Kubernetes binds a claim that has lost its own only to one that names its
/// UID.
fn persistent_volume_of(observed: &Observed, volume: &EbsVolume, storage_class: &str) -> Plan {
    let size = Size::from_gib(volume.size);
    let is_staying = |claim: &&PersistentVolumeClaim| {
        adopted::is_owned(claim, &observed.volume) && claim.metadata.deletion_timestamp.is_none()
    };
    let claimant = observed.claim.as_ref().filter(is_staying).and_then(ResourceExt::uid);
    let built = build::persistent_volume(&observed.volume, &volume.id, &size, storage_class, claimant);
    let actions = vec![Action::CreatePersistentVolume(Box::new(built))];
    Plan::act(Stage::Created, actions, BindingWait::CreatingPersistentVolume)
}

/// Kubernetes has not bound the two: it needs help where the PersistentVolume is not the claim's.
fn unbound(persistent_volume: &PersistentVolume, claim: &PersistentVolumeClaim, phase: Option<&str>) -> Plan {
    let wait =
        BindingWait::NotBound { claim: claim.name_any(), persistent_volume: persistent_volume.name_any() };
    if let Some(change) = adopted::claimed_by(persistent_volume, claim).filter(|_| phase == Some("Lost")) {
        return Plan::act(Stage::Created, vec![Action::RecordAdopted(change)], wait);
    }
    // The claim was made, and the PersistentVolume still belongs to the one before it.
    let reference = persistent_volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    let claimed_by = reference.and_then(|claim| claim.uid.as_ref());
    if claimed_by.is_some() && claimed_by != claim.metadata.uid.as_ref() {
        let reopen = Action::ReopenPersistentVolume(Box::new(persistent_volume.clone()));
        return Plan::act(Stage::Created, vec![reopen], wait);
    }
    Plan::wait(Stage::Created, wait)
}

/// What belongs to something else is not watched.
fn conflict(observed: &Observed, kind: &'static str, name: String) -> Plan {
    Plan::wait(Stage::Created, BindingWait::NameConflict { kind, name })
        .after(observed.timing.requeue_interval.saturating_mul(12))
}

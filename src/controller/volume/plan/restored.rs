//! The plan of an adopted Volume whose PersistentVolume or claim is gone, or no longer bound: each is created
//! again for the other one, with the EBS volume that the Volume has adopted. Pure.
//!
//! A claim that is gone is dangerous: the StatefulSet that was adopted has `volumeClaimTemplates`, and
//! Kubernetes makes an empty claim for its next pod. So the claim is created again at once, whatever else is
//! awaited; that no pod starts before it is there is the Database's part (`database/plan/claim.rs`).

use k8s_openapi::api::core::v1::{ObjectReference, PersistentVolume, PersistentVolumeClaim};
use kube::ResourceExt;

use super::action::{Action, Plan, Stage};
use super::facts::class_not_found;
use crate::api::Size;
use crate::api::volume::AdoptedVolume;
use crate::cloud::EbsVolume;
use crate::cluster::persistent_volume::storage_class;
use crate::controller::volume::observe::Observed;
use crate::controller::volume::wait::adopted::AdoptedWait;
use crate::controller::volume::wait::modification::BindingWait;
use crate::controller::volume::{adopted, build};

/// The next step; `None` when the two are bound, or when only a person helps. What would be released is left
/// as it is.
pub(super) fn plan(observed: &Observed, adopt: &AdoptedVolume, volume: &EbsVolume) -> Option<Plan> {
    if observed.volume.spec.release {
        return None;
    }
    let Some(record) = &observed.persistent_volume else {
        return Some(persistent_volume(observed, volume));
    };
    let is_ours = adopted::names(record, &adopt.volume_id) && build::is_record_of(record, &observed.volume);
    if !is_ours || record.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let staying = observed.claim.as_ref().filter(|claim| claim.metadata.deletion_timestamp.is_none());
    let plan = match (staying, &observed.claim) {
        (Some(claim), _) => bound(record, claim)?,
        (None, claim) => outlived(observed, record, claim.as_ref()),
    };
    Some(plan.after(observed.timing.requeue_interval))
}

/// The claim is gone, or going: first of all the PersistentVolume must outlive it.
fn outlived(observed: &Observed, record: &PersistentVolume, ending: Option<&PersistentVolumeClaim>) -> Plan {
    if let Some(change) = adopted::record(record, &observed.volume) {
        let wait = AdoptedWait::Recording(record.name_any());
        return Plan::act(Stage::Created, vec![Action::RecordAdopted(change)], wait);
    }
    if let Some(ending) = ending {
        return Plan::wait(Stage::Created, BindingWait::ClaimDeleted(ending.name_any()));
    }
    let actions = vec![Action::CreateClaim(Box::new(adopted::claim(record, &observed.volume)))];
    Plan::act(Stage::Created, actions, BindingWait::CreatingClaim)
}

/// A claim that names the PersistentVolume is bound to it; one that names another is a person's to decide.
fn bound(record: &PersistentVolume, claim: &PersistentVolumeClaim) -> Option<Plan> {
    if adopted::is_bound(record, claim) {
        return None;
    }
    let named = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_ref());
    if named != record.metadata.name.as_ref() {
        return None;
    }
    let reference = record.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    let is_of_another =
        |it: &ObjectReference| it.name != claim.metadata.name || it.namespace != claim.metadata.namespace;
    if reference.is_some_and(is_of_another) {
        return None;
    }
    let wait = BindingWait::NotBound { claim: claim.name_any(), persistent_volume: record.name_any() };
    let actions = adopted::claimed_by(record, claim).map(Action::RecordAdopted).into_iter().collect();
    Some(Plan::act(Stage::Created, actions, wait))
}

/// The PersistentVolume again. Its name, the EBS volume and the file system are in the Volume's spec, the
/// StorageClass and the access modes in the claim. Mount options are in neither, and are lost.
fn persistent_volume(observed: &Observed, volume: &EbsVolume) -> Plan {
    let claim = observed.claim.as_ref();
    let of_claim = claim.and_then(|claim| {
        let field = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_ref());
        storage_class(&claim.metadata, field).map(str::to_owned)
    });
    let of_class = || observed.class.as_ref().map(|class| class.spec.storage_class_name.clone());
    let Some(class) = of_claim.or_else(of_class) else {
        return class_not_found(observed, Stage::Created);
    };
    let size = Size::from_gib(volume.size);
    let built = adopted::persistent_volume(&observed.volume, &volume.id, &size, &class, claim);
    let actions = vec![Action::CreatePersistentVolume(Box::new(built))];
    Plan::act(Stage::Created, actions, BindingWait::CreatingPersistentVolume)
        .after(observed.timing.requeue_interval)
}

//! What is put on the PersistentVolume and the claim of an EBS volume that was adopted in place, and taken
//! off when it is released: nothing else of the two ever changes. Of those that Freehold has created the same
//! is taken off. And each of the two again, where it is gone. Pure.
//!
//! Of the Database's labels these are ours alone: what has another prefix may have been there before an
//! adoption, and could not be restored.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource, ResourceExt};

use super::build;
use crate::api::keys::{
    DATABASE_ANNOTATION, DATABASE_NAME_LABEL, DATABASE_UID_LABEL, FINALIZER,
    FORMER_RECLAIM_POLICY_ANNOTATION, MANAGED_BY_FREEHOLD, MANAGED_BY_LABEL, VOLUME_UID_LABEL,
};
use crate::api::names::VolumeNames;
use crate::api::{Size, Volume, VolumeId};
use crate::cluster::finalizer;
use crate::cluster::persistent_volume::{ebs_volume, storage_class};

/// The reclaim policy of a PersistentVolume that outlives its claim; the default of one that names none.
const RETAIN: &str = "Retain";

/// A change of an object: as it was read, and as it is to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<K> {
    /// As it was read.
    pub from: K,
    /// As it is to be.
    pub to: K,
}

impl<K: Clone + PartialEq> Change<K> {
    /// `None` where nothing differs.
    fn of(from: &K, to: K) -> Option<Box<Self>> {
        (*from != to).then(|| Box::new(Self { from: from.clone(), to }))
    }
}

/// Makes the PersistentVolume the record of this Volume: kept when its claim goes, with its former policy in
/// an annotation.
pub fn record(found: &PersistentVolume, volume: &Volume) -> Option<Box<Change<PersistentVolume>>> {
    let mut to = found.clone();
    to.labels_mut().extend(record_labels(volume));
    to.annotations_mut().insert(DATABASE_ANNOTATION.to_owned(), build::database_of(volume));
    if let Some(spec) = &mut to.spec {
        let former = spec.persistent_volume_reclaim_policy.replace(RETAIN.to_owned());
        let former = former.unwrap_or_else(|| RETAIN.to_owned());
        // One that was changed since is not the one from before.
        to.annotations_mut().entry(FORMER_RECLAIM_POLICY_ANNOTATION.to_owned()).or_insert(former);
    }
    Change::of(found, to)
}

/// Lets the PersistentVolume of this Volume outlive its claim again; `None` where it does.
pub fn retained(found: &PersistentVolume) -> Option<Box<Change<PersistentVolume>>> {
    let mut to = found.clone();
    to.spec.as_mut()?.persistent_volume_reclaim_policy = Some(RETAIN.to_owned());
    Change::of(found, to)
}

/// Makes the claim this Volume's. Another controller of it, such as its StatefulSet, stays its controller.
/// The finalizer keeps it there when it is deleted, until nothing can make an empty claim in its place
/// (`database/plan/claim.rs`).
pub fn own(found: &PersistentVolumeClaim, volume: &Volume) -> Option<Box<Change<PersistentVolumeClaim>>> {
    let mut to = found.clone();
    to.labels_mut().extend(labels(volume));
    if !is_owned(found, volume) {
        to.owner_references_mut().extend(volume.owner_ref(&()));
    }
    if !finalizer::has(found) {
        to.finalizers_mut().push(FINALIZER.to_owned());
    }
    Change::of(found, to)
}

/// Makes the claim one that is not deleted with this Volume. It keeps our finalizer: until the StatefulSet is
/// released, an empty claim could be made in its place.
pub fn disown(found: &PersistentVolumeClaim, volume: &Volume) -> Option<Box<Change<PersistentVolumeClaim>>> {
    Change::of(found, disowned(found, volume))
}

/// Makes the claim what it was before this Volume, or, if Freehold has created it, one that is no Volume's.
/// The finalizer is this Volume's where it owns the claim, or where no Volume does and `record`, its
/// PersistentVolume, is this Volume's: a claim that only has the name is another's.
pub fn release_claim(
    found: &PersistentVolumeClaim,
    record: Option<&PersistentVolume>,
    volume: &Volume,
) -> Option<Box<Change<PersistentVolumeClaim>>> {
    let mut to = disowned(found, volume);
    let is_of_volume = |owner: &OwnerReference| owner.kind == Volume::kind(&());
    let is_free = !found.owner_references().iter().any(is_of_volume);
    let is_of_record = record.is_some_and(|record| build::is_record_of(record, volume));
    let is_ours = is_owned(found, volume) || (is_free && is_of_record);
    if finalizer::has(found) && is_ours {
        to.finalizers_mut().retain(|finalizer| finalizer != FINALIZER);
        to.metadata.finalizers = to.metadata.finalizers.filter(|finalizers| !finalizers.is_empty());
    }
    Change::of(found, to)
}

/// The claim without this Volume's labels and reference.
fn disowned(found: &PersistentVolumeClaim, volume: &Volume) -> PersistentVolumeClaim {
    let mut to = found.clone();
    remove(&mut to.metadata.labels, &removed_labels(volume));
    if is_owned(found, volume) {
        to.owner_references_mut().retain(|owner| Some(&owner.uid) != volume.metadata.uid.as_ref());
        to.metadata.owner_references = to.metadata.owner_references.filter(|owners| !owners.is_empty());
    }
    to
}

/// Makes the PersistentVolume what it was before this Volume. Its former reclaim policy is restored only
/// where nothing is about to delete its claim: `Delete` would delete the EBS volume with it.
pub fn give_back(
    found: &PersistentVolume,
    claim: Option<&PersistentVolumeClaim>,
    volume: &Volume,
) -> Option<Box<Change<PersistentVolume>>> {
    if !build::is_record_of(found, volume) {
        return None;
    }
    let mut to = found.clone();
    let mut labels = removed_labels(volume);
    labels.extend(record_labels(volume));
    remove(&mut to.metadata.labels, &labels);
    to.annotations_mut().remove(DATABASE_ANNOTATION);
    let former = to.annotations_mut().remove(FORMER_RECLAIM_POLICY_ANNOTATION);
    let is_staying = claim.is_some_and(|claim| claim.metadata.deletion_timestamp.is_none());
    let is_bound = claim.is_some_and(|claim| is_bound(found, claim));
    if let Some((spec, former)) = to.spec.as_mut().zip(former).filter(|_| is_staying && is_bound) {
        spec.persistent_volume_reclaim_policy = Some(former);
    }
    Change::of(found, to)
}

/// The PersistentVolume again, for the claim that is there, if there is one: Kubernetes binds a claim that
/// has lost its PersistentVolume only to one that names its UID (`syncBoundClaim` in
/// pkg/controller/volume/persistentvolume/pv_controller.go).
pub fn persistent_volume(
    volume: &Volume,
    id: &VolumeId,
    size: &Size,
    storage_class: &str,
    claim: Option<&PersistentVolumeClaim>,
) -> PersistentVolume {
    let claim = claim.filter(|claim| claim.metadata.deletion_timestamp.is_none());
    let uid = claim.and_then(ResourceExt::uid);
    let mut record = build::persistent_volume(volume, id, size, storage_class, uid);
    record.metadata.labels = Some(record_labels(volume));
    let modes = claim.and_then(|claim| claim.spec.as_ref()?.access_modes.clone());
    if let Some((spec, modes)) = record.spec.as_mut().zip(modes) {
        spec.access_modes = Some(modes);
    }
    record
}

/// The claim again, for the PersistentVolume that is there and no other.
pub fn claim(record: &PersistentVolume, volume: &Volume) -> PersistentVolumeClaim {
    let spec = record.spec.clone().unwrap_or_default();
    let class = storage_class(&record.metadata, spec.storage_class_name.as_ref());
    let class = class.unwrap_or_default().to_owned();
    let size = spec.capacity.as_ref().and_then(|capacity| capacity.get("storage")).cloned();
    let requests = size.map(|size| BTreeMap::from([("storage".to_owned(), size)]));
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(VolumeNames::of(volume).claim),
            namespace: volume.namespace(),
            labels: Some(labels(volume)),
            owner_references: volume.owner_ref(&()).map(|owner| vec![owner]),
            finalizers: Some(vec![FINALIZER.to_owned()]),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: spec.access_modes,
            resources: Some(VolumeResourceRequirements { requests, limits: None }),
            // Without one, Kubernetes would write its default, which the PersistentVolume does not have.
            storage_class_name: Some(class),
            volume_mode: spec.volume_mode,
            volume_name: record.metadata.name.clone(),
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    }
}

/// Lets this claim have the PersistentVolume, which names a claim of this name that is gone; `None` where it
/// names this very one.
pub fn claimed_by(
    found: &PersistentVolume,
    claim: &PersistentVolumeClaim,
) -> Option<Box<Change<PersistentVolume>>> {
    let mut to = found.clone();
    let reference = to.spec.as_mut()?.claim_ref.get_or_insert_default();
    if reference.uid == claim.metadata.uid {
        return None;
    }
    reference.name.clone_from(&claim.metadata.name);
    reference.namespace.clone_from(&claim.metadata.namespace);
    reference.uid.clone_from(&claim.metadata.uid);
    reference.resource_version = None;
    Change::of(found, to)
}

/// Whether the two are bound to each other.
pub fn is_bound(found: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let reference = found.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    let is_claimed = reference.is_some_and(|reference| {
        reference.namespace == claim.metadata.namespace
            && reference.name == claim.metadata.name
            && reference.uid.is_some()
            && reference.uid == claim.metadata.uid
    });
    let named = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_ref());
    let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
    is_claimed && named == found.metadata.name.as_ref() && phase == Some("Bound")
}

/// Whether the PersistentVolume names this EBS volume.
pub fn names(found: &PersistentVolume, id: &VolumeId) -> bool {
    ebs_volume(found).as_ref() == Some(id)
}

/// Whether this Volume owns the claim, so that the claim is deleted with it.
pub fn is_owned(claim: &PersistentVolumeClaim, volume: &Volume) -> bool {
    let uid = volume.metadata.uid.as_ref();
    claim.owner_references().iter().any(|owner| Some(&owner.uid) == uid && owner.kind == Volume::kind(&()))
}

fn record_labels(volume: &Volume) -> BTreeMap<String, String> {
    let mut labels = labels(volume);
    labels.insert(VOLUME_UID_LABEL.to_owned(), volume.uid().unwrap_or_default());
    labels
}

/// What the watches select.
fn labels(volume: &Volume) -> BTreeMap<String, String> {
    let is_ours = |key: &str| [DATABASE_NAME_LABEL, DATABASE_UID_LABEL].contains(&key);
    let labels = volume.labels().iter().filter(|(key, _)| is_ours(key));
    labels.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// What a release removes: of what Freehold has created also who manages it.
fn removed_labels(volume: &Volume) -> BTreeMap<String, String> {
    let mut removed = labels(volume);
    if volume.spec.adopt.is_none() {
        removed.insert(MANAGED_BY_LABEL.to_owned(), MANAGED_BY_FREEHOLD.to_owned());
    }
    removed
}

/// Removes those of these labels that still have our value.
fn remove(labels: &mut Option<BTreeMap<String, String>>, ours: &BTreeMap<String, String>) {
    if let Some(labels) = labels {
        labels.retain(|key, value| ours.get(key) != Some(value));
    }
}

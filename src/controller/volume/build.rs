//! Builds the PersistentVolume and the claim of a Volume: pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    CSIPersistentVolumeSource, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectReference,
    PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec, PersistentVolumeSpec,
    VolumeNodeAffinity, VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt};

use crate::api::keys::{
    self, DATABASE_ANNOTATION, EBS_CSI_DRIVER, PROVISIONED_BY_ANNOTATION, VOLUME_UID_LABEL, ZONE_LABEL,
};
use crate::api::names::VolumeNames;
use crate::api::{Size, Volume, VolumeId};

/// One writer at a time, on one node: Freehold made the volume for one pod.
const ACCESS_MODE: &str = "ReadWriteOncePod";

/// The PersistentVolume: static, kept when its claim goes, bound to this claim alone.
pub fn persistent_volume(
    volume: &Volume,
    id: &VolumeId,
    size: &Size,
    storage_class: &str,
    claim_uid: Option<String>,
) -> PersistentVolume {
    let uid = volume.uid().unwrap_or_default();
    let mut labels = labels(volume);
    labels.insert(VOLUME_UID_LABEL.to_owned(), uid.clone());
    PersistentVolume {
        metadata: ObjectMeta {
            name: Some(VolumeNames::of(volume).persistent_volume),
            labels: Some(labels),
            annotations: Some(BTreeMap::from([
                (DATABASE_ANNOTATION.to_owned(), database_of(volume)),
                (PROVISIONED_BY_ANNOTATION.to_owned(), EBS_CSI_DRIVER.to_owned()),
            ])),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeSpec {
            access_modes: Some(vec![ACCESS_MODE.to_owned()]),
            capacity: Some(BTreeMap::from([("storage".to_owned(), Quantity(size.0.clone()))])),
            claim_ref: Some(ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("PersistentVolumeClaim".to_owned()),
                name: Some(VolumeNames::of(volume).claim),
                namespace: volume.namespace(),
                uid: claim_uid,
                ..ObjectReference::default()
            }),
            csi: Some(CSIPersistentVolumeSource {
                driver: EBS_CSI_DRIVER.to_owned(),
                fs_type: Some(volume.spec.file_system.as_str().to_owned()),
                volume_handle: id.0.clone(),
                ..CSIPersistentVolumeSource::default()
            }),
            node_affinity: Some(VolumeNodeAffinity {
                required: Some(NodeSelector {
                    node_selector_terms: vec![NodeSelectorTerm {
                        match_expressions: Some(vec![NodeSelectorRequirement {
                            key: ZONE_LABEL.to_owned(),
                            operator: "In".to_owned(),
                            values: Some(vec![volume.spec.zone.clone()]),
                        }]),
                        match_fields: None,
                    }],
                }),
            }),
            persistent_volume_reclaim_policy: Some("Retain".to_owned()),
            storage_class_name: Some(storage_class.to_owned()),
            volume_mode: Some("Filesystem".to_owned()),
            ..PersistentVolumeSpec::default()
        }),
        status: None,
    }
}

/// The Database that the Volume belongs to, as `<namespace>/<name>`.
pub fn database_of(volume: &Volume) -> String {
    let database = volume.labels().get(keys::DATABASE_NAME_LABEL).cloned().unwrap_or_default();
    format!("{}/{database}", volume.namespace().unwrap_or_default())
}

/// Whether a PersistentVolume is the one of this Volume's.
pub fn is_record_of(record: &PersistentVolume, volume: &Volume) -> bool {
    volume.metadata.uid.is_some() && record.labels().get(VOLUME_UID_LABEL) == volume.metadata.uid.as_ref()
}

/// The claim, named as the Volume and owned by it.
pub fn claim(volume: &Volume, size: &Size, storage_class: &str) -> PersistentVolumeClaim {
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(volume.name_any()),
            namespace: volume.namespace(),
            labels: Some(labels(volume)),
            owner_references: volume.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec![ACCESS_MODE.to_owned()]),
            resources: Some(VolumeResourceRequirements {
                requests: Some(BTreeMap::from([("storage".to_owned(), Quantity(size.0.clone()))])),
                limits: None,
            }),
            storage_class_name: Some(storage_class.to_owned()),
            volume_mode: Some("Filesystem".to_owned()),
            volume_name: Some(VolumeNames::of(volume).persistent_volume),
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    }
}

fn labels(volume: &Volume) -> BTreeMap<String, String> {
    volume.labels().clone()
}

//! What a PersistentVolume says of the EBS volume behind it, in the form of the EBS CSI driver or in that of
//! Kubernetes' own plugin before it (`awsElasticBlockStore`), which Kubernetes translates. Pure.

use k8s_openapi::api::core::v1::PersistentVolume;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::api::VolumeId;
use crate::api::keys::{
    EBS_CSI_DRIVER, FORMER_ZONE_LABEL, STORAGE_CLASS_ANNOTATION, ZONE_LABEL, ZONE_OF_THE_DRIVER_LABEL,
};

/// The file system where a PersistentVolume names none (Kubernetes API reference, `fsType`).
const DEFAULT_FILE_SYSTEM: &str = "ext4";

/// The EBS volume that it names.
pub fn ebs_volume(persistent_volume: &PersistentVolume) -> Option<VolumeId> {
    let spec = persistent_volume.spec.as_ref()?;
    if let Some(csi) = &spec.csi {
        return (csi.driver == EBS_CSI_DRIVER).then(|| VolumeId(csi.volume_handle.clone()));
    }
    // Either the id alone or `aws://<zone>/<id>` (Kubernetes' AWS provider, `KubernetesVolumeID`).
    let volume = spec.aws_elastic_block_store.as_ref()?.volume_id.as_str();
    let id = volume.rsplit('/').next().filter(|id| volume == *id || volume.starts_with("aws://"))?;
    Some(VolumeId(id.to_owned()))
}

/// The file system that it is mounted with.
pub fn file_system(persistent_volume: &PersistentVolume) -> Option<String> {
    let spec = persistent_volume.spec.as_ref()?;
    let named = match (&spec.csi, &spec.aws_elastic_block_store) {
        (Some(csi), _) => csi.fs_type.as_deref(),
        (None, Some(ebs)) => ebs.fs_type.as_deref(),
        (None, None) => return None,
    };
    Some(named.filter(|named| !named.is_empty()).unwrap_or(DEFAULT_FILE_SYSTEM).to_owned())
}

/// The StorageClass that a PersistentVolume or a claim names, by its field and its annotations: the
/// annotation wins (`GetPersistentVolumeClass` and `GetPersistentVolumeClaimClass` of Kubernetes'
/// component-helpers).
pub fn storage_class<'a>(metadata: &'a ObjectMeta, field: Option<&'a String>) -> Option<&'a str> {
    let annotated = metadata.annotations.as_ref().and_then(|it| it.get(STORAGE_CLASS_ANNOTATION));
    annotated.or(field).map(String::as_str)
}

/// The zone that it requires of a machine.
pub fn zone(persistent_volume: &PersistentVolume) -> Option<String> {
    let spec = persistent_volume.spec.as_ref()?;
    let terms = &spec.node_affinity.as_ref()?.required.as_ref()?.node_selector_terms;
    let mut expressions = terms.iter().flat_map(|term| term.match_expressions.iter().flatten());
    let keys = [ZONE_LABEL, ZONE_OF_THE_DRIVER_LABEL, FORMER_ZONE_LABEL];
    let zone = expressions.find(|expression| keys.contains(&expression.key.as_str()))?;
    zone.values.as_ref()?.first().cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(spec: &Value) -> PersistentVolume {
        serde_json::from_value(json!({"metadata": {"name": "pvc-1"}, "spec": spec})).unwrap()
    }

    fn says(spec: &Value) -> (Option<String>, Option<String>) {
        let read = of(spec);
        (ebs_volume(&read).map(|id| id.0), file_system(&read))
    }

    #[test]
    fn both_forms_name_the_ebs_volume_and_its_file_system() {
        let csi = |more: &Value| {
            let mut csi = json!({"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"});
            csi.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({"csi": csi})
        };
        let of_kubernetes = |id: &str| json!({"awsElasticBlockStore": {"volumeID": id, "fsType": "xfs"}});
        let named = |file_system: &str| (Some("vol-1".to_owned()), Some(file_system.to_owned()));
        assert_eq!(says(&csi(&json!({"fsType": "xfs"}))), named("xfs"));
        assert_eq!(says(&csi(&json!({}))), named("ext4"));
        assert_eq!(says(&csi(&json!({"fsType": ""}))), named("ext4"));
        for id in ["vol-1", "aws://us-east-1b/vol-1", "aws:///vol-1"] {
            assert_eq!(says(&of_kubernetes(id)), named("xfs"), "{id}");
        }
        assert_eq!(says(&of_kubernetes("gce://zone/vol-1")).0, None);
        assert_eq!(says(&csi(&json!({"driver": "efs.csi.aws.com"}))).0, None);
        assert_eq!(says(&json!({"hostPath": {"path": "/"}})), (None, None));
    }

    #[test]
    fn the_zone_has_one_of_three_keys() {
        for key in [
            "topology.kubernetes.io/zone",
            "topology.ebs.csi.aws.com/zone",
            "failure-domain.beta.kubernetes.io/zone",
        ] {
            let term =
                json!({"matchExpressions": [{"key": key, "operator": "In", "values": ["us-east-1b"]}]});
            let required = json!({"required": {"nodeSelectorTerms": [term]}});
            assert_eq!(zone(&of(&json!({"nodeAffinity": required}))).as_deref(), Some("us-east-1b"), "{key}");
        }
        assert_eq!(zone(&of(&json!({}))), None);
    }
}

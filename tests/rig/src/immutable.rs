//! What may not be changed in an object of a built-in kind.
//!
//! Source: the Validate…Update functions of pkg/apis/*/validation of Kubernetes. The messages there list
//! differences; here they name the rule only.

use serde_json::{Map, Value};

use super::answer::Cause;
use super::kind::Kind;

/// The fields of a spec that may be changed; every other one may not.
fn mutable(kind: &Kind) -> Option<&'static [&'static str]> {
    match kind.built_in() {
        "StatefulSet" => Some(&[
            "replicas",
            "ordinals",
            "template",
            "updateStrategy",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
            "minReadySeconds",
        ]),
        "PersistentVolumeClaim" => {
            Some(&["resources", "volumeAttributesClassName", "volumeName", "storageClassName"])
        }
        "PersistentVolume" => Some(&[
            "capacity",
            "accessModes",
            "claimRef",
            "persistentVolumeReclaimPolicy",
            "storageClassName",
            "mountOptions",
            "volumeAttributesClassName",
            "nodeAffinity",
        ]),
        "Pod" => Some(&[
            "activeDeadlineSeconds",
            "tolerations",
            "terminationGracePeriodSeconds",
            "containers",
            "initContainers",
            "nodeName",
        ]),
        "VolumeAttachment" => Some(&[]),
        _ => None,
    }
}

/// The faults of a change of a spec.
pub fn faults(kind: &Kind, old: &Value, new: &Value) -> Vec<Cause> {
    let mut faults = Vec::new();
    if let Some(mutable) = mutable(kind) {
        let fixed = |object: &Value| -> Map<String, Value> {
            let fields = object["spec"].as_object().into_iter().flatten();
            fields
                .filter(|(key, _)| !mutable.contains(&key.as_str()))
                .map(|(key, it)| (key.clone(), it.clone()))
                .collect()
        };
        if fixed(old) != fixed(new) || is_rebound(kind, old, new) {
            let detail = format!("updates to fields other than {mutable:?} are forbidden");
            faults.push(Cause::forbidden("spec", &detail));
        }
    }
    if kind.built_in() == "Pod" && !only_images_differ(old, new) {
        faults.push(Cause::forbidden("spec", "pod updates may not change fields other than images"));
    }
    if kind.built_in() == "Secret" && old["type"] != new["type"] {
        faults.push(Cause::invalid("type", &new["type"], "field is immutable"));
    }
    faults
}

/// A claim's volume and class are set once.
fn is_rebound(kind: &Kind, old: &Value, new: &Value) -> bool {
    let is_changed = |field: &str| {
        let before = &old["spec"][field];
        !before.is_null() && before != "" && *before != new["spec"][field]
    };
    kind.built_in() == "PersistentVolumeClaim" && (is_changed("volumeName") || is_changed("storageClassName"))
}

fn only_images_differ(old: &Value, new: &Value) -> bool {
    let without = |object: &Value| {
        let mut spec = object["spec"].clone();
        for list in ["containers", "initContainers"] {
            for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                container.as_object_mut().map(|it| it.remove("image"));
            }
        }
        ["containers", "initContainers"].map(|list| spec[list].clone())
    };
    without(old) == without(new)
}

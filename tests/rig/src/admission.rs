//! What the API server's admission plugins and its own strategies set on a new object of a built-in kind.
//! Nobody owns these fields.
//!
//! Source: plugin/pkg/admission and pkg/registry of Kubernetes.

use serde_json::{Value, json};

use super::kind::Kind;

/// Sets them; `stamp` is the time.
pub fn admit(kind: &Kind, object: &mut Value, address: impl FnOnce() -> String, stamp: &str) {
    match kind.built_in() {
        "Pod" => pod(object),
        "Node" => taint(object),
        "Service" => allocate(&mut object["spec"], address),
        "PersistentVolume" => {
            object["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": stamp});
            protect(object, "kubernetes.io/pv-protection");
        }
        "PersistentVolumeClaim" => {
            object["status"] = json!({"phase": "Pending"});
            protect(object, "kubernetes.io/pvc-protection");
        }
        "Namespace" => {
            object["spec"]["finalizers"] = json!(["kubernetes"]);
            object["status"] = json!({"phase": "Active"});
        }
        "StatefulSet" => object["status"] = json!({"replicas": 0, "availableReplicas": 0}),
        "VolumeAttachment" => object["status"] = json!({"attached": false}),
        _ => {}
    }
    if kind.is_custom && kind.has_status {
        object.as_object_mut().map(|it| it.remove("status"));
    }
}

/// StorageObjectInUseProtection.
fn protect(object: &mut Value, finalizer: &str) {
    let metadata = &mut object["metadata"];
    let mut finalizers = metadata["finalizers"].as_array().cloned().unwrap_or_default();
    if !finalizers.iter().any(|it| it == finalizer) {
        finalizers.push(json!(finalizer));
    }
    metadata["finalizers"] = json!(finalizers);
}

/// TaintNodesByCondition.
fn taint(node: &mut Value) {
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    let mut taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    if !taints.iter().any(|it| it["key"] == taint["key"] && it["effect"] == taint["effect"]) {
        taints.push(taint);
    }
    node["spec"]["taints"] = json!(taints);
}

/// ServiceAccount, DefaultTolerationSeconds and Priority. A token is never mounted.
fn pod(pod: &mut Value) {
    let spec = &mut pod["spec"];
    let account = spec["serviceAccountName"].as_str().unwrap_or("default").to_owned();
    spec["serviceAccountName"] = json!(account);
    spec["serviceAccount"] = json!(account);
    spec["priority"] = json!(spec["priority"].as_i64().unwrap_or_default());
    spec["preemptionPolicy"] = json!(spec["preemptionPolicy"].as_str().unwrap_or("PreemptLowerPriority"));
    let mut tolerations = spec["tolerations"].as_array().cloned().unwrap_or_default();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let is_tolerated = |it: &Value| {
            (it["key"] == key || it["key"].is_null())
                && (it["effect"] == "NoExecute" || it["effect"].is_null())
        };
        if !tolerations.iter().any(is_tolerated) {
            tolerations.push(
                json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}),
            );
        }
    }
    spec["tolerations"] = json!(tolerations);
    pod["status"] = json!({"phase": "Pending", "qosClass": quality(&pod["spec"])});
}

/// The class of service by what the containers request.
fn quality(spec: &Value) -> &'static str {
    let lists = ["initContainers", "containers"].map(|list| spec[list].as_array());
    let resources: Vec<&Value> = lists.into_iter().flatten().flatten().map(|it| &it["resources"]).collect();
    let has = |it: &Value, kind: &str| ["cpu", "memory"].iter().any(|name| it[kind].get(name).is_some());
    if !resources.iter().any(|it| has(it, "requests") || has(it, "limits")) {
        return "BestEffort";
    }
    let is_fixed = |it: &&Value| {
        ["cpu", "memory"].iter().all(|name| {
            it["limits"].get(name).is_some() && it["limits"].get(name) == it["requests"].get(name)
        })
    };
    if resources.iter().all(is_fixed) { "Guaranteed" } else { "Burstable" }
}

fn allocate(spec: &mut Value, address: impl FnOnce() -> String) {
    if spec["type"] == "ExternalName" {
        return;
    }
    let ip = spec["clusterIP"].as_str().filter(|it| !it.is_empty()).map_or_else(address, str::to_owned);
    spec["clusterIP"] = json!(ip);
    spec["clusterIPs"] = json!([ip]);
    spec["ipFamilies"] = json!(["IPv4"]);
    spec["ipFamilyPolicy"] = json!("SingleStack");
}

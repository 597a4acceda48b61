//! The defaults of the built-in kinds, as far as Freehold's objects and the players of a cluster meet them.
//!
//! Source: pkg/apis/*/v1/defaults.go of Kubernetes, and what kube-apiserver 1.36 answers
//! (`tests/it/same_api`).

mod pod;

use data_encoding::BASE64;
use serde_json::{Map, Value, json};

use super::json::{items, set};
use super::kind::Kind;

/// An empty object of the kind, as Go writes it: what a new object is compared with to see who owns what.
pub fn empty(kind: &Kind) -> Value {
    match kind.built_in() {
        "Pod" => json!({"spec": {"containers": null}}),
        "StatefulSet" => json!({"spec": {"selector": null, "updateStrategy": {},
            "template": {"metadata": {}, "spec": {"containers": null}}}}),
        "PersistentVolumeClaim" => json!({"spec": {"resources": {}}}),
        "NetworkPolicy" => json!({"spec": {"podSelector": {}}}),
        "VolumeAttachment" => json!({"spec": {"source": {}}}),
        "CSINode" => json!({"spec": {"drivers": null}}),
        "Service" | "PersistentVolume" | "Node" | "Namespace" | "Lease" | "PodDisruptionBudget" => {
            json!({"spec": {}})
        }
        "Event" => json!({"deprecatedSource": {}, "regarding": {}, "eventTime": null,
            "deprecatedFirstTimestamp": null, "deprecatedLastTimestamp": null}),
        _ => json!({}),
    }
}

/// Fills in what a client left out, when its object is read.
pub fn fill(kind: &Kind, object: &mut Value) {
    match kind.built_in() {
        "Pod" => {
            set(object, "spec", json!({}));
            pod::fill(&mut object["spec"]);
            pod::fill_pod(&mut object["spec"]);
            fill_conditions(object, "lastProbeTime");
        }
        "StatefulSet" => stateful_set(&mut object["spec"]),
        "Service" => service(&mut object["spec"]),
        "PersistentVolumeClaim" => {
            claim(object);
            fill_conditions(object, "lastProbeTime");
        }
        "PersistentVolume" => {
            set(&mut object["spec"], "persistentVolumeReclaimPolicy", json!("Retain"));
            set(&mut object["spec"], "volumeMode", json!("Filesystem"));
        }
        "Namespace" => {
            let name = object["metadata"]["name"].clone();
            set(&mut object["metadata"], "labels", json!({}));
            set(&mut object["metadata"]["labels"], "kubernetes.io/metadata.name", name);
            set(object, "spec", json!({}));
        }
        "Node" => node(object),
        "Secret" => secret(object),
        "NetworkPolicy" => network_policy(&mut object["spec"]),
        "StorageClass" => {
            set(object, "reclaimPolicy", json!("Delete"));
            set(object, "volumeBindingMode", json!("Immediate"));
        }
        "CSINode" => {
            set(&mut object["spec"], "drivers", Value::Null);
            items(&mut object["spec"], "drivers").for_each(|it| set(it, "topologyKeys", Value::Null));
        }
        "VolumeAttachment" => set(&mut object["spec"], "source", json!({})),
        "Lease" => set(object, "spec", json!({})),
        "Event" => {
            set(object, "deprecatedSource", json!({}));
            for field in ["deprecatedFirstTimestamp", "deprecatedLastTimestamp", "eventTime"] {
                set(object, field, Value::Null);
            }
        }
        _ => {}
    }
    set_status(kind, object);
}

/// The fields of a status that are always there.
fn set_status(kind: &Kind, object: &mut Value) {
    let zero = match kind.built_in() {
        "Service" => json!({"loadBalancer": {}}),
        "VolumeAttachment" => json!({"attached": false}),
        "StatefulSet" => json!({"replicas": 0, "availableReplicas": 0}),
        "PodDisruptionBudget" => json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0,
            "expectedPods": 0}),
        "PersistentVolumeClaim" | "PersistentVolume" | "Pod" => json!({"phase": "Pending"}),
        "Namespace" => json!({"phase": "Active"}),
        _ => return,
    };
    set(object, "status", json!({}));
    for (key, value) in zero.as_object().cloned().unwrap_or_default() {
        set(&mut object["status"], &key, value);
    }
}

/// Times of conditions that are always there.
fn fill_conditions(object: &mut Value, first: &str) {
    if let Some(status) = object.get_mut("status") {
        for condition in items(status, "conditions") {
            set(condition, first, Value::Null);
            set(condition, "lastTransitionTime", Value::Null);
        }
    }
}

fn stateful_set(spec: &mut Value) {
    set(spec, "replicas", json!(1));
    set(spec, "podManagementPolicy", json!("OrderedReady"));
    set(spec, "revisionHistoryLimit", json!(10));
    set(spec, "updateStrategy", json!({}));
    set(&mut spec["updateStrategy"], "type", json!("RollingUpdate"));
    if spec["updateStrategy"]["type"] == "RollingUpdate" {
        set(&mut spec["updateStrategy"], "rollingUpdate", json!({}));
        set(&mut spec["updateStrategy"]["rollingUpdate"], "partition", json!(0));
    }
    set(spec, "persistentVolumeClaimRetentionPolicy", json!({}));
    for field in ["whenDeleted", "whenScaled"] {
        set(&mut spec["persistentVolumeClaimRetentionPolicy"], field, json!("Retain"));
    }
    set(spec, "template", json!({}));
    set(&mut spec["template"], "metadata", json!({}));
    set(&mut spec["template"], "spec", json!({}));
    pod::fill(&mut spec["template"]["spec"]);
    for template in items(spec, "volumeClaimTemplates") {
        set(template, "apiVersion", json!("v1"));
        set(template, "kind", json!("PersistentVolumeClaim"));
        claim(template);
        set(template, "status", json!({"phase": "Pending"}));
    }
}

fn service(spec: &mut Value) {
    set(spec, "type", json!("ClusterIP"));
    set(spec, "sessionAffinity", json!("None"));
    if spec["type"] != "ExternalName" {
        set(spec, "internalTrafficPolicy", json!("Cluster"));
    }
    for port in items(spec, "ports") {
        set(port, "protocol", json!("TCP"));
        let number = port["port"].clone();
        set(port, "targetPort", number);
    }
}

fn claim(claim: &mut Value) {
    set(claim, "spec", json!({}));
    set(&mut claim["spec"], "volumeMode", json!("Filesystem"));
    set(&mut claim["spec"], "resources", json!({}));
}

fn node(node: &mut Value) {
    set(node, "spec", json!({}));
    set(node, "status", json!({}));
    fill_conditions(node, "lastHeartbeatTime");
    let status = &mut node["status"];
    set(status, "daemonEndpoints", json!({}));
    set(&mut status["daemonEndpoints"], "kubeletEndpoint", json!({"Port": 0}));
    set(status, "nodeInfo", json!({}));
    let fields = [
        "machineID",
        "systemUUID",
        "bootID",
        "kernelVersion",
        "osImage",
        "containerRuntimeVersion",
        "kubeletVersion",
        "kubeProxyVersion",
        "operatingSystem",
        "architecture",
    ];
    for field in fields {
        set(&mut status["nodeInfo"], field, json!(""));
    }
    if let Some(capacity) = status.get("capacity").cloned() {
        set(status, "allocatable", capacity);
    }
}

/// The texts of `stringData` become data, which is kept in Base64.
fn secret(secret: &mut Value) {
    set(secret, "type", json!("Opaque"));
    let texts = secret.as_object_mut().and_then(|it| it.remove("stringData"));
    let texts: Map<String, Value> = texts.and_then(|it| it.as_object().cloned()).unwrap_or_default();
    for (key, text) in texts {
        set(secret, "data", json!({}));
        secret["data"][key] = json!(BASE64.encode(text.as_str().unwrap_or_default().as_bytes()));
    }
}

fn network_policy(spec: &mut Value) {
    set(spec, "podSelector", json!({}));
    let types = if spec.get("egress").is_some() { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    set(spec, "policyTypes", types);
    for direction in ["ingress", "egress"] {
        for rule in items(spec, direction) {
            items(rule, "ports").for_each(|port| set(port, "protocol", json!("TCP")));
        }
    }
}

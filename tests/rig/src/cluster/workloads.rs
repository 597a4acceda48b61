//! The StatefulSet controller and the scheduler: one pod of a set, on a Kubernetes node that takes it.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use serde_json::{Value, json};

use super::hand::{Hand, text};
use super::names::SELECTED_NODE;
use super::node_lifecycle::tolerates;
use super::seen::{Seen, condition, is_going, named, with_condition};
use crate::server::Server;

/// One look of the StatefulSet controller.
pub fn stateful_sets(server: &Server, seen: &Seen) {
    let hand = Hand::of(server, "statefulset-controller");
    for set in seen.sets.iter().filter(|set| !is_going(set)) {
        let namespace = text(&set["metadata"]["namespace"]);
        let name = format!("{}-0", text(&set["metadata"]["name"]));
        let wanted = set["spec"]["replicas"].as_i64().unwrap_or(1);
        let pod = named(&seen.pods, namespace, &name);
        let owner = pod.map(|pod| &pod["metadata"]["ownerReferences"][0]["uid"]);
        let is_own = owner == Some(&set["metadata"]["uid"]);
        match pod {
            None if wanted > 0 && has_claims(&hand, seen, set) => {
                hand.create("pods", &pod_of(set, &name));
            }
            Some(pod) if is_own && !is_going(pod) && is_to_end(set, pod) => {
                hand.delete("pods", pod, &json!({}));
            }
            Some(_) | None => {}
        }
        let pod = pod.filter(|_| is_own);
        let is_ready = pod.is_some_and(|pod| condition(pod, "Ready") == "True" && !is_going(pod));
        let count = i64::from(pod.is_some());
        let revision = revision(set);
        let mut status = json!({"observedGeneration": set["metadata"]["generation"], "replicas": count,
            "readyReplicas": i64::from(is_ready), "availableReplicas": i64::from(is_ready),
            "currentReplicas": count, "updateRevision": revision, "collisionCount": 0,
            "currentRevision": set["status"]["currentRevision"].as_str().unwrap_or(&revision)});
        let is_updated =
            pod.is_some_and(|pod| pod["metadata"]["labels"]["controller-revision-hash"] == revision.as_str());
        if is_updated {
            status["currentRevision"] = json!(revision);
            status["updatedReplicas"] = json!(1);
        }
        let fields = status.as_object().into_iter().flatten();
        if fields.into_iter().any(|(key, value)| set["status"][key] != *value) {
            hand.merge("statefulsets.apps", set, "/status", &json!({"status": status}));
        }
    }
}

/// The claims of the templates, each with the name of its volume in the pod.
fn claims_of(set: &Value) -> impl Iterator<Item = (&Value, String)> {
    let templates = set["spec"]["volumeClaimTemplates"].as_array().into_iter().flatten();
    let set_name = text(&set["metadata"]["name"]);
    templates.map(move |it| (it, format!("{}-{set_name}-0", text(&it["metadata"]["name"]))))
}

/// Makes the claims that are missing; one that is being deleted is waited for.
fn has_claims(hand: &Hand<'_>, seen: &Seen, set: &Value) -> bool {
    let namespace = &set["metadata"]["namespace"];
    let mut are_there = true;
    for (template, name) in claims_of(set) {
        if let Some(claim) = named(&seen.claims, text(namespace), &name) {
            are_there &= !is_going(claim);
            continue;
        }
        let mut labels = template["metadata"]["labels"].as_object().cloned().unwrap_or_default();
        labels.extend(set["spec"]["selector"]["matchLabels"].as_object().cloned().unwrap_or_default());
        let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": template["spec"]});
        are_there &= hand.create("persistentvolumeclaims", &claim).is_some();
    }
    are_there
}

/// Whether the controller deletes the pod: none is wanted, it has ended, or it is of another template and the
/// set is updated by rolling.
fn is_to_end(set: &Value, pod: &Value) -> bool {
    let has_ended = ["Failed", "Succeeded"].contains(&text(&pod["status"]["phase"]));
    let is_current = pod["metadata"]["labels"]["controller-revision-hash"] == revision(set).as_str();
    let is_rolled = set["spec"]["updateStrategy"]["type"] == "RollingUpdate" && !is_current;
    set["spec"]["replicas"] == 0 || has_ended || is_rolled
}

/// The name of the revision of its pods' template; of a spec that was seen already, the one in its status.
fn revision(set: &Value) -> String {
    let status = &set["status"];
    if status["observedGeneration"] == set["metadata"]["generation"]
        && let Some(known) = status["updateRevision"].as_str()
    {
        return known.to_owned();
    }
    let mut hasher = DefaultHasher::new();
    set["spec"]["template"].to_string().hash(&mut hasher);
    format!("{}-{:x}", text(&set["metadata"]["name"]), hasher.finish() & 0xffff_ffff)
}

fn pod_of(set: &Value, name: &str) -> Value {
    let template = &set["spec"]["template"];
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"].clone(),
        "spec": template["spec"].clone()});
    pod["metadata"]["name"] = json!(name);
    pod["metadata"]["namespace"] = set["metadata"]["namespace"].clone();
    pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "StatefulSet",
        "name": set["metadata"]["name"], "uid": set["metadata"]["uid"], "controller": true,
        "blockOwnerDeletion": true}]);
    let labels = &mut pod["metadata"]["labels"];
    labels["apps.kubernetes.io/pod-index"] = json!("0");
    labels["statefulset.kubernetes.io/pod-name"] = json!(name);
    labels["controller-revision-hash"] = json!(revision(set));
    let claimed = claims_of(set).map(|(template, claim)| {
        json!({"name": template["metadata"]["name"], "persistentVolumeClaim": {"claimName": claim}})
    });
    let mut volumes: Vec<Value> = claimed.collect();
    let is_claimed = |it: &Value| volumes.iter().any(|claimed| claimed["name"] == it["name"]);
    let others = template["spec"]["volumes"].as_array().into_iter().flatten();
    let others: Vec<Value> = others.filter(|it| !is_claimed(it)).cloned().collect();
    volumes.extend(others);
    if !volumes.is_empty() {
        pod["spec"]["volumes"] = json!(volumes);
    }
    pod["spec"]["hostname"] = json!(name);
    pod["spec"]["subdomain"] = set["spec"]["serviceName"].clone();
    pod
}

/// One look of the scheduler.
pub fn schedule(server: &Server, seen: &Seen) {
    let hand = Hand::of(server, "kube-scheduler");
    for pod in seen.pods.iter().filter(|pod| text(&pod["spec"]["nodeName"]).is_empty() && !is_going(pod)) {
        let node = seen.nodes.iter().find(|node| takes(seen, pod, node));
        if let Some(node) = node.filter(|_| has_bound_claims(seen, pod)) {
            hand.bind(pod, text(&node["metadata"]["name"]));
            continue;
        }
        if let Some(node) = node {
            select(&hand, seen, pod, node);
        }
        let next = with_condition(pod, "PodScheduled", "False", "Unschedulable", seen.now);
        if next != pod["status"]["conditions"] {
            hand.merge("pods", pod, "/status", &json!({"status": {"conditions": next}}));
        }
    }
}

/// Has the claims that wait for their first consumer provisioned for this Kubernetes node.
fn select(hand: &Hand<'_>, seen: &Seen, pod: &Value, node: &Value) {
    let selected = json!({"metadata": {"annotations": {SELECTED_NODE: node["metadata"]["name"]}}});
    let is_free = |it: &&Value| text(&it["spec"]["volumeName"]).is_empty() && !is_going(it);
    for claim in seen.claims_of(pod).flatten().filter(is_free) {
        if !claim["metadata"]["annotations"][SELECTED_NODE].is_string() {
            hand.merge("persistentvolumeclaims", claim, "", &selected);
        }
    }
}

fn has_bound_claims(seen: &Seen, pod: &Value) -> bool {
    seen.claims_of(pod).all(|claim| claim.is_some_and(|it| it["status"]["phase"] == "Bound" && !is_going(it)))
}

/// Whether a Kubernetes node takes a pod, and has the zone of its volumes.
fn takes(seen: &Seen, pod: &Value, node: &Value) -> bool {
    let labels = &node["metadata"]["labels"];
    let selector = pod["spec"]["nodeSelector"].as_object().into_iter().flatten();
    let is_selected = selector.into_iter().all(|(key, value)| labels.get(key) == Some(value));
    let tolerations = || pod["spec"]["tolerations"].as_array().into_iter().flatten();
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    let hard = taints.filter(|it| it["effect"] != "PreferNoSchedule");
    let is_tolerated = hard.into_iter().all(|taint| tolerations().any(|it| tolerates(it, taint)));
    let is_open = node["spec"]["unschedulable"] != true && !is_going(node);
    let zone = text(&labels["topology.kubernetes.io/zone"]);
    let is_near = seen.volumes_of(pod).all(|volume| is_in_zone(volume, zone));
    is_selected && is_tolerated && is_open && is_near
}

/// Whether a PersistentVolume can be used in this zone.
fn is_in_zone(volume: &Value, zone: &str) -> bool {
    let terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"].as_array();
    let Some(terms) = terms else { return true };
    let has = |expression: &Value| {
        let values = expression["values"].as_array().into_iter().flatten();
        !text(&expression["key"]).ends_with("/zone") || values.into_iter().any(|it| it == zone)
    };
    let is_met = |term: &Value| term["matchExpressions"].as_array().into_iter().flatten().all(has);
    terms.iter().any(is_met)
}

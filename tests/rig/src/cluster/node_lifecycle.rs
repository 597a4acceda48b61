//! The node lifecycle controller, the cloud's part of it and the collector of orphaned pods: a silent
//! Kubernetes node becomes Unknown, its pods are evicted, and the Kubernetes node of a terminated instance is
//! deleted.

use std::collections::BTreeMap;

use ec2sim::{InstanceState, InstanceView};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::due::Due;
use super::hand::{Hand, text};
use super::machines::renewed;
use super::seen::{Seen, condition, instance_of, is_going, stamp, with_condition};
use crate::server::Server;

/// How long a kubelet may be silent (kube-controller-manager: `--node-monitor-grace-period`).
const SILENCE: SignedDuration = SignedDuration::from_secs(50);

/// How long the Kubernetes node of a terminated instance stays.
const REMOVAL: SignedDuration = SignedDuration::from_secs(20);

/// How long a pod of no Kubernetes node stays (pod garbage collector: `nodeQuarantine`).
const QUARANTINE: SignedDuration = SignedDuration::from_secs(40);

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// What is remembered between two looks.
#[derive(Debug, Default)]
pub struct NodeLifecycle {
    gone: BTreeMap<String, Timestamp>,
    orphaned: BTreeMap<String, Timestamp>,
}

impl NodeLifecycle {
    /// One look.
    pub fn step(&mut self, server: &Server, seen: &Seen, instances: &[InstanceView], due: &mut Due) {
        for node in &seen.nodes {
            judge(server, seen, node, due);
            self.remove(server, seen, node, instances, due);
        }
        for pod in &seen.pods {
            evict(server, seen, pod, due);
            self.collect(server, seen, pod, due);
        }
    }

    /// Deletes the Kubernetes node of an instance that is terminated or not known.
    fn remove(&mut self, server: &Server, seen: &Seen, node: &Value, all: &[InstanceView], due: &mut Due) {
        let Some(id) = instance_of(node) else { return };
        let is_there = |it: &InstanceView| it.id == id && it.state != InstanceState::Terminated;
        if all.iter().any(is_there) {
            self.gone.remove(id);
            return;
        }
        let since = *self.gone.entry(id.to_owned()).or_insert(seen.now);
        if due.passed(since + REMOVAL, seen.now) && !is_going(node) {
            Hand::of(server, "cloud-controller-manager").delete("nodes", node, &json!({}));
        }
    }

    /// Deletes the pods of Kubernetes nodes that are gone, and those that end on one that is out of service.
    fn collect(&mut self, server: &Server, seen: &Seen, pod: &Value, due: &mut Due) {
        let (uid, name) = (text(&pod["metadata"]["uid"]), text(&pod["spec"]["nodeName"]));
        if name.is_empty() {
            return;
        }
        let node = seen.node(name);
        let is_orphan = node.is_none();
        let is_out = node.is_some_and(|node| {
            is_out_of_service(node) && condition(node, "Ready") != "True" && is_going(pod)
        });
        if !is_orphan && !is_out {
            self.orphaned.remove(uid);
            return;
        }
        let since = *self.orphaned.entry(uid.to_owned()).or_insert(seen.now);
        if is_out || due.passed(since + QUARANTINE, seen.now) {
            Hand::of(server, "pod-garbage-collector").delete("pods", pod, &json!({"gracePeriodSeconds": 0}));
        }
    }
}

/// Whether a Kubernetes node has the taint out-of-service.
pub fn is_out_of_service(node: &Value) -> bool {
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    taints.into_iter().any(|it| it["key"] == "node.kubernetes.io/out-of-service")
}

/// Whether the kubelet reports, and the taints that follow from it.
fn judge(server: &Server, seen: &Seen, node: &Value, due: &mut Due) {
    let hand = Hand::of(server, "node-lifecycle-controller");
    let last = renewed(seen, node).unwrap_or(seen.now);
    if due.passed(last + SILENCE, seen.now) && condition(node, "Ready") == "True" {
        let unknown = with_condition(node, "Ready", "Unknown", "NodeStatusUnknown", seen.now);
        hand.merge("nodes", node, "/status", &json!({"status": {"conditions": unknown}}));
        return;
    }
    let wanted = match condition(node, "Ready") {
        "True" => None,
        "Unknown" => Some(UNREACHABLE),
        _ => Some(NOT_READY),
    };
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let is_own = |it: &Value| it["key"] == UNREACHABLE || it["key"] == NOT_READY;
    let own: Vec<&Value> = taints.iter().filter(|it| is_own(it)).collect();
    let is_right = match wanted {
        None => own.is_empty(),
        Some(key) => own.len() == 2 && own.iter().all(|it| it["key"] == key),
    };
    if is_right {
        return;
    }
    let mut next: Vec<Value> = taints.iter().filter(|it| !is_own(it)).cloned().collect();
    for effect in ["NoSchedule", "NoExecute"] {
        next.extend(wanted.map(|key| json!({"key": key, "effect": effect, "timeAdded": stamp(seen.now)})));
    }
    let patch = json!({"metadata": {"resourceVersion": node["metadata"]["resourceVersion"]},
        "spec": {"taints": next}});
    hand.merge("nodes", node, "", &patch);
}

/// Deletes a pod that does not tolerate a NoExecute taint of its Kubernetes node, or no longer.
fn evict(server: &Server, seen: &Seen, pod: &Value, due: &mut Due) {
    let Some(node) = seen.node(text(&pod["spec"]["nodeName"])).filter(|_| !is_going(pod)) else { return };
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    for taint in taints.filter(|it| it["effect"] == "NoExecute") {
        let tolerations = pod["spec"]["tolerations"].as_array().into_iter().flatten();
        let matching: Vec<&Value> = tolerations.filter(|it| tolerates(it, taint)).collect();
        let seconds = matching.iter().filter_map(|it| it["tolerationSeconds"].as_i64()).min();
        let since: Timestamp = text(&taint["timeAdded"]).parse().unwrap_or(seen.now);
        let is_over = match (matching.is_empty(), seconds) {
            (true, _) => true,
            (false, None) => false,
            (false, Some(seconds)) => due.passed(since + SignedDuration::from_secs(seconds), seen.now),
        };
        if is_over {
            Hand::of(server, "taint-eviction-controller").delete("pods", pod, &json!({}));
            return;
        }
    }
}

/// Whether a toleration is for this taint.
pub fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let key = &toleration["key"];
    let is_key = key.is_null() || *key == taint["key"];
    let is_effect = toleration["effect"].is_null() || toleration["effect"] == taint["effect"];
    let is_value = toleration["operator"] == "Exists" || text(&toleration["value"]) == text(&taint["value"]);
    is_key && is_effect && is_value
}

//! The controllers of claims, and of attachments: what is bound, what is protected, and which
//! VolumeAttachments there are to be.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::due::Due;
use super::hand::{Hand, text};
use super::names::{ATTACHMENTS, EBS_DRIVER};
use super::node_lifecycle::is_out_of_service;
use super::seen::{Seen, condition, ebs_volume, is_going, without};
use crate::server::Server;

/// After this time a volume is detached from a Kubernetes node that is not Ready, whatever its kubelet says
/// (attach/detach controller: `maxWaitForUnmountDuration`).
const UNMOUNT: SignedDuration = SignedDuration::from_secs(360);

/// One look of the controller of claims and PersistentVolumes, and of those that protect them.
pub fn bind(server: &Server, seen: &Seen) {
    let hand = Hand::of(server, "persistentvolume-binder");
    for claim in &seen.claims {
        let volume = seen.volume(text(&claim["spec"]["volumeName"])).or_else(|| provisioned(seen, claim));
        let is_bound = claim["status"]["phase"] == "Bound";
        match volume.filter(|volume| is_for(volume, claim)) {
            Some(volume) if !is_bound && !is_going(claim) => bind_one(&hand, volume, claim),
            None if is_bound && volume.is_none() => {
                hand.merge(CLAIMS, claim, "/status", &json!({"status": {"phase": "Lost"}}));
            }
            Some(_) | None => {}
        }
        let is_used = seen.pods.iter().any(|pod| {
            seen.claims_of(pod).flatten().any(|it| it["metadata"]["uid"] == claim["metadata"]["uid"])
        });
        if is_going(claim) && !is_used {
            release(&hand, CLAIMS, claim, "kubernetes.io/pvc-protection");
        }
    }
    for volume in &seen.volumes {
        let claim = seen.claims.iter().find(|claim| {
            claim["metadata"]["uid"] == volume["spec"]["claimRef"]["uid"] && is_for(volume, claim)
        });
        let phase = match (claim, volume["spec"]["claimRef"]["uid"].as_str()) {
            (Some(_), _) => "Bound",
            (None, Some(_)) => "Released",
            (None, None) => "Available",
        };
        if volume["status"]["phase"] != phase {
            hand.merge(VOLUMES, volume, "/status", &json!({"status": {"phase": phase}}));
        }
        if is_going(volume) && claim.is_none() {
            release(&hand, VOLUMES, volume, "kubernetes.io/pv-protection");
        }
    }
}

const CLAIMS: &str = "persistentvolumeclaims";
const VOLUMES: &str = "persistentvolumes";

fn release(hand: &Hand<'_>, resource: &str, object: &Value, finalizer: &str) {
    if let Some(finalizers) = without(object, finalizer) {
        let patch = json!({"metadata": {"resourceVersion": object["metadata"]["resourceVersion"],
            "finalizers": finalizers}});
        hand.merge(resource, object, "", &patch);
    }
}

/// Whether a PersistentVolume names this claim, and no other one that had its name.
fn is_for(volume: &Value, claim: &Value) -> bool {
    let named = &volume["spec"]["claimRef"];
    let is_uid = named["uid"].is_null() || named["uid"] == claim["metadata"]["uid"];
    named["name"] == claim["metadata"]["name"]
        && named["namespace"] == claim["metadata"]["namespace"]
        && is_uid
}

/// The PersistentVolume that was made for a claim, which does not name it yet.
fn provisioned<'a>(seen: &'a Seen, claim: &Value) -> Option<&'a Value> {
    let names_none = text(&claim["spec"]["volumeName"]).is_empty();
    let is_its = |it: &&Arc<Value>| it["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"];
    seen.volumes.iter().filter(|_| names_none).find(is_its).map(AsRef::as_ref)
}

fn bind_one(hand: &Hand<'_>, volume: &Value, claim: &Value) {
    let uid = json!({"spec": {"claimRef": {"uid": claim["metadata"]["uid"],
        "resourceVersion": claim["metadata"]["resourceVersion"]}}});
    if hand.merge(VOLUMES, volume, "", &uid).is_none() {
        return;
    }
    let done = json!({"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": volume["metadata"]["name"]}});
    hand.merge(CLAIMS, claim, "", &done);
    let status = json!({"status": {"phase": "Bound", "accessModes": volume["spec"]["accessModes"],
        "capacity": volume["spec"]["capacity"]}});
    hand.merge(CLAIMS, claim, "/status", &status);
}

/// The attach/detach controller, and since when each VolumeAttachment is not wanted.
#[derive(Debug, Default)]
pub struct AttachDetach {
    unwanted: BTreeMap<String, Timestamp>,
}

impl AttachDetach {
    /// One look.
    pub fn step(&mut self, server: &Server, seen: &Seen, due: &mut Due) {
        let hand = Hand::of(server, "attachdetach-controller");
        let mut wanted = BTreeSet::new();
        for pod in seen.pods.iter().filter(|pod| !text(&pod["spec"]["nodeName"]).is_empty()) {
            for volume in seen.volumes_of(pod).filter(|it| ebs_volume(it).is_some()) {
                wanted.insert((text(&volume["metadata"]["name"]), text(&pod["spec"]["nodeName"])));
            }
        }
        for (volume, node) in &wanted {
            let is_attached_somewhere =
                seen.attachments.iter().any(|it| it["spec"]["source"]["persistentVolumeName"] == *volume);
            if !is_attached_somewhere && seen.node(node).is_some() {
                hand.create(
                    ATTACHMENTS,
                    &json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment",
                        "metadata": {"name": name_of(volume, node)},
                        "spec": {"attacher": EBS_DRIVER, "nodeName": node,
                            "source": {"persistentVolumeName": volume}}}),
                );
            }
        }
        for attachment in seen.attachments.iter().filter(|it| !is_going(it)) {
            let volume = text(&attachment["spec"]["source"]["persistentVolumeName"]);
            let node = text(&attachment["spec"]["nodeName"]);
            let name = text(&attachment["metadata"]["name"]);
            if wanted.contains(&(volume, node)) {
                self.unwanted.remove(name);
                continue;
            }
            let since = *self.unwanted.entry(name.to_owned()).or_insert(seen.now);
            if may_detach(seen, volume, node, since, due) {
                hand.delete(ATTACHMENTS, attachment, &json!({}));
            }
        }
    }
}

fn name_of(volume: &str, node: &str) -> String {
    let mut hasher = DefaultHasher::new();
    (volume, node).hash(&mut hasher);
    format!("csi-{:016x}", hasher.finish())
}

/// Whether the kubelet has unmounted it, or is not waited for.
fn may_detach(seen: &Seen, volume: &str, node: &str, since: Timestamp, due: &mut Due) -> bool {
    let Some(node) = seen.node(node) else { return true };
    let unique = seen.volume(volume).and_then(ebs_volume).map(unique_name);
    let in_use = node["status"]["volumesInUse"].as_array().into_iter().flatten();
    let is_in_use = in_use.into_iter().any(|it| it.as_str() == unique.as_deref());
    let is_ready = condition(node, "Ready") == "True";
    !is_in_use || is_out_of_service(node) || (!is_ready && due.passed(since + UNMOUNT, seen.now))
}

/// The name of an EBS volume in a Kubernetes node's status.
pub fn unique_name(volume: &str) -> String {
    format!("kubernetes.io/csi/{EBS_DRIVER}^{volume}")
}

//! What those who act in the cluster see: all objects that they look at, at one moment.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::hand::text;
use super::names::EBS_DRIVER;
use crate::server::Server;

/// The objects at one moment.
pub struct Seen {
    /// When.
    pub now: Timestamp,
    /// All pods.
    pub pods: Vec<Arc<Value>>,
    /// All Kubernetes nodes.
    pub nodes: Vec<Arc<Value>>,
    /// All claims.
    pub claims: Vec<Arc<Value>>,
    /// All PersistentVolumes.
    pub volumes: Vec<Arc<Value>>,
    /// All VolumeAttachments.
    pub attachments: Vec<Arc<Value>>,
    /// All StatefulSets.
    pub sets: Vec<Arc<Value>>,
    /// The kubelets' Leases.
    pub leases: Vec<Arc<Value>>,
}

impl Seen {
    /// Looks.
    pub fn of(server: &Server) -> Self {
        Self {
            now: server.now(),
            pods: server.objects("pods"),
            nodes: server.objects("nodes"),
            claims: server.objects("persistentvolumeclaims"),
            volumes: server.objects("persistentvolumes"),
            attachments: server.objects("volumeattachments.storage.k8s.io"),
            sets: server.objects("statefulsets.apps"),
            leases: server.objects("leases.coordination.k8s.io"),
        }
    }

    /// The Kubernetes node of this name.
    pub fn node(&self, name: &str) -> Option<&Value> {
        named(&self.nodes, "", name)
    }

    /// The PersistentVolume of this name.
    pub fn volume(&self, name: &str) -> Option<&Value> {
        named(&self.volumes, "", name)
    }

    /// The claims that a pod uses.
    pub fn claims_of<'a>(&'a self, pod: &'a Value) -> impl Iterator<Item = Option<&'a Value>> {
        let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
        let names = volumes.filter_map(|it| it["persistentVolumeClaim"]["claimName"].as_str());
        names.map(|name| named(&self.claims, text(&pod["metadata"]["namespace"]), name))
    }

    /// The PersistentVolumes that a pod uses, of those that are bound.
    pub fn volumes_of<'a>(&'a self, pod: &'a Value) -> impl Iterator<Item = &'a Value> {
        let bound = self.claims_of(pod).flatten().filter(|claim| claim["status"]["phase"] == "Bound");
        bound.filter_map(|claim| self.volume(text(&claim["spec"]["volumeName"])))
    }
}

/// The object of this name in this namespace.
pub fn named<'a>(objects: &'a [Arc<Value>], namespace: &str, name: &str) -> Option<&'a Value> {
    let is_it =
        |it: &&Arc<Value>| it["metadata"]["name"] == name && text(&it["metadata"]["namespace"]) == namespace;
    objects.iter().find(is_it).map(AsRef::as_ref)
}

/// Whether it is being deleted.
pub fn is_going(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// The status of one of its conditions; empty if it does not have it.
pub fn condition<'a>(object: &'a Value, kind: &str) -> &'a str {
    let all = object["status"]["conditions"].as_array().into_iter().flatten();
    all.into_iter().find(|it| it["type"] == kind).map(|it| text(&it["status"])).unwrap_or_default()
}

/// Its conditions with one of them as it is now; a transition time changes only with the status.
pub fn with_condition(object: &Value, kind: &str, status: &str, reason: &str, now: Timestamp) -> Value {
    let mut all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    if condition(object, kind) == status {
        return Value::Array(all);
    }
    all.retain(|it| it["type"] != kind);
    all.push(serde_json::json!({"type": kind, "status": status, "reason": reason, "message": "",
        "lastTransitionTime": stamp(now)}));
    Value::Array(all)
}

/// A time as objects have it.
pub fn stamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The finalizers without one of them.
pub fn without(object: &Value, finalizer: &str) -> Option<Vec<Value>> {
    let all = object["metadata"]["finalizers"].as_array()?;
    all.iter().any(|it| it == finalizer).then(|| all.iter().filter(|it| *it != finalizer).cloned().collect())
}

/// The id of the EBS volume behind a PersistentVolume of the EBS driver, or of Kubernetes' own plugin, whose
/// volumes the driver serves.
pub fn ebs_volume(volume: &Value) -> Option<&str> {
    let csi = &volume["spec"]["csi"];
    if csi["driver"] == EBS_DRIVER {
        return csi["volumeHandle"].as_str();
    }
    volume["spec"]["awsElasticBlockStore"]["volumeID"].as_str()?.rsplit('/').next()
}

/// The EC2 instance of a Kubernetes node.
pub fn instance_of(node: &Value) -> Option<&str> {
    node["spec"]["providerID"].as_str()?.strip_prefix("aws:///")?.split_once('/').map(|(_, id)| id)
}

//! The EBS CSI driver's provisioner: a claim of its StorageClass whose pod is to run on a Kubernetes node
//! gets an EBS volume in the zone of that, and its PersistentVolume.

use ec2sim::{Simulator, VolumeState};
use serde_json::{Value, json};

use super::driver::{CALLER, gib};
use super::due::Due;
use super::hand::{Hand, text};
use super::names::{EBS_DRIVER, SELECTED_NODE};
use super::seen::{Seen, is_going};
use crate::server::Server;

/// The label of the zone that the driver's own PersistentVolumes name.
const ZONE: &str = "topology.kubernetes.io/zone";

/// One look.
pub fn provision(server: &Server, ec2: &Simulator, seen: &Seen, due: &mut Due) {
    for claim in seen.claims.iter().filter(|claim| is_wanting(claim)) {
        let node = seen.node(text(&claim["metadata"]["annotations"][SELECTED_NODE]));
        let zone = node.map(|node| text(&node["metadata"]["labels"][ZONE])).unwrap_or_default();
        let class = text(&claim["spec"]["storageClassName"]);
        let class = server.object("storageclasses.storage.k8s.io", "", class);
        let Some(class) = class.filter(|class| class["provisioner"] == EBS_DRIVER && !zone.is_empty()) else {
            continue;
        };
        let name = format!("pvc-{}", text(&claim["metadata"]["uid"]));
        let made = ec2.volumes().into_iter().find(|it| it.tags.get("CSIVolumeName") == Some(&name));
        match made {
            None => create(ec2, claim, &name, zone),
            Some(made) if made.state == VolumeState::Available => {
                let record = record(claim, &class, &name, &made.id, zone);
                Hand::of(server, "external-provisioner").create("persistentvolumes", &record);
            }
            Some(_) => {}
        }
        due.soon(seen.now);
    }
}

/// A claim that has no volume yet, and whose pod waits for one.
fn is_wanting(claim: &Value) -> bool {
    let is_bound = claim["spec"]["volumeName"].as_str().is_some_and(|name| !name.is_empty());
    !is_bound && !is_going(claim) && claim["metadata"]["annotations"][SELECTED_NODE].is_string()
}

fn size_of(claim: &Value) -> i64 {
    gib(&claim["spec"]["resources"]["requests"]["storage"])
}

fn create(ec2: &Simulator, claim: &Value, name: &str, zone: &str) {
    let size = size_of(claim).to_string();
    let create = [
        ("Action", "CreateVolume"),
        ("ClientToken", name),
        ("AvailabilityZone", zone),
        ("Size", &size),
        ("VolumeType", "gp3"),
        ("TagSpecification.1.ResourceType", "volume"),
        ("TagSpecification.1.Tag.1.Key", "CSIVolumeName"),
        ("TagSpecification.1.Tag.1.Value", name),
    ];
    if let Err(error) = ec2.call(CALLER, &create) {
        tracing::debug!(name, ?error, "the volume of a claim is not made");
    }
}

/// The PersistentVolume as the external-provisioner makes it, but for its finalizer.
fn record(claim: &Value, class: &Value, name: &str, id: &str, zone: &str) -> Value {
    let metadata = &claim["metadata"];
    let file_system = class["parameters"]["csi.storage.k8s.io/fstype"].as_str().unwrap_or("ext4");
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": EBS_DRIVER}},
        "spec": {
            "accessModes": claim["spec"]["accessModes"],
            "capacity": {"storage": format!("{}Gi", size_of(claim))},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": metadata["name"],
                "namespace": metadata["namespace"], "uid": metadata["uid"]},
            "csi": {"driver": EBS_DRIVER, "volumeHandle": id, "fsType": file_system},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{
                "matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}],
            }]}},
            "persistentVolumeReclaimPolicy": class["reclaimPolicy"],
            "storageClassName": class["metadata"]["name"],
        },
    })
}

//! The objects that every box has: the EBS CSI driver's, a `StorageClass`, and one machine of the platform's
//! own.

use k8s_openapi::api::core::v1::Node;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::base::names::{EBS_DRIVER, HEARTBEAT_LABEL, HEARTBEAT_VALUE};
use crate::cluster::tools::KUBERNETES_VERSION;

/// The untainted Node on which everything runs that is not a database.
pub const PLATFORM_NODE: &str = "platform-0";

/// The `StorageClass` that PVs and PVCs name.
pub const STORAGE_CLASS: &str = "freehold";

/// Applies them all; again is harmless (a box with kept state has them already).
pub async fn apply(client: &Client) -> kube::Result<()> {
    for object in objects() {
        let object: DynamicObject = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
        let name = object.metadata.name.clone().unwrap_or_default();
        let types = object.types.clone().unwrap_or_default();
        let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
        let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
        api.patch(&name, &PatchParams::apply("freehold-box").force(), &Patch::Apply(&object)).await?;
    }
    let platform = Api::<Node>::all(client.clone());
    let status = json!({"status": machine_status("10.0.255.10", PLATFORM_NODE, 16, 64 * 1024)});
    platform.patch_status(PLATFORM_NODE, &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}

/// What a machine's kubelet says of it when it registers: addresses, processors, memory (MiB), and who it is.
pub fn machine_status(address: &str, host: &str, processors: u32, memory: u32) -> Value {
    let resources = json!({
        "cpu": processors.to_string(), "memory": format!("{memory}Mi"), "pods": "110",
        "ephemeral-storage": "20Gi",
    });
    json!({
        "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": host}],
        "capacity": resources, "allocatable": resources,
        "nodeInfo": {
            "architecture": "amd64", "operatingSystem": "linux", "kubeletVersion": KUBERNETES_VERSION,
            "bootID": "", "machineID": "", "systemUUID": "", "kernelVersion": "box",
            "osImage": "virtual machine of the box",
            "containerRuntimeVersion": "box://1", "kubeProxyVersion": "",
        },
    })
}

fn objects() -> [Value; 3] {
    [
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
            "metadata": {"name": EBS_DRIVER},
            "spec": {"attachRequired": true, "podInfoOnMount": false, "fsGroupPolicy": "File"},
        }),
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": STORAGE_CLASS},
            "provisioner": EBS_DRIVER,
            "allowVolumeExpansion": true,
            "reclaimPolicy": "Retain",
            "volumeBindingMode": "WaitForFirstConsumer",
        }),
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": PLATFORM_NODE, "labels": {HEARTBEAT_LABEL: HEARTBEAT_VALUE,
            "kubernetes.io/hostname": PLATFORM_NODE}},
            "spec": {},
        }),
    ]
}

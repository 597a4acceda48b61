//! Writes what the virtual kubelet decided. A failed write is only logged: the next look decides again.

use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client};
use serde_json::json;

use crate::cluster::virtual_kubelet::plan::Action;

/// Carries one action out. Every patch names the version that it was decided on, so a decision on an old view
/// changes nothing.
pub async fn act(client: &Client, action: Action) {
    let parameters = PatchParams::default();
    let result = match &action {
        Action::SetPodStatus { namespace, name, version, status } => {
            let patch = json!({"metadata": {"resourceVersion": version}, "status": status});
            let pods = Api::<Pod>::namespaced(client.clone(), namespace);
            pods.patch_status(name, &parameters, &Patch::Merge(patch)).await.map(drop)
        }
        Action::EndPod { namespace, name, uid } => {
            let parameters = DeleteParams {
                grace_period_seconds: Some(0),
                preconditions: Some(Preconditions { uid: Some(uid.clone()), resource_version: None }),
                ..DeleteParams::default()
            };
            Api::<Pod>::namespaced(client.clone(), namespace).delete(name, &parameters).await.map(drop)
        }
        Action::SetVolumesInUse { node, version, volumes } => {
            let patch = json!({"metadata": {"resourceVersion": version},
            "status": {"volumesInUse": volumes}});
            let nodes = Api::<Node>::all(client.clone());
            nodes.patch_status(node, &parameters, &Patch::Merge(patch)).await.map(drop)
        }
        Action::GrowFileSystem { namespace, claim, version, capacity } => {
            let patch = json!({
                "metadata": {"resourceVersion": version},
                "status": {"capacity": {"storage": capacity}, "conditions": null,
                "allocatedResourceStatuses": null},
            });
            let claims = Api::<PersistentVolumeClaim>::namespaced(client.clone(), namespace);
            claims.patch_status(claim, &parameters, &Patch::Merge(patch)).await.map(drop)
        }
    };
    match result {
        Ok(()) => {}
        // Decided on an old view, or ended by another client: the watch brings the new one.
        Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => {}
        Err(error) => tracing::warn!(?action, %error, "the virtual kubelet could not write"),
    }
}

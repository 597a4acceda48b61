//! What the virtual kubelet sees: all objects that it watches, at one moment.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Node, PersistentVolume, PersistentVolumeClaim, Pod, Secret};
use k8s_openapi::api::storage::v1::VolumeAttachment;

/// What the kubelet sees.
#[derive(Debug, Default)]
pub struct World {
    /// All pods.
    pub pods: Vec<Arc<Pod>>,
    /// All Nodes.
    pub nodes: Vec<Arc<Node>>,
    /// All PVCs.
    pub claims: Vec<Arc<PersistentVolumeClaim>>,
    /// All PVs.
    pub volumes: Vec<Arc<PersistentVolume>>,
    /// All Secrets.
    pub secrets: Vec<Arc<Secret>>,
    /// All `ConfigMaps`.
    pub config_maps: Vec<Arc<ConfigMap>>,
    /// All `VolumeAttachments`.
    pub attachments: Vec<Arc<VolumeAttachment>>,
}

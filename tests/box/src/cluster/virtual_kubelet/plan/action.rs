//! What the virtual kubelet writes.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::Value;

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A pod's status.
    SetPodStatus {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// The version that was seen.
        version: Option<String>,
        /// The fields to set.
        status: Value,
    },
    /// A deleted pod has ended: the object goes.
    EndPod {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its UID.
        uid: String,
    },
    /// A Node's list of volumes that the attach/detach controller must not take away yet.
    SetVolumesInUse {
        /// The Node.
        node: String,
        /// The version that was seen.
        version: Option<String>,
        /// Their unique names.
        volumes: Vec<String>,
    },
    /// The file system was grown to the volume's size.
    GrowFileSystem {
        /// Its namespace.
        namespace: String,
        /// The PVC.
        claim: String,
        /// The version that was seen.
        version: Option<String>,
        /// The new size.
        capacity: Quantity,
    },
}

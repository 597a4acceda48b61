//! What is wrong with the claim of an adopted database, as data. Pure.

/// Why no pod of an adopted database may be started with the claim that there is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum ClaimFault {
    /// It is gone, and is created again for its PersistentVolume.
    Gone,
    /// It is being deleted, which ends with the pod that uses it.
    BeingDeleted {
        /// The pod, if it goes on running.
        pod: Option<String>,
    },
    /// It is bound to another PersistentVolume, or to none: Kubernetes has made it for a pod.
    Other {
        /// That PersistentVolume; empty if there is none.
        found: String,
        /// The one that the Volume has adopted.
        wanted: String,
    },
}

impl ClaimFault {
    /// Whether nothing changes until a person acts.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Gone | Self::BeingDeleted { pod: None } => false,
            Self::BeingDeleted { pod: Some(_) } | Self::Other { .. } => true,
        }
    }
}

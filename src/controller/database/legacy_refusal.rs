//! Why a database that runs cannot be adopted, as data. Pure.

use super::pod::EngineWait;
use crate::api::{InstanceId, VolumeId};

/// Why the database that `spec.adopt` names cannot be adopted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum LegacyRefusal {
    /// `spec.running` is false.
    Paused,
    /// There is no StatefulSet of this name.
    NoStatefulSet(String),
    /// Another object controls the StatefulSet.
    Owned {
        /// The StatefulSet.
        set: String,
        /// Kind and name of the object.
        by: String,
    },
    /// The StatefulSet has none, or several replicas.
    Replicas {
        /// The StatefulSet.
        set: String,
        /// How many.
        replicas: i32,
    },
    /// There is no pod of the StatefulSet.
    NoPod(String),
    /// The pod does not accept connections.
    PodNotReady {
        /// The pod.
        pod: String,
        /// What it waits for.
        wait: EngineWait,
    },
    /// The pod runs on another instance than the spec names.
    OtherInstance {
        /// The Kubernetes node of the pod.
        core_node: String,
        /// The instance that its providerID names.
        found: String,
        /// The instance of the spec.
        wanted: InstanceId,
    },
    /// The Kubernetes node has no label of a zone.
    NoZone {
        /// The Kubernetes node.
        core_node: String,
    },
    /// The type of the instance is not in `spec.instanceTypes`.
    TypeNotListed(String),
    /// The pod does not mount the claim.
    ClaimNotUsed {
        /// The pod.
        pod: String,
        /// The claim.
        claim: String,
    },
    /// The pod has another volume besides that may keep data.
    SecondVolume {
        /// The pod.
        pod: String,
        /// The name of the other volume in the pod.
        volume: String,
    },
    /// The template has no container of the name that the spec gives.
    NoContainer {
        /// The StatefulSet.
        set: String,
        /// The name.
        container: String,
    },
    /// The engine's container does not mount the volume of the data.
    NotTheEngine {
        /// The pod.
        pod: String,
        /// The container.
        container: String,
    },
    /// The StatefulSet is being deleted.
    Deleted(String),
    /// The pod was created from an older template than the one that is there.
    OtherTemplate {
        /// The StatefulSet.
        set: String,
        /// The pod.
        pod: String,
    },
    /// The zone is not in `spec.zones`.
    ZoneExcluded(String),
    /// The claim is not bound.
    ClaimNotBound {
        /// The claim.
        claim: String,
    },
    /// The claim's EBS volume is another one than the spec names.
    OtherVolume {
        /// The PersistentVolume of the claim.
        persistent_volume: String,
        /// Its EBS volume; empty if it has none.
        found: String,
        /// The EBS volume of the spec.
        wanted: VolumeId,
    },
    /// There is no Service of this name.
    NoService(String),
    /// There is no Secret of this name.
    NoSecret(String),
    /// The Secret cannot be read.
    SecretForbidden {
        /// The Secret.
        secret: String,
        /// What the API server answered.
        answer: String,
    },
}

impl LegacyRefusal {
    /// Whether nothing changes until a person acts: a pod that is not ready may become so.
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::NoPod(_) | Self::PodNotReady { .. })
    }
}

//! Why the instance that a Node's spec names is not this Node's yet. Pure.

use crate::api::{InstanceId, Reason};

/// What the adoption of an instance waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum AdoptionWait {
    /// EC2 was not requested to show the instance yet: the rate limit does not allow the call.
    NotRead(InstanceId),
    /// The instance cannot be adopted.
    Refused {
        /// The instance.
        id: InstanceId,
        /// Why.
        cause: AdoptionRefusal,
    },
    /// The instance is stopped.
    NotRunning(InstanceId),
    /// The adoption is being recorded and the instance tagged.
    Adopting(InstanceId),
    /// The instance is being tagged again.
    Tagging(InstanceId),
    /// EC2 does not show the new tags yet.
    TagsNotShown(InstanceId),
    /// No Kubernetes node of the instance was found.
    NoKubernetesNode {
        /// The instance.
        id: InstanceId,
        /// What the Kubernetes node has as its providerID.
        provider_id: String,
    },
}

/// Why an instance cannot be adopted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum AdoptionRefusal {
    /// EC2 does not know it.
    NotFound,
    /// It carries neither the tag with this value nor this Node's own. Whose tag it carries instead is not
    /// for the tenant of this Node.
    NoTag {
        /// The value.
        wanted: String,
    },
    /// It carries the tag of another cluster.
    OtherCluster,
    /// It carries the tag of another Node.
    OtherNode,
    /// It is in another zone than the volume.
    Zone {
        /// Its zone.
        instance: String,
        /// The zone of the volume.
        volume: String,
    },
    /// It is terminated, or about to be.
    Ended,
}

impl AdoptionWait {
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::NotRead(_) | Self::Adopting(_) | Self::Tagging(_) | Self::TagsNotShown(_) => {
                Reason::Adopting
            }
            Self::Refused { .. } => Reason::AdoptionRefused,
            Self::NotRunning(_) => Reason::InstanceStopped,
            Self::NoKubernetesNode { .. } => Reason::AwaitingRegistration,
        }
    }
}

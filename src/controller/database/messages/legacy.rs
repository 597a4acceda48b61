//! The sentences for why a database that runs cannot be adopted. Pure.

use crate::api::keys::ZONE_LABEL;
use crate::controller::database::claim_fault::ClaimFault;
use crate::controller::database::legacy_refusal::LegacyRefusal;

/// The StatefulSet was deleted, and cannot be created again by the operator.
pub fn not_recreatable(set: &str, answer: &str) -> String {
    format!(
        "StatefulSet {set} was deleted outside Freehold, and the API server rejects that Freehold creates it \
         again as it was found ({answer}). Create it from status.adoption.statefulSet of this Database, as \
         docs/adopt.md says; Freehold adopts it again"
    )
}

impl ClaimFault {
    /// What is wrong with this claim, and the way out.
    pub fn message(&self, claim: &str) -> String {
        match self {
            Self::Gone => format!(
                "PersistentVolumeClaim {claim} does not exist any more; it is created again for its \
                 PersistentVolume, and no pod is started before it is bound"
            ),
            Self::BeingDeleted { pod: None } => format!(
                "PersistentVolumeClaim {claim} was deleted outside Freehold; once it is gone, it is created \
                 again for its PersistentVolume, and then the pod is started"
            ),
            Self::BeingDeleted { pod: Some(pod) } => format!(
                "PersistentVolumeClaim {claim} was deleted outside Freehold, which cannot be undone, and ends \
                 when pod {pod} does, which goes on running. Set spec.running to false at a quiet hour, \
                 and to true again when the database is paused: Freehold creates the claim again for its \
                 PersistentVolume, and starts the pod with the same data"
            ),
            Self::Other { found, wanted } => {
                let (bound, first) = match found.as_str() {
                    "" => ("no PersistentVolume".to_owned(), String::new()),
                    found => (
                        format!("PersistentVolume {found}"),
                        format!(", which may delete PersistentVolume {found} with all that it holds"),
                    ),
                };
                format!(
                    "PersistentVolumeClaim {claim} is bound to {bound}, and the data is in PersistentVolume \
                     {wanted}: Kubernetes or another client created the claim when the one of the data was \
                     gone, and no pod is started with it. Delete this claim{first}; Freehold creates it \
                     again for PersistentVolume {wanted}, and starts the pod"
                )
            }
        }
    }
}

impl LegacyRefusal {
    /// Why, and the way out. Nothing was changed.
    pub fn message(&self) -> String {
        match self {
            Self::Paused => "spec.running is false: a database that is adopted goes on running. Set \
                spec.running to true; pause the database when it is adopted"
                .to_owned(),
            Self::NoStatefulSet(name) => format!(
                "StatefulSet {name} (spec.adopt.statefulSetName) does not exist in this namespace: delete \
                 this Database, and create it with the name of the StatefulSet that runs"
            ),
            Self::Owned { set, by } => format!(
                "StatefulSet {set} is controlled by {by}, which would change back what Freehold changes: \
                 remove its owner reference in the way that its owner documents, then Freehold goes on"
            ),
            Self::Replicas { set, replicas } => format!(
                "StatefulSet {set} has {replicas} replicas: only one with exactly 1 replica is adopted, since \
                 one database has one volume. Scale it to 1"
            ),
            Self::NoPod(pod) => format!("waiting for pod {pod} of the StatefulSet that is to be adopted"),
            Self::PodNotReady { pod, wait } => format!(
                "pod {pod} is adopted only while it accepts connections, so that it is known to have run \
                 as it is: {}",
                wait.message()
            ),
            Self::OtherInstance { core_node, found, wanted } => format!(
                "the pod runs on Kubernetes node {core_node}, which is instance {found:?}, and \
                 spec.adopt.instanceID is {wanted}: delete this Database, and create it with the instance \
                 that the pod runs on"
            ),
            Self::NoZone { core_node } => format!(
                "Kubernetes node {core_node} has no label {ZONE_LABEL}: the cloud controller manager sets it; add \
                 it with the zone of the instance"
            ),
            Self::TypeNotListed(found) => format!(
                "the instance is of type {found}, which spec.instanceTypes does not list: the database would \
                 be moved to another machine at once. Add {found} to spec.instanceTypes"
            ),
            Self::ClaimNotUsed { pod, claim } => format!(
                "pod {pod} does not mount claim {claim} (spec.adopt.claimName): delete this Database, and \
                 create it with the claim that holds the data"
            ),
            Self::SecondVolume { pod, volume } => format!(
                "pod {pod} has volume {volume} besides the claim of spec.adopt.claimName, which may hold data, \
                 too: a database with more than one volume cannot be adopted"
            ),
            Self::NotTheEngine { pod, container } => format!(
                "container {container} of pod {pod} is taken for the engine, and does not mount the claim of \
                 spec.adopt.claimName: delete this Database, and create it with the engine's container as \
                 spec.adopt.containerName"
            ),
            Self::NoContainer { set, container } => format!(
                "StatefulSet {set} has no container {container} (spec.adopt.containerName): delete this \
                 Database, and create it with the name of the engine's container"
            ),
            Self::Deleted(set) => format!("StatefulSet {set} is being deleted"),
            Self::OtherTemplate { set, pod } => format!(
                "pod {pod} was created from an older template than the one of StatefulSet {set}, which has never \
                 run: restart the pod, or set the template back, then Freehold goes on"
            ),
            Self::ZoneExcluded(zone) => {
                format!("the instance is in {zone}, which spec.zones does not list: add {zone} to spec.zones")
            }
            Self::ClaimNotBound { claim } => {
                format!("claim {claim} (spec.adopt.claimName) is not bound to a PersistentVolume")
            }
            Self::OtherVolume { persistent_volume, found, wanted } => format!(
                "PersistentVolume {persistent_volume} of the claim names EBS volume {found:?}, and \
                 spec.adopt.volumeID is {wanted}: delete this Database, and create it with the volume of the \
                 claim"
            ),
            Self::NoService(name) => format!(
                "Service {name} (spec.adopt.serviceName) does not exist in this namespace: delete this \
                 Database, and create it with the Service that clients use"
            ),
            Self::NoSecret(name) => format!(
                "Secret {name} (spec.adopt.credentialsSecretName) does not exist in this namespace: delete \
                 this Database, and create it with the Secret of the credentials, or without the line"
            ),
            Self::SecretForbidden { secret, answer } => format!(
                "the operator is not allowed to read Secret {secret} ({answer}); grant the permission again"
            ),
        }
    }
}

//! The sentences that more than one kind reports. Pure.

use super::blocker::{Blocker, DuplicateKept};
use super::call_blocked::CallBlocked;
use crate::api::creation::Refusal;
use crate::api::node::ReplacementCause;
use crate::api::{InstanceId, VolumeId};
use crate::cloud::Class;
use crate::cloud::quota::Quota;
use crate::time::whole_second;

/// Condition Stalled, when it is false.
pub const NOT_STALLED: &str = "no manual action required";
/// A condition after the first one that is not true.
pub const EARLIER_STEP: &str = "waiting for an earlier step";
/// The wait for the first full sync.
pub const FIRST_SYNC: &str = "waiting for the first full EC2 inventory sync since the operator started";

/// What EC2 answered.
pub fn answer(refusal: &Refusal) -> String {
    format!("{} ({})", refusal.code, refusal.message)
}

/// A quota of the AWS account is reached, which these instance types count against.
pub fn quota_reached(quota: &Quota, types: &[String]) -> String {
    let counted = match quota {
        Quota::Account => {
            return "AWS has not verified the AWS account yet, and refuses to create anything in it; retrying \
                automatically"
                .to_owned();
        }
        Quota::Vcpus(families) => format!("vCPUs of running On-Demand {families} instances"),
        Quota::Storage(volume_type) => format!("storage of {volume_type} volumes"),
        Quota::Iops(volume_type) => format!("IOPS of {volume_type} volumes"),
    };
    let types = if types.is_empty() { String::new() } else { format!(" ({})", types.join(", ")) };
    format!(
        "AWS account quota reached: {counted}{types}; request an increase from AWS, or ask for less. \
        Retrying automatically"
    )
}

/// No Node claims this instance, to which these EBS volumes are attached.
pub fn unclaimed_instance(id: &InstanceId, volumes: &[VolumeId]) -> String {
    let volumes: Vec<&str> = volumes.iter().map(|volume| volume.0.as_str()).collect();
    let attached = if volumes.is_empty() { String::new() } else { format!(", with {}", volumes.join(", ")) };
    format!(
        "EC2 lists instance {id}{attached}, whose Node does not exist; `freehold orphans` shows what depends on \
        it. Freehold does not end it"
    )
}

/// No Volume and no retention record claims this EBS volume.
pub fn unclaimed_volume(id: &VolumeId) -> String {
    format!(
        "EC2 lists EBS volume {id}, whose Volume does not exist, and no retention record names it; `freehold \
        orphans` shows what depends on it. Freehold does not delete it"
    )
}

/// How many machines were replaced before another one.
pub fn machines_were(count: i32) -> String {
    match count {
        1 => "1 machine of this database was".to_owned(),
        count => format!("{count} machines of this database were"),
    }
}

/// A write of this pass failed, with this error.
pub fn step_failed(error: &str) -> String {
    format!("a step failed and will be retried: {error}")
}

impl CallBlocked {
    /// For the conditions.
    pub fn message(&self) -> String {
        match self {
            Self::RateLimited { .. } => {
                "the operator's own rate limit for calls to EC2 is reached; the namespaces take turns"
                    .to_owned()
            }
            Self::Refused { error, until: Some(until), .. } if error.class == Class::ModificationBudget => {
                format!("{error} (the call is made again after {})", whole_second(*until))
            }
            Self::Refused { error, .. } => error.to_string(),
            Self::RepairPostponed { loss, blocker, .. } => format!("{loss}; {}", blocker.message()),
        }
    }
}

impl ReplacementCause {
    /// Why the machine of this Kubernetes node must be replaced.
    fn message(self, core_node: &str) -> String {
        match self {
            Self::KubernetesNodeDeleted => {
                format!("Kubernetes node {core_node} is being deleted outside Freehold")
            }
            Self::EventScheduled => {
                format!("EC2 has scheduled an event for the machine of Kubernetes node {core_node}")
            }
            Self::Cordoned => format!("Kubernetes node {core_node} was cordoned outside Freehold"),
            Self::Unknown => format!("the machine of Kubernetes node {core_node} must be replaced"),
        }
    }
}

impl Blocker {
    /// For the conditions: what is awaited, with names.
    pub fn message(&self) -> String {
        match self {
            Self::PodsRemain(pods) => format!(
                "pods still run on the machine: {}; it is terminated all the same when they do not end within \
                --kubelet-silence-timeout after their grace",
                pods.join(", ")
            ),
            Self::NotDetached(attachments) => {
                format!(
                    "the EBS CSI driver has not detached every volume: {}; the machine is terminated all the \
                    same after --kubelet-silence-timeout",
                    attachments.join(", ")
                )
            }
            Self::StillAttached(ids) => format!("EC2 still shows volumes attached: {}", list(ids)),
            Self::DatabaseRuns { core_node, until: Some(until) } => format!(
                "a database runs on {core_node}: its move to another machine is awaited, until {until} at \
                    the latest"
            ),
            Self::DatabaseRuns { core_node, until: None } => format!(
                "a database runs on {core_node}: its move to another machine is awaited. To end the machine \
                    without one, pause the Database or delete it"
            ),
            Self::FleetPartial => {
                "repair postponed: the Nodes of every watched namespace have not been listed yet since the \
                operator started"
                    .to_owned()
            }
            Self::RepairsAtLimit { underway, limit } => {
                format!(
                    "repair postponed: the lost machines of {underway} databases are already being stopped \
                    (limit {limit})"
                )
            }
            Self::NamespaceRepairsAtLimit { underway, limit } => format!(
                "repair postponed: the lost machines of {underway} databases of this namespace are already \
                being stopped (limit {limit} while other namespaces have databases)"
            ),
            Self::ReplacementsAtLimit { cause, core_node, underway, limit } => format!(
                "{}; replacement postponed: the machines of {underway} databases, which serve, too, are \
                already being replaced (limit {limit}). The database runs on",
                cause.message(core_node)
            ),
            Self::InventoryOld => {
                "repair postponed: the last full EC2 inventory sync is too long ago".to_owned()
            }
            Self::NoKubeletReports => {
                "repair postponed: no kubelet of any database's machine reports to this API server, so the \
                API server may be cut off from the machines, or be a copy of the one that they report to. \
                The repair begins when a kubelet reports. If the machine is lost for certain, and this is no \
                copy, delete this Node: its machine is terminated, and another launched"
                    .to_owned()
            }
            Self::ZoneRefused => "repair postponed: EC2 refuses to list the zone of the machine".to_owned(),
            Self::ZoneDown { joined, lost } => format!(
                "repair postponed: {lost} of the {joined} machines of the zone look lost, so the zone itself \
                may be down"
            ),
            Self::ZoneRecovering(until) => format!(
                "repair postponed: the zone of the machine recently looked unavailable, and its machines may \
                come back until {until}"
            ),
            Self::Duplicate(id, kept) => format!(
                "a second instance {id} of this Node is left alone, since {}: check it and terminate it by \
                    hand",
                kept.message()
            ),
            Self::SnapshotTagMissing { id, key, value } => format!(
                "snapshot {id} does not carry the tag {key}={value}: restore the tag, or set \
                spec.deletionPolicy to Retain"
            ),
            Self::TagMissing { id, key, value } => format!(
                "EBS volume {id} does not carry the tag {key}={value}, so it is not deleted: put the tag \
                back or delete it by hand"
            ),
            Self::NotAvailable(id, state) => {
                format!("EBS volume {id} is not available yet ({state:?}): a machine may still write to it")
            }
            Self::Released(id) => format!(
                "EBS volume {id} was adopted and is released: it is not deleted while spec.release is true"
            ),
            Self::PodStopping(name) => format!("pod {name} is stopping"),
            Self::PodRuns(name) => format!("pod {name} still runs"),
            Self::StatefulSetRuns(name) => format!("StatefulSet {name} is not seen to be stopped yet"),
            Self::NotFenced { node, message, .. } => format!(
                "nothing moves before Node {node} is fenced: {}",
                message.as_deref().unwrap_or("EC2 has not shown that nothing on it can write any more")
            ),
            Self::ChangeNotSeen(name) => {
                format!("the change of StatefulSet {name} is not seen by its controller yet")
            }
        }
    }
}

impl DuplicateKept {
    fn message(self) -> &'static str {
        match self {
            Self::ForeignToken => {
                "its client token is not one of this Node's, so it may have been launched outside Freehold"
            }
            Self::Database => "a database may run on it",
            Self::DataVolume => "a data volume is attached to it",
        }
    }
}

fn list(ids: &[VolumeId]) -> String {
    ids.iter().map(|id| id.0.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;

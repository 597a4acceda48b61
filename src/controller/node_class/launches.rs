//! The launches of a NodeClass' Nodes, and whether EC2 ends them, as it does where the KMS key may not be
//! used. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::node_class_status::EndedLaunch;
use crate::api::{ConditionType, InstanceId, Node};
use crate::cloud::{Class, error};
use crate::controller::conditions;

/// The newest launch of a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// When it was decided.
    pub started_at: Timestamp,
    /// The instance type.
    pub instance_type: String,
    /// The KMS key of its disks.
    pub kms_key_id: Option<String>,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The instance ran.
    Ran,
    /// EC2 ended the instance for want of a permission, most often that to use the KMS key (EC2 user guide,
    /// "Troubleshoot instance termination", `Client.InternalError`).
    Ended(InstanceId),
    /// Neither is known.
    Unknown,
}

/// The newest launch of a Node, whose instance EC2 shows with this reason of its state.
pub fn of(node: &Node, state_reason: Option<&str>) -> Option<Launch> {
    let status = node.status.as_ref()?;
    let creation = status.creation.as_ref()?;
    let is_forbidden = state_reason.and_then(error::launch_failure) == Some(Class::Forbidden);
    let outcome = match &status.instance_id {
        Some(id) if is_forbidden => Outcome::Ended(id.clone()),
        Some(_) if conditions::is_true(&status.conditions, ConditionType::Launched) => Outcome::Ran,
        Some(_) | None => Outcome::Unknown,
    };
    Some(Launch {
        started_at: creation.attempt.started_at.0,
        instance_type: creation.instance_type.clone(),
        kms_key_id: creation.kms_key_id.clone(),
        outcome,
    })
}

/// The newest launch with this key, if EC2 ended it; `known` is the one that was known before, which EC2 may
/// not show any more.
pub fn ended(
    kms_key_id: Option<&String>,
    known: Option<&EndedLaunch>,
    launches: &[Launch],
) -> Option<EndedLaunch> {
    let with_key = launches.iter().filter(|launch| launch.kms_key_id.as_ref() == kms_key_id);
    let newest = with_key
        .filter(|launch| launch.outcome != Outcome::Unknown)
        .filter(|launch| known.is_none_or(|known| launch.started_at > known.launched_at.0))
        .max_by_key(|launch| launch.started_at);
    match newest.map(|launch| (&launch.outcome, launch.started_at)) {
        Some((Outcome::Ended(id), at)) => {
            Some(EndedLaunch { instance_id: id.clone(), launched_at: Time(at) })
        }
        Some((Outcome::Ran, _)) => None,
        Some((Outcome::Unknown, _)) | None => known.cloned(),
    }
}

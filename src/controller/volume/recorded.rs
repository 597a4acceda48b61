//! What the status of a Volume records for the next plan, also when an older operator wrote it. Pure.
//!
//! An operator before `status.modificationRefused` and `status.lostSince` said both in its conditions only,
//! and such an operator may run again after a rollback: it writes the conditions and leaves the fields as
//! they are. So a field counts only while the condition agrees. This is the one place of the Volume
//! controller that reads a condition's reason.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::api::volume::ModificationRefusal;
use crate::api::{ConditionType, Reason, VolumeStatus};
use crate::controller::conditions;

/// EC2's refusal of the modification that the spec of this generation asks for.
pub fn modification_refused(status: &VolumeStatus, generation: Option<i64>) -> Option<ModificationRefusal> {
    let modified = conditions::find(&status.conditions, ConditionType::Modified)
        .filter(|modified| modified.status == "False")?;
    let is_of_this_spec = |refusal: &ModificationRefusal| Some(refusal.generation) == generation;
    let field = status.modification_refused.clone().filter(is_of_this_spec);
    field.or_else(|| refusal_of_condition(modified).filter(is_of_this_spec))
}

/// Since when the EBS volume counts as lost.
pub fn lost_since(status: &VolumeStatus) -> Option<Time> {
    let stalled = conditions::find(&status.conditions, ConditionType::Stalled)
        .filter(|stalled| stalled.status == "True")?;
    status.lost_since.clone().or_else(|| {
        (stalled.reason == Reason::VolumeLost.as_str()).then(|| stalled.last_transition_time.clone())
    })
}

fn refusal_of_condition(modified: &Condition) -> Option<ModificationRefusal> {
    let is_refused = modified.reason == Reason::ModificationRefused.as_str();
    let generation = modified.observed_generation.filter(|_| is_refused)?;
    Some(ModificationRefusal { generation, message: modified.message.clone() })
}

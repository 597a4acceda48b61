//! The plan of a Node whose instance ran before it was adopted: identified by two proofs, recorded, tagged.
//! Nothing is launched in its place. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::action::{Action, Plan};
use super::facts::owner_of;
use crate::api::InstanceId;
use crate::api::keys::{ADOPT_TAG, CLUSTER_ID_TAG, NODE_UID_TAG};
use crate::cloud::{Instance, InstanceState, identity};
use crate::controller::memory::issued_requests::{Again, again};
use crate::controller::node::observe::Observed;
use crate::controller::node::wait::NodeWait;
use crate::controller::node::wait::adoption::{AdoptionRefusal, AdoptionWait};
use crate::controller::node::wait::launch::LaunchWait;

/// What EC2 shows of this id, in the inventory or when it was requested by the id: one instance or none.
/// `None` if EC2 was not requested to show it.
pub(super) fn shown<'a>(observed: &'a Observed, id: &InstanceId) -> Option<&'a [Instance]> {
    match observed.instances.by_id(id) {
        Some(instance) => Some(std::slice::from_ref(instance)),
        None => observed.shown_by_id.as_deref(),
    }
}

/// Whether an instance carries the tags that this Node's controller puts on it.
pub(super) fn is_tagged(observed: &Observed, instance: &Instance) -> bool {
    let tag = |key: &str| instance.tags.get(key).map(String::as_str);
    tag(CLUSTER_ID_TAG) == Some(observed.cluster_id.as_str())
        && tag(NODE_UID_TAG) == observed.node.metadata.uid.as_deref()
}

/// The tags that make an instance this Node's.
pub(super) fn tags(observed: &Observed) -> BTreeMap<String, String> {
    identity::ownership_tags(&owner_of(observed))
}

/// The status does not name the instance of the spec: it is adopted, or the plan says why not.
pub(super) fn take(observed: &Observed, id: &InstanceId) -> Plan {
    let Some(shown) = shown(observed, id) else { return not_read(observed, id) };
    let Some(instance) = shown.first() else { return refused(observed, id, AdoptionRefusal::NotFound) };
    if let Err(cause) = is_allowed(observed, instance) {
        return refused(observed, id, cause);
    }
    // The status was lost: whatever became of the instance since, it is this Node's.
    if is_tagged(observed, instance) {
        let actions = vec![Action::RecordInstance(id.clone())];
        return Plan::act(actions, LaunchWait::Adopted(id.clone())).pending();
    }
    if let Some(volume) = observed.node.spec.zone.as_ref().filter(|zone| **zone != instance.zone) {
        let (instance, volume) = (instance.zone.clone(), volume.clone());
        return refused(observed, id, AdoptionRefusal::Zone { instance, volume });
    }
    match instance.state {
        InstanceState::Pending | InstanceState::Running => {
            let actions = vec![Action::Adopt(id.clone(), tags(observed))];
            Plan::act(actions, AdoptionWait::Adopting(id.clone())).pending()
        }
        InstanceState::Stopping | InstanceState::Stopped => not_running(observed, id),
        InstanceState::ShuttingDown | InstanceState::Terminated => {
            refused(observed, id, AdoptionRefusal::Ended)
        }
        InstanceState::Unknown => {
            let plan = Plan::wait(LaunchWait::UnknownState(id.clone()));
            Plan { requeue: Some(observed.timing.requeue_interval.saturating_mul(12)), ..plan }
        }
    }
}

/// The second proof beside the id, which a tenant can write: only who may tag in EC2 can have put the tag of
/// adoption there. What is another's is never taken.
pub(super) fn is_allowed(observed: &Observed, instance: &Instance) -> Result<(), AdoptionRefusal> {
    let differs = |key: &str, own: &str| instance.tags.get(key).is_some_and(|value| value != own);
    if differs(CLUSTER_ID_TAG, &observed.cluster_id) {
        return Err(AdoptionRefusal::OtherCluster);
    }
    if differs(NODE_UID_TAG, observed.node.metadata.uid.as_deref().unwrap_or_default()) {
        return Err(AdoptionRefusal::OtherNode);
    }
    let wanted = identity::adopter(&observed.cluster_id, &owner_of(observed).database);
    if is_tagged(observed, instance) || instance.tags.get(ADOPT_TAG) == Some(&wanted) {
        return Ok(());
    }
    Err(AdoptionRefusal::NoTag { wanted })
}

/// The status names the adopted instance, and the inventory does not show it with this Node's tags: the same
/// call again, until it does. `None` if it was not adopted, or EC2 does not know it.
pub(super) fn untagged(observed: &Observed, id: &InstanceId, now: Timestamp) -> Option<Plan> {
    observed.node.spec.instance_id.as_ref().filter(|named| *named == id)?;
    let Some(shown) = shown(observed, id) else { return Some(not_read(observed, id).pending()) };
    let instance = shown.first()?;
    if let Err(cause) = is_allowed(observed, instance) {
        return Some(refused(observed, id, cause).pending());
    }
    let interval = observed.timing.requeue_interval;
    let plan = match again(observed.issued_tags.as_ref(), observed.instances.swept_at, interval, now) {
        // Those that it carries already are only not in the inventory yet.
        Again::Now if !is_tagged(observed, instance) => {
            let actions = vec![Action::Tag(id.clone(), tags(observed))];
            Plan::act(actions, AdoptionWait::Tagging(id.clone()))
        }
        Again::Now | Again::OnceShown => Plan::wait(AdoptionWait::TagsNotShown(id.clone())),
        Again::Later(call_blocked, until) => {
            Plan::wait(NodeWait::CallBlocked(call_blocked.clone())).until(until, now)
        }
    };
    Some(plan.pending())
}

/// The instance is stopped. It is neither started, which the operator may not, nor terminated.
pub(super) fn not_running(observed: &Observed, id: &InstanceId) -> Plan {
    let plan = Plan::wait(AdoptionWait::NotRunning(id.clone()));
    Plan { requeue: Some(observed.timing.requeue_interval.saturating_mul(12)), ..plan }
}

/// EC2 could not be requested to show the instance in this pass.
pub(super) fn not_read(observed: &Observed, id: &InstanceId) -> Plan {
    let plan = Plan::wait(AdoptionWait::NotRead(id.clone()));
    Plan { requeue: Some(observed.timing.requeue_interval), ..plan }
}

fn refused(observed: &Observed, id: &InstanceId, cause: AdoptionRefusal) -> Plan {
    let plan = Plan::wait(AdoptionWait::Refused { id: id.clone(), cause });
    Plan { requeue: Some(observed.timing.requeue_interval.saturating_mul(12)), ..plan }
}

//! The plan for other live instances with the UID of a Node. Pure.

use jiff::Timestamp;

use super::action::Action;
use super::facts::{again_to_terminate, is_own};
use crate::api::{InstanceId, NodeStatus};
use crate::cloud::Instance;
use crate::controller::blocker::Blocker;
use crate::controller::memory::issued_requests::Again;
use crate::controller::node::messages;
use crate::controller::node::observe::Observed;
use crate::controller::node::registration::is_live;
use crate::controller::safety;

/// Whether the instance has only the tags of this Node: no attempt launched it, and neither spec nor status
/// names it.
pub(in crate::controller::node) fn is_foreign(observed: &Observed, instance: &Instance) -> bool {
    let status = observed.node.status.as_ref();
    let is_named = |id: Option<&InstanceId>| id == Some(&instance.id);
    !is_own(observed, instance)
        && !is_named(observed.node.spec.instance_id.as_ref())
        && !is_named(status.and_then(|status| status.instance_id.as_ref()))
}

/// Other live instances that this Node launched.
#[derive(Default)]
pub(super) struct Duplicates {
    /// They are terminated where that is safe.
    pub actions: Vec<Action>,
    /// Some are not seen terminated yet.
    pub are_leaving: bool,
    /// Some are left alone.
    pub blockers: Vec<Blocker>,
}

/// Finds them, and says which of them may be terminated.
pub(super) fn duplicates(observed: &Observed, status: &NodeStatus, now: Timestamp) -> Duplicates {
    let mut found = Duplicates::default();
    let Some(kept) = observed.node.spec.instance_id.as_ref().or(status.instance_id.as_ref()) else {
        return found;
    };
    let is_other = |it: &&Instance| is_live(it) && it.id != *kept && !is_foreign(observed, it);
    for instance in observed.instances.instances.iter().filter(is_other) {
        if let Err(blocker) = safety::may_terminate_duplicate(
            instance,
            is_own(observed, instance),
            observed.core_node_of(instance),
            &observed.data_volumes,
        ) {
            found.blockers.push(blocker);
            continue;
        }
        found.are_leaving = true;
        if again_to_terminate(observed, &instance.id, now) == Again::Now {
            let why = messages::events::second_instance(kept);
            found.actions.push(Action::Terminate(instance.id.clone(), why));
        }
    }
    found
}

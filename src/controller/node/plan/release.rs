//! The plan of a Node that is deleted, and whose adopted instance goes on running: what Freehold has put on
//! its Kubernetes node and on the instance is taken off. Pure.

use jiff::Timestamp;

use super::action::{Action, Plan};
use super::adoption;
use super::facts::proven_absent;
use crate::api::InstanceId;
use crate::controller::memory::issued_requests::{Again, again};
use crate::controller::node::observe::Observed;
use crate::controller::node::registration::{is_live, is_marked};
use crate::controller::node::wait::NodeWait;
use crate::controller::node::wait::deletion::DeletionWait;
use crate::time::later;

/// First the Kubernetes node, which is found by the tags of the instance, then those, then the finalizer.
pub(super) fn plan(observed: &Observed, id: &InstanceId, now: Timestamp) -> Plan {
    let marked = observed.core_node.as_ref().filter(|core_node| is_marked(core_node));
    let mut actions: Vec<Action> =
        marked.map(|core_node| Action::RestoreCoreNode(Box::new(core_node.clone()))).into_iter().collect();
    let Some(shown) = adoption::shown(observed, id) else {
        return Plan { actions, ..adoption::not_read(observed, id) };
    };
    // Of one that has ended there is nothing to take off.
    let live = shown.iter().find(|instance| is_live(instance));
    let is_tagged = live.is_some_and(|instance| adoption::is_tagged(observed, instance));
    let releasing = DeletionWait::Releasing(id.clone());
    if is_tagged {
        let interval = observed.timing.requeue_interval;
        return match again(observed.issued_untags.as_ref(), observed.instances.swept_at, interval, now) {
            Again::Now => {
                actions.push(Action::Untag(id.clone(), adoption::tags(observed)));
                Plan::act(actions, releasing)
            }
            Again::OnceShown => Plan::act(actions, releasing),
            Again::Later(call_blocked, until) => {
                Plan::act(actions, NodeWait::CallBlocked(call_blocked.clone())).until(until, now)
            }
        }
        .pending();
    }
    if live.is_some() && may_be_tagged_yet(observed) {
        return Plan::act(actions, releasing).pending();
    }
    // That EC2 does not show it for a moment is no proof that it has ended, and it would keep the tags.
    let is_recorded = observed.node.status.as_ref().is_some_and(|status| status.instance_id.is_some());
    if shown.is_empty() && is_recorded && proven_absent(observed, None).is_none() {
        return Plan::act(actions, DeletionWait::Absence(id.clone())).pending();
    }
    actions.push(Action::RemoveFinalizer);
    Plan::act(actions, if live.is_some() { DeletionWait::Released(id.clone()) } else { DeletionWait::Gone })
}

/// Whether tags may have been requested that EC2 does not show yet: it shows them late.
fn may_be_tagged_yet(observed: &Observed) -> bool {
    let is_recorded = observed.node.status.as_ref().is_some_and(|status| status.instance_id.is_some());
    let is_taken_off = observed.issued_untags.as_ref().is_some_and(|issued| issued.call_blocked.is_none());
    let requested = observed.issued_tags.as_ref().map_or(observed.process_started, |issued| issued.at);
    let shows_from = later(requested, observed.timing.requeue_interval);
    is_recorded && !is_taken_off && observed.instances.swept_at.is_none_or(|swept_at| swept_at <= shows_from)
}

//! The plan of a Node that is deleted, and whose instance goes on running without Freehold: what Freehold has
//! put on its Kubernetes node, on the instance and on what was launched with it is taken off. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::action::{Action, Plan};
use super::adoption;
use super::facts::{has_lost_adoption, may_have_an_instance, proven_absent};
use crate::api::InstanceId;
use crate::api::keys::ATTEMPT_TAG;
use crate::cloud::Instance;
use crate::controller::memory::issued_requests::{Again, again};
use crate::controller::node::observe::Observed;
use crate::controller::node::registration::{is_live, is_marked, is_tainted};
use crate::controller::node::wait::NodeWait;
use crate::controller::node::wait::deletion::DeletionWait;
use crate::time::later;

/// First the Kubernetes node, which is found by the tags of the instance, then those, then the finalizer.
pub(super) fn plan(observed: &Observed, id: &InstanceId, now: Timestamp) -> Plan {
    let marked = observed.core_node.as_ref().filter(|core_node| is_marked(&observed.node, core_node));
    let mut actions: Vec<Action> =
        marked.map(|core_node| Action::RestoreCoreNode(Box::new(core_node.clone()))).into_iter().collect();
    let Some(shown) = adoption::shown(observed, id) else {
        return Plan { actions, ..adoption::not_read(observed, id) };
    };
    // Of one that has ended there is nothing to take off.
    let live = shown.iter().find(|instance| is_live(instance));
    if let Some(plan) = unreadable(observed, id, now).filter(|_| live.is_some()) {
        return Plan { actions, ..plan };
    }
    let tagged = live.map_or(Tagged::Nothing, |instance| tagged(observed, instance));
    let releasing = DeletionWait::Releasing(id.clone());
    match tagged {
        Tagged::Nothing => {}
        Tagged::NotShownYet => return Plan::act(actions, releasing).pending(),
        Tagged::Resources(resources, tags) => {
            let interval = observed.timing.requeue_interval;
            return match again(observed.issued_untags.as_ref(), observed.instances.swept_at, interval, now) {
                Again::Now => {
                    actions.push(Action::Untag(id.clone(), resources, tags));
                    Plan::act(actions, releasing)
                }
                Again::OnceShown => Plan::act(actions, releasing),
                Again::Later(call_blocked, until) => {
                    Plan::act(actions, NodeWait::CallBlocked(call_blocked.clone())).until(until, now)
                }
            }
            .pending();
        }
    }
    if live.is_some() && may_be_tagged_yet(observed) {
        return Plan::act(actions, releasing).pending();
    }
    // That EC2 does not show it for a moment is no proof that it has ended, and it would keep the tags.
    let status = observed.node.status.as_ref();
    let is_recorded = status.is_some_and(may_have_an_instance) || has_lost_adoption(&observed.node);
    let creation = status.and_then(|status| status.creation.as_ref());
    if shown.is_empty() && is_recorded && proven_absent(observed, creation).is_none() {
        return Plan::act(actions, DeletionWait::Absence(id.clone())).pending();
    }
    actions.push(Action::RemoveFinalizer);
    Plan::act(actions, if live.is_some() { DeletionWait::Released(id.clone()) } else { DeletionWait::Gone })
}

/// The tags that a release takes off, if EC2 must be requested to show everything that carries them: a launch
/// has tagged more than the instance. Also before the Node is deleted: whether the operator may read them and
/// take them off must be known before anything is released. An adopted instance that was never tainted is not
/// released now, but not adopted yet.
pub(in crate::controller::node) fn needs_tagged(observed: &Observed) -> Option<BTreeMap<String, String>> {
    let is_launched = observed.node.spec.instance_id.is_none();
    let was_adopted = observed.core_node.as_ref().is_some_and(is_tainted);
    let is_staying = observed.node.metadata.deletion_timestamp.is_none();
    let is_read = is_launched || (was_adopted && is_staying);
    let is_needed = is_read && observed.node.spec.release && observed.instances.swept_at.is_some();
    is_needed.then(|| adoption::tags(observed))
}

/// What is waited for as long as EC2 does not show what carries the Node's tags, or does not let the operator
/// take them off: without that nothing can be released to the end, so that nothing is to begin.
pub(super) fn unreadable(observed: &Observed, id: &InstanceId, now: Timestamp) -> Option<Plan> {
    match observed.tagged.as_ref() {
        Some(Ok(_)) => None,
        Some(Err(call_blocked)) => {
            let plan = Plan::wait(NodeWait::CallBlocked(call_blocked.as_ref().clone()));
            let again = later(now, observed.timing.requeue_interval.saturating_mul(12));
            Some(plan.until(call_blocked.until().unwrap_or(again), now))
        }
        None => needs_tagged(observed).map(|_| adoption::not_read(observed, id)),
    }
}

/// What still carries tags of this Node.
enum Tagged {
    /// These resources, and these tags.
    Resources(Vec<String>, BTreeMap<String, String>),
    /// Nothing does, and the inventory is older.
    NotShownYet,
    /// Nothing.
    Nothing,
}

/// What still carries tags. An adopted instance was tagged alone. A launch has tagged disks and network
/// interface, too: all are untagged by one call, which EC2 carries out as a whole, so that the instance is
/// the last of them.
fn tagged(observed: &Observed, instance: &Instance) -> Tagged {
    let mut tags = adoption::tags(observed);
    if observed.node.spec.instance_id.is_some() {
        let is_tagged = adoption::is_tagged(observed, instance);
        let resources = || Tagged::Resources(vec![instance.id.0.clone()], tags);
        return if is_tagged { resources() } else { Tagged::Nothing };
    }
    let is_of = |id: &&String| {
        let is_disk = instance.volumes.iter().any(|disk| disk.0 == **id);
        // Those of an earlier attempt ended with its instance.
        **id == instance.id.0 || is_disk || id.starts_with("eni-")
    };
    let all = observed.tagged.iter().flatten().flatten();
    let resources: Vec<String> = all.filter(is_of).cloned().collect();
    // By its token it is found without tags, too.
    let is_listed = adoption::is_tagged(observed, instance);
    match (resources.is_empty(), is_listed) {
        (true, true) => Tagged::NotShownYet,
        (true, false) => Tagged::Nothing,
        (false, _) => {
            let attempt = instance.tags.get(ATTEMPT_TAG).cloned();
            tags.extend(attempt.map(|attempt| (ATTEMPT_TAG.to_owned(), attempt)));
            Tagged::Resources(resources, tags)
        }
    }
}

/// Whether tags may have been requested that EC2 does not show yet: it shows them late.
fn may_be_tagged_yet(observed: &Observed) -> bool {
    let is_recorded = observed.node.status.as_ref().is_some_and(|status| status.instance_id.is_some());
    let is_adopted = observed.node.spec.instance_id.is_some();
    let is_taken_off = observed.issued_untags.as_ref().is_some_and(|issued| issued.call_blocked.is_none());
    let requested = observed.issued_tags.as_ref().map_or(observed.leading_since, |issued| issued.at);
    let shows_from = later(requested, observed.timing.requeue_interval);
    let is_shown = observed.instances.swept_at.is_some_and(|swept_at| swept_at > shows_from);
    is_adopted && is_recorded && !is_taken_off && !is_shown
}

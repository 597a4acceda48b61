//! What no plan of the Node controller may ever do, whatever was observed: checked on every plan of a debug
//! build. Pure.

mod adopted;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use crate::api::InstanceId;
use crate::api::keys::NODE_UID_TAG;
use crate::cloud::{Instance, InstanceState};
use crate::cluster::finalizer;
use crate::controller::node::observe::Observed;
use crate::controller::node::plan::action::{Action, Plan};
use crate::controller::node::plan::facts::{is_known, is_own};
use crate::controller::node::plan::wakes::{is_registered, wakes};
use crate::controller::node::pods;
use crate::controller::node::wait::NodeWait;
use crate::controller::safety;

/// The rules that this plan breaks, each as a sentence.
pub(in crate::controller::node::plan) fn violations(observed: &Observed, plan: &Plan) -> Vec<String> {
    let mut broken = adopted::violations(observed, plan);
    let mut rule = |holds: bool, sentence: &str| {
        if !holds {
            broken.push(sentence.to_owned());
        }
    };
    let is_deleting = observed.node.metadata.deletion_timestamp.is_some();
    let is_stalled = plan.waiting.as_ref().is_some_and(NodeWait::is_stalled);
    let is_synced = observed.instances.swept_at.is_some();
    for action in &plan.actions {
        match action {
            Action::Launch(..) | Action::Resend(_) => {
                rule(!is_deleting, "nothing is launched for a Node that is being deleted");
                rule(finalizer::has(&observed.node), "nothing is launched before the finalizer is there");
                rule(!is_stalled, "a stalled Node costs nothing more");
                rule(is_known(observed), "nothing is launched before it is known what EC2 has of the Node");
                let named = observed.node.status.as_ref().and_then(|status| status.instance_id.as_ref());
                let lives =
                    named.and_then(|id| observed.instances.by_id(id)).is_some_and(|it| !has_ended(it));
                rule(!lives, "nothing is launched while EC2 shows the instance of this Node alive");
            }
            Action::Terminate(id, _) | Action::Stop(id, _) => {
                rule(
                    is_ours(observed, id),
                    "only an instance that is provably this Node's is stopped or terminated",
                );
            }
            Action::RemoveFinalizer => {
                rule(is_deleting, "the finalizer is removed only from a Node that is being deleted");
                rule(is_synced, "the finalizer is removed only after a full EC2 inventory sync");
                // What was released goes on without its tags.
                let is_left = |it: &Instance| {
                    safety::may_end(&observed.node, &it.id) || it.tags.contains_key(NODE_UID_TAG)
                };
                // A Node that adopts launches none: another one that has its tags is not its own.
                let adopted = observed.node.spec.instance_id.as_ref().filter(|_| observed.node.spec.release);
                let is_its = |it: &Instance| adopted.is_none_or(|adopted| *adopted == it.id);
                let is_live =
                    |it: &&Instance| !has_ended(it) && is_own(observed, it) && is_left(it) && is_its(it);
                rule(
                    !observed.instances.instances.iter().any(|it| is_live(&it)),
                    "the finalizer is removed only when no instance is left",
                );
            }
            Action::OutOfService(_) | Action::ReleaseCoreNode(_) => {
                rule(
                    named_has_ended(observed),
                    "a Kubernetes node is released only when nothing runs on its machine",
                );
            }
            Action::EvictPod { at_once: true, .. } => {
                rule(
                    named_has_ended(observed),
                    "a pod is deleted without grace only when nothing runs on its machine",
                );
            }
            Action::EvictForeignPod { namespace, name, .. } => {
                let is_it =
                    |pod: &Pod| pod.name_any() == *name && pod.namespace().as_ref() == Some(namespace);
                rule(
                    !pods::own(&observed.pods, &observed.node).any(is_it),
                    "the database's own pod is never deleted as a foreign one",
                );
            }
            Action::AddFinalizer
            | Action::RecordInstance(_)
            | Action::MarkUnavailable(..)
            | Action::LogConsole(_)
            | Action::DeclareLost(_)
            | Action::Dedicate(_)
            | Action::HoldCoreNode(_)
            | Action::Cordon(..)
            | Action::EvictPod { .. }
            | Action::Adopt(..)
            | Action::Tag(..)
            | Action::Untag(..)
            | Action::RestoreCoreNode(_) => {}
        }
    }
    rule(plan.waiting.is_some() || plan.actions.iter().all(is_about_others), "who acts says what is awaited");
    if let Some(wait) = &plan.waiting {
        for wake in wakes(wait).iter().filter(|wake| !is_registered(**wake, observed, plan)) {
            rule(false, &format!("a wait has its wakes, and {wait:?} has none by {wake:?}"));
        }
    }
    broken
}

fn has_ended(instance: &Instance) -> bool {
    instance.state == InstanceState::Terminated
}

/// Whether an instance is the one that the status names, or carries a token that only this Node can have
/// made.
fn is_ours(observed: &Observed, id: &InstanceId) -> bool {
    let named = observed.node.status.as_ref().and_then(|status| status.instance_id.as_ref());
    (named == Some(id) && !observed.is_of_another)
        || observed.instances.by_id(id).is_some_and(|instance| is_own(observed, instance))
}

/// Whether EC2 shows the instance that the status names stopped or terminated, or no longer shows it.
fn named_has_ended(observed: &Observed) -> bool {
    let named = observed.node.status.as_ref().and_then(|status| status.instance_id.as_ref());
    named
        .and_then(|id| observed.instances.by_id(id))
        .is_none_or(|it| has_ended(it) || it.state == InstanceState::Stopped)
}

/// What is done about a second instance or a foreign pod, or against one, leaves the Node itself as it is.
fn is_about_others(action: &Action) -> bool {
    matches!(action, Action::Terminate(..) | Action::EvictForeignPod { .. } | Action::Dedicate(_))
}

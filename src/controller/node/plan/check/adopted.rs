//! What no plan of a Node whose spec names its instance, or whose instance is to be released, may ever do.
//! Pure.

use crate::api::InstanceId;
use crate::cloud::Instance;
use crate::controller::node::observe::Observed;
use crate::controller::node::plan::action::{Action, Plan};
use crate::controller::node::plan::adoption;
use crate::controller::node::registration;
use crate::controller::safety;

/// The rules that this plan breaks, each as a sentence.
pub(super) fn violations(observed: &Observed, plan: &Plan) -> Vec<String> {
    let named = observed.node.spec.instance_id.as_ref();
    let is_deleting = observed.node.metadata.deletion_timestamp.is_some();
    let is_released = observed.node.spec.release && is_deleting;
    let own = named.or_else(|| observed.node.status.as_ref().and_then(|status| status.instance_id.as_ref()));
    let mut broken = Vec::new();
    let mut rule = |holds: bool, sentence: &str| {
        if !holds {
            broken.push(sentence.to_owned());
        }
    };
    for action in &plan.actions {
        match action {
            Action::Launch(..) | Action::Resend(_) => {
                rule(named.is_none(), "a Node whose spec names its instance launches none");
            }
            Action::Terminate(id, _) | Action::Stop(id, _) => {
                rule(
                    safety::may_end(&observed.node, id),
                    "an instance that is to be released is neither stopped nor terminated",
                );
                rule(
                    named != Some(id) || is_deleting || has_joined(observed) || is_declared_lost(observed),
                    "an adopted instance that has not joined is ended only with its Node",
                );
            }
            Action::Adopt(id, _) | Action::Tag(id, _) => {
                rule(
                    named == Some(id) && is_allowed(observed, id),
                    "only an instance that carries the tag of adoption, or this Node's, is tagged",
                );
            }
            Action::Untag(..) | Action::RestoreCoreNode(_) => {
                rule(is_released, "what Freehold has put on a machine is taken off only with its release");
            }
            Action::RemoveFinalizer => {
                let is_kept = named.or_else(|| own.filter(|_| is_released));
                let is_left = |it: &Instance| {
                    is_kept == Some(&it.id) && registration::is_live(it) && adoption::is_tagged(observed, it)
                };
                rule(
                    !observed.instances.instances.iter().any(is_left),
                    "the finalizer is removed only when an instance that goes on has lost this Node's tags",
                );
            }
            Action::EvictForeignPod { .. } => {
                rule(
                    named.is_none() && !is_released,
                    "no pod on a machine that was adopted or is released is deleted as a foreign one",
                );
            }
            Action::Cordon(..)
            | Action::EvictPod { .. }
            | Action::OutOfService(_)
            | Action::ReleaseCoreNode(_)
            | Action::DeclareLost(_) => {
                rule(!is_released, "a machine that is released goes on as it is");
            }
            Action::AddFinalizer
            | Action::RecordInstance(_)
            | Action::MarkUnavailable(..)
            | Action::LogConsole(_)
            | Action::Dedicate(_)
            | Action::HoldCoreNode(_) => {}
        }
    }
    broken
}

fn is_allowed(observed: &Observed, id: &InstanceId) -> bool {
    let shown = adoption::shown(observed, id).and_then(<[Instance]>::first);
    shown.is_some_and(|instance| adoption::is_allowed(observed, instance).is_ok())
}

fn has_joined(observed: &Observed) -> bool {
    observed.core_node.is_some() || observed.node.status.as_ref().is_some_and(registration::has_joined)
}

fn is_declared_lost(observed: &Observed) -> bool {
    observed.node.status.as_ref().is_some_and(|status| status.fence.is_some())
}

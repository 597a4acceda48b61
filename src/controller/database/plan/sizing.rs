//! What memory the pod requests on the machine that it is to run on, where the spec leaves it to the machine:
//! the template follows where the pod comes anew, and no pod that runs ends for it. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Node as CoreNode, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::ResourceExt;

use super::access::bound;
use super::action::Action;
use super::comparison::{self, Finding};
use crate::api::keys::REVISION_LABEL;
use crate::controller::database::build;
use crate::controller::database::observe::Observed;
use crate::controller::database::pod::machine;
use crate::controller::database::quantity::number;
use crate::time::later;

/// How long a pod may find no room before it requests the least: the DaemonSets of this machine request more
/// than is left to them.
const REFUSED: Duration = Duration::from_secs(60);

/// What gives the template the request for this machine, before the pod moves there.
pub(super) fn for_move(
    observed: &Observed,
    live: &StatefulSet,
    core_node: Option<&CoreNode>,
) -> Option<Action> {
    let wanted = build::memory_on(&observed.database.spec, core_node?)?;
    changed(observed, live, wanted)
}

/// What gives the template a smaller request, where its pod finds no room: it was rendered for a larger
/// machine, or others request too much of this one.
pub(super) fn for_waiting_pod(
    observed: &Observed,
    live: &StatefulSet,
    pod: &Pod,
    now: Timestamp,
) -> Option<Action> {
    let since = refused_since(pod).filter(|_| machine(pod).is_none())?;
    let wanted = build::memory_on(&observed.database.spec, observed.labelled.first()?)?;
    let current = build::memory_of_set(live)?;
    if number(&current.0)? > number(&wanted.0)? {
        return changed(observed, live, wanted);
    }
    if now >= later(since, REFUSED) { changed(observed, live, build::least_memory()) } else { None }
}

/// Whether the pod waits with another request than its template's: it is of an older one. What an admission
/// webhook makes of a new pod is no reason to create it anew.
pub(super) fn is_outgrown(observed: &Observed, live: &StatefulSet, pod: &Pod) -> bool {
    let of_set = build::memory_of_set(live);
    let of_pod = pod.spec.as_ref().and_then(|spec| build::memory_of(&spec.containers));
    let current = live.status.as_ref().and_then(|status| status.update_revision.as_ref());
    let is_older = pod.labels().get(REVISION_LABEL).zip(current).is_some_and(|(of_pod, new)| of_pod != new);
    let differs = of_set.zip(of_pod).is_none_or(|(of_set, of_pod)| !build::is_same(of_set, of_pod));
    let is_waiting = machine(pod).is_none() && refused_since(pod).is_some();
    is_older && is_waiting && build::memory_is_of_machine(&observed.database.spec) && differs
}

/// Since when the scheduler finds no Kubernetes node for the pod.
fn refused_since(pod: &Pod) -> Option<Timestamp> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let refused = conditions.iter().find(|it| it.type_ == "PodScheduled" && it.status == "False")?;
    refused.last_transition_time.as_ref().map(|since| since.0)
}

fn changed(observed: &Observed, live: &StatefulSet, memory: Quantity) -> Option<Action> {
    // What another client has put into the template must not become what Freehold applied.
    let wanted =
        build::with_memory(live, memory).filter(|_| comparison::stateful_set(observed) == Finding::Same)?;
    Some(Action::RestoreStatefulSet(Box::new(bound(live, wanted))))
}

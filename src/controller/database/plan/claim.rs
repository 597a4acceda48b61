//! The plan of an adopted database whose claim is gone, or is another: no pod is started until the claim is
//! bound to its PersistentVolume again. Pure.
//!
//! The StatefulSet that was adopted has `volumeClaimTemplates`: where the claim of its next pod is missing,
//! Kubernetes makes an empty one, and the engine would start on it as if all data were lost. A claim that is
//! deleted stays until no pod uses it (Kubernetes docs, "Storage Object in Use Protection"), so that there is
//! time: a pod that runs goes on, and when it ends, or its machine is lost, the StatefulSet is scaled to 0
//! before another can follow.
//! Then the claim is gone, and the Volume creates it again (`volume/plan/restored.rs`).
//!
//! What remains: where a pod ends within moments (it is deleted without grace), or while no operator runs,
//! Kubernetes may make the empty claim first. It is provisioned and attached before a pod starts on it, which
//! takes EBS longer than a pass takes; without an operator the engine does start on it. In both cases it is
//! scaled to 0 as soon as that is seen, and only a person decides what becomes of the other volume.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::action::{Action, Plan};
use super::facts::{adoption, replicas};
use super::leaving::is_leaving;
use super::machines::{self, is_lost};
use crate::controller::database::claim_fault::ClaimFault;
use crate::controller::database::observe::Observed;
use crate::controller::database::pod::has_started;
use crate::controller::database::wait::DatabaseWait;
use crate::time::sooner;

/// The plan without what would start a pod on another volume than the one that was adopted.
pub(super) fn guarded(mut plan: Plan, observed: &Observed) -> Plan {
    let Some((claim, fault, running)) = fault(observed) else { return plan };
    // A pod that is to be replaced, or to have another template, ends, and another one follows once the claim
    // is there.
    let is_replaced = plan
        .actions
        .iter()
        .any(|action| matches!(action, Action::ReplacePod(..) | Action::ApplyStatefulSet(_)));
    plan.actions.retain(|action| !starts_a_pod(action));
    if let Some(live) = observed.stateful_set.ours()
        && replicas(live) != 0
        && (is_replaced || running.is_none())
    {
        plan.actions.insert(0, Action::Scale(live.uid().unwrap_or_default(), 0));
    }
    Plan {
        waiting: Some(DatabaseWait::ClaimUnusable(claim, fault)),
        // This controller does not watch claims.
        requeue: Some(sooner(observed.timing.requeue_interval, plan.requeue)),
        ..plan
    }
}

/// The claim of an adopted database, what is wrong with it, and the pod that goes on running all the same.
/// `None` where nothing is wrong, nothing was adopted, or no pod is to run anyway.
fn fault(observed: &Observed) -> Option<(String, ClaimFault, Option<&Pod>)> {
    let (adopt, legacy) = (observed.database.spec.adopt.as_ref()?, observed.legacy.as_ref()?);
    let is_adopted = observed.stateful_set.ours().is_some() || adoption(observed).is_some();
    let wanted = observed.volume.ours()?.spec.adopt.as_ref()?.persistent_volume_name.clone();
    if !is_adopted || is_leaving(observed) || !observed.database.spec.running {
        return None;
    }
    let name = adopt.claim_name.clone();
    let is_lost = machines::of(observed).is_some_and(|machines| is_lost(machines.host));
    let running = observed.pod.as_ref().filter(|pod| !is_lost && goes_on(observed, pod));
    let Some(claim) = &legacy.claim else { return Some((name, ClaimFault::Gone, running)) };
    let found = claim.spec.as_ref().and_then(|spec| spec.volume_name.clone()).unwrap_or_default();
    if found != wanted {
        // A pod that is older than the claim does not use it.
        let running =
            running.filter(|pod| pod.metadata.creation_timestamp < claim.metadata.creation_timestamp);
        return Some((name, ClaimFault::Other { found, wanted }, running));
    }
    claim.metadata.deletion_timestamp.as_ref()?;
    Some((name, ClaimFault::BeingDeleted { pod: running.map(ResourceExt::name_any) }, running))
}

/// Whether the pod has started, and is not being deleted.
fn goes_on(observed: &Observed, pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none() && has_started(pod, observed.engine())
}

/// A pod that has no claim is no pod that does not start with its template.
fn starts_a_pod(action: &Action) -> bool {
    let is_scaled_up = matches!(action, Action::Scale(_, replicas) if *replicas != 0);
    is_scaled_up
        || matches!(
            action,
            Action::ApplyStatefulSet(_)
                | Action::AdoptStatefulSet(..)
                | Action::ReplacePod(..)
                | Action::GoBack(_)
        )
}

//! The plan of an adopted database whose claim is gone, or is another: no pod is started until the claim is
//! bound to its PersistentVolume again. Pure.
//!
//! The StatefulSet that was adopted has `volumeClaimTemplates`: where the claim of its next pod is missing,
//! Kubernetes makes an empty one, and the engine would start on it as if all data were lost. A claim that is
//! deleted stays until no pod uses it (Kubernetes docs, "Storage Object in Use Protection"), and after that
//! until its finalizers are gone, of which one is Freehold's. As long as it stays, Kubernetes makes no other:
//! a pod that runs goes on; when it ends, or its machine is lost, no other can start, whether an operator
//! runs or not. The StatefulSet is scaled to 0, and then the claim is let go, and the Volume creates it again
//! (`volume/plan/restored.rs`).
//!
//! What remains: another client removes the finalizer. Then a pod may have started on an empty claim. It is
//! stopped as soon as that is seen, and only a person decides what becomes of the other volume.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt;

use super::action::{Action, Plan};
use super::facts::{adoption, replicas};
use super::leaving::is_leaving;
use super::machines::{self, is_lost};
use crate::api::database::Adopt;
use crate::cluster::finalizer;
use crate::cluster::persistent_volume::ebs_volume;
use crate::controller::database::claim_fault::ClaimFault;
use crate::controller::database::observe::Observed;
use crate::controller::database::pod::has_started;
use crate::controller::database::wait::DatabaseWait;
use crate::controller::safety;
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
    let unusable = DatabaseWait::ClaimUnusable(claim, fault);
    Plan {
        // Without the Volume nothing creates the claim again, and the plan says so.
        waiting: plan.waiting.filter(|_| !is_created_again(observed)).or(Some(unusable)),
        // This controller does not watch claims.
        requeue: Some(sooner(observed.timing.requeue_interval, plan.requeue)),
        ..plan
    }
}

/// The claim of an adopted database, what is wrong with it, and the pod that goes on running all the same.
/// `None` where nothing is wrong, nothing was adopted, or no pod is to run anyway.
fn fault(observed: &Observed) -> Option<(String, ClaimFault, Option<&Pod>)> {
    let (adopt, legacy) = (observed.database.spec.adopt.as_ref()?, observed.legacy.as_ref()?);
    if !is_adopted(observed) || is_leaving(observed) || !observed.database.spec.running {
        return None;
    }
    let name = adopt.claim_name.clone();
    let is_lost = machines::of(observed).is_some_and(|machines| is_lost(machines.host));
    let running = observed.pod.as_ref().filter(|pod| !is_lost && goes_on(observed, pod));
    let Some(claim) = &legacy.claim else { return Some((name, ClaimFault::Gone, running)) };
    let found = claim.spec.as_ref().and_then(|spec| spec.volume_name.clone()).unwrap_or_default();
    if let Some(wanted) = wanted_instead(observed, adopt, &found) {
        // A pod that is older than the claim does not use it.
        let running =
            running.filter(|pod| pod.metadata.creation_timestamp < claim.metadata.creation_timestamp);
        return Some((name, ClaimFault::Other { found, wanted }, running));
    }
    claim.metadata.deletion_timestamp.as_ref()?;
    Some((name, ClaimFault::BeingDeleted { pod: running.map(ResourceExt::name_any) }, running))
}

/// Whether the Volume creates a claim again that is gone.
fn is_created_again(observed: &Observed) -> bool {
    observed.volume.ours().is_some_and(|volume| volume.metadata.deletion_timestamp.is_none())
}

fn is_adopted(observed: &Observed) -> bool {
    observed.stateful_set.ours().is_some() || adoption(observed).is_some()
}

/// What the claim should be bound to, if it is bound to another PersistentVolume. Where the Volume is gone,
/// the EBS volume of the spec decides; a claim without its PersistentVolume starts no pod.
fn wanted_instead(observed: &Observed, adopt: &Adopt, found: &str) -> Option<String> {
    if let Some(adopted) = observed.volume.ours().and_then(|volume| volume.spec.adopt.as_ref()) {
        let wanted = &adopted.persistent_volume_name;
        return (wanted != found).then(|| wanted.clone());
    }
    let record = observed.legacy.as_ref()?.persistent_volume.as_ref();
    let is_other = record.is_some_and(|record| ebs_volume(record).as_ref() != Some(&adopt.volume_id));
    (found.is_empty() || is_other).then(|| adopt.volume_id.0.clone())
}

/// The plan, and a deleted claim let go as soon as nothing makes a pod, in whatever state the database is.
pub(super) fn freed(mut plan: Plan, observed: &Observed) -> Plan {
    let Some(claim) = held(observed) else { return plan };
    plan.requeue = Some(sooner(observed.timing.requeue_interval, plan.requeue));
    if may_be_freed(observed) {
        plan.actions.insert(0, Action::FreeClaim(Box::new(claim.clone())));
    }
    plan
}

/// The claim that our finalizer need not keep any longer than a pod is made: it is deleted, and is created
/// again, or goes with its Database; or no Volume is left that would free it.
fn held(observed: &Observed) -> Option<&PersistentVolumeClaim> {
    let claim = observed.legacy.as_ref()?.claim.as_ref().filter(|claim| finalizer::has(*claim))?;
    let is_deleted = claim.metadata.deletion_timestamp.is_some();
    let is_going = if is_leaving(observed) {
        is_deleted || observed.volume.ours().is_none()
    } else {
        is_deleted && is_created_again(observed)
    };
    (is_adopted(observed) && is_going).then_some(claim)
}

/// Whether the claim may lose our finalizer. One that is not deleted stays all the same.
pub(super) fn may_be_freed(observed: &Observed) -> bool {
    let Some(legacy) = &observed.legacy else { return false };
    let is_deleted = legacy.claim.as_ref().is_some_and(|it| it.metadata.deletion_timestamp.is_some());
    let set = observed.stateful_set.ours().or(legacy.stateful_set.as_ref());
    let pod = observed.pod.as_ref().or(legacy.pod.as_ref());
    !is_deleted || safety::may_free_claim(legacy.persistent_volume.as_ref(), set, pod)
}

/// Whether the pod has started, and is not being deleted.
fn goes_on(observed: &Observed, pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none() && has_started(pod, observed.engine())
}

/// A pod that has no claim is no pod that does not start with its template.
pub(super) fn starts_a_pod(action: &Action) -> bool {
    let is_scaled_up = matches!(action, Action::Scale(_, replicas) if *replicas != 0);
    is_scaled_up
        || matches!(
            action,
            Action::ApplyStatefulSet(_)
                | Action::AdoptStatefulSet(..)
                | Action::ReplacePod(..)
                | Action::GoBack(_)
                | Action::GoBackToServed(_)
        )
}

//! Whether a Database that was deleted leaves now, or goes on until it can be released; and as what it is
//! released. Pure.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;

use super::facts::{adoption, condition_message, node_awaited, replicas, volume_awaited, was_adopted};
use super::machines::{self, can_serve};
use super::rotation;
use crate::api::database::{Adoption, Release};
use crate::api::keys::DATABASE_NODE_LABEL;
use crate::api::{ConditionType, Database, Node, Volume};
use crate::cluster::finalizer;
use crate::controller::conditions;
use crate::controller::database::build;
use crate::controller::database::object_name::{ObjectKind, ObjectName};
use crate::controller::database::observe::Observed;
use crate::controller::database::observe::child::Child;
use crate::controller::database::observe::legacy::Legacy;
use crate::controller::database::pod;
use crate::controller::database::unreleasable::Unreleasable;
use crate::controller::database::upgrade::is_closed;

/// Whether the Database is on its way out: deleted, not protected from it, and not to be released later. A
/// protection that is set after something was released comes too late.
pub(in crate::controller::database) fn is_leaving(observed: &Observed) -> bool {
    let Database { metadata, .. } = &observed.database;
    let is_releasing = || finalizer::has(&observed.database) && is_begun(observed);
    (metadata.deletion_timestamp.is_some() && is_releasing())
        || (observed.is_deleted() && postponed(observed).is_none())
}

/// Why the Database was deleted, is to be released, and goes on all the same.
pub(super) fn postponed(observed: &Observed) -> Option<Unreleasable> {
    // In a teardown nothing can be completed any more; nor once the Volume was let end.
    let is_let_end = |volume: &Volume| volume.spec.deletion_decided && !volume.spec.replaced;
    let is_decided = observed.volume.ours().is_some_and(is_let_end);
    let is_possible = !observed.torn_down.any() && !is_decided;
    let is_to_release = observed.is_deleted() && is_requested(observed) && is_possible;
    if is_to_release { unreleasable(observed) } else { None }
}

/// Whether the spec releases the database. In a namespace that is being deleted no pod goes on; what was
/// adopted is released there all the same, since it was there before.
pub(super) fn is_requested(observed: &Observed) -> bool {
    let spec = &observed.database.spec;
    let is_gone_anyway = observed.torn_down.namespace && spec.adopt.is_none();
    spec.release && finalizer::has(&observed.database) && !is_gone_anyway
}

/// Whether the release has gone so far that it is completed, whatever the spec says: that something was
/// released is seen, since a StatefulSet that is gone can have been deleted outside Freehold. The last
/// evidence is that Node and Volume are gone. A Node or Volume that was deleted outside Freehold, or with its
/// namespace, once it was to be released, releases what it has at once: the rest follows.
pub(super) fn is_begun(observed: &Observed) -> bool {
    let (nodes, volume) = (&observed.nodes, observed.volume.ours());
    let is_left = |metadata: &ObjectMeta, release: bool| release && metadata.deletion_timestamp.is_some();
    let is_going = nodes.iter().any(|node| is_left(&node.metadata, node.spec.release))
        || volume.is_some_and(|volume| is_left(&volume.metadata, volume.spec.release));
    if observed.stateful_set.ours().is_some() {
        return recorded(observed).is_some() && is_going;
    }
    let is_empty = nodes.is_empty() && volume.is_none();
    is_known(observed) && (has_other_set(observed) || is_going || is_empty)
}

/// Whether a StatefulSet of the name is there that is not the Database's.
fn has_other_set(observed: &Observed) -> bool {
    let has_legacy = |legacy: &Legacy| legacy.stateful_set.is_some();
    observed.stateful_set == Child::Foreign || observed.legacy.as_ref().is_some_and(has_legacy)
}

/// Whether a release was decided. If the status was lost, Node and Volume say it; those of a database that is
/// to be adopted say it from the beginning, until its StatefulSet has Freehold's template.
fn is_known(observed: &Observed) -> bool {
    let releases = observed.volume.ours().is_some_and(|volume| volume.spec.release)
        || observed.nodes.iter().any(|node| node.spec.release);
    let was_ours = observed.database.spec.adopt.is_none() || is_placed(observed);
    recorded(observed).is_some() || (releases && was_ours)
}

/// The release that was written down.
pub(super) fn recorded(observed: &Observed) -> Option<&Release> {
    observed.database.status.as_ref()?.release.as_ref()
}

/// Whether Node and Volume keep what they have: no release has begun, and the StatefulSet is or was the
/// Database's. What is to be adopted is released until then.
pub(super) fn keeps(observed: &Observed) -> bool {
    let was_ours = observed.database.spec.adopt.is_none() || recorded(observed).is_some();
    (observed.stateful_set.ours().is_some() || was_ours) && !is_begun(observed)
}

/// Whether an adopted database becomes what it was: the pod is the one that was found, on the instance that
/// was found, so that the StatefulSet that was found restarts nothing and finds its machine again. What was
/// never adopted is as it was found. A StatefulSet that was released with Freehold's template is released as
/// it runs, also if the status was lost.
pub(super) fn is_as_found(observed: &Observed) -> bool {
    let is_decided = observed.stateful_set.ours().is_none() && is_begun(observed);
    if let Some(release) = recorded(observed).filter(|_| is_decided) {
        return release.as_found && !is_placed(observed);
    }
    let has_what_was_found = match observed.stateful_set.ours() {
        Some(_) => adoption(observed)
            .is_some_and(|adoption| runs_as_found(adoption, observed.pod.as_ref(), &observed.nodes)),
        None => is_on_found(&observed.nodes) && !is_placed(observed),
    };
    observed.database.spec.adopt.is_some() && has_what_was_found
}

/// Whether the StatefulSet of a database that adopts, and that is not the Database's now, selects the machine
/// by this Database's label: only Freehold's own template does.
fn is_placed(observed: &Observed) -> bool {
    let selector = || {
        let set = observed.legacy.as_ref()?.stateful_set.as_ref()?;
        set.spec.as_ref()?.template.spec.as_ref()?.node_selector.as_ref()
    };
    selector().and_then(|it| it.get(DATABASE_NODE_LABEL)) == Some(&observed.names.uid)
}

/// Whether an adopted database runs in the pod that was found, on the instance that was found.
pub fn runs_as_found(adoption: &Adoption, pod: Option<&Pod>, nodes: &[Node]) -> bool {
    let stays = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none();
    let pod = pod.filter(stays).and_then(|pod| pod.metadata.uid.as_ref());
    pod == Some(&adoption.pod_uid) && !nodes.is_empty() && is_on_found(nodes)
}

/// Whether every Node has an instance that was found.
pub fn is_on_found(nodes: &[Node]) -> bool {
    nodes.iter().all(|node| node.spec.instance_id.is_some())
}

/// What stands before the release: only what is complete can go on by itself.
pub(super) fn unreleasable(observed: &Observed) -> Option<Unreleasable> {
    // One that was adopted, and whose StatefulSet another client has deleted, is created anew first, unless
    // its namespace goes with it.
    let is_missing = !has_other_set(observed) && was_adopted(observed) && !observed.torn_down.any();
    let was_never_adopted = observed.stateful_set.ours().is_none() && !is_missing && is_as_found(observed);
    if is_begun(observed) || was_never_adopted {
        return None;
    }
    if !observed.database.spec.running {
        return Some(Unreleasable::Paused);
    }
    let Some(machines) = machines::of(observed) else { return Some(Unreleasable::NoMachine) };
    let host = machines.host;
    if let Some(other) = machines.successor.or_else(|| machines.former.first().copied()) {
        return Some(Unreleasable::Moving { from: host.name_any(), to: other.name_any() });
    }
    // In a teardown everything is deleted at once: a machine that serves still has been left as it is. For
    // the conditions of what says that it is released, the release itself waits.
    let is_deleted = host.metadata.deletion_timestamp.is_some();
    let is_as_wanted = || host.spec.release || node_awaited(host).is_none();
    let is_kept = if is_deleted { observed.torn_down.any() } else { is_as_wanted() };
    if !is_kept || !can_serve(observed, host) {
        let object = ObjectName::new(ObjectKind::Node, host.name_any());
        let message = condition_message(host.conditions(), ConditionType::Ready);
        return Some(Unreleasable::NotReady { object, message });
    }
    let is_closed_service = |live: &Service| build::is_closed_service(&observed.names, live);
    if is_closed(&observed.database) || observed.service.ours().is_some_and(is_closed_service) {
        return Some(Unreleasable::Closed);
    }
    if let Some(claim) = ending_claim(observed) {
        return Some(Unreleasable::ClaimDeleted(claim.name_any()));
    }
    if !is_complete(observed) {
        let object = ObjectName::new(ObjectKind::Volume, observed.names.volume.clone());
        let volume = observed.volume.ours();
        let message = volume.and_then(|it| condition_message(it.conditions(), ConditionType::Ready));
        return Some(Unreleasable::NotReady { object, message });
    }
    let is_started = observed.stateful_set.ours().is_some_and(|set| replicas(set) == 1);
    let core_node = host.status.as_ref().and_then(|status| status.core_node_name.as_deref());
    let pod = observed.pod.as_ref().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let runs =
        pod.is_some_and(|pod| pod::has_started(pod, observed.engine()) && pod::machine(pod) == core_node);
    let is_placed = is_started && runs && observed.carries_label(host);
    if !is_placed {
        return Some(Unreleasable::NoPod(observed.names.pod()));
    }
    rotation::may_have_next(observed).then_some(Unreleasable::Rotating)
}

/// The claim, if it is being deleted: it goes with its pod, and the next pod would find none, or an empty
/// one.
fn ending_claim(observed: &Observed) -> Option<&PersistentVolumeClaim> {
    let of_legacy = || observed.legacy.as_ref()?.claim.as_ref();
    let claim = observed.claim.as_ref().or_else(of_legacy);
    claim.filter(|claim| claim.metadata.deletion_timestamp.is_some() && !observed.torn_down.any())
}

/// Whether the volume is bound, and as the spec wants it. What only a person could mend stays as it is, and
/// so does a Volume that was deleted: it waits for its Database.
fn is_complete(observed: &Observed) -> bool {
    let is_as_wanted = |volume: &Volume| {
        let is_deleted = volume.metadata.deletion_timestamp.is_some();
        conditions::is_true(volume.conditions(), ConditionType::Bound)
            && (is_deleted
                || volume.spec.release
                || volume_awaited(volume).is_none_or(|wait| wait.is_stalled()))
    };
    observed.volume.ours().is_some_and(is_as_wanted)
}

//! Every destructive question has its answer here: yes, or no with the reason. Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Node as CoreNode, NodeCondition, PersistentVolume, Pod};
use kube::ResourceExt;

use super::blocker::{Blocker, DuplicateKept};
use super::conditions;
use crate::api::keys::{DATABASE_NODE_LABEL, VERIFICATION_LABEL};
use crate::api::verification::Verification;
use crate::api::{Backup, BackupSchedule, ConditionType, Database, InstanceId, Node, Reason, VolumeId};
use crate::cloud::{EbsVolume, Instance, InstanceState, Snapshot, VolumeState};
use crate::cluster::{controller_of, finalizer};
use crate::controller::memory::repairs::{FleetView, RepairsAtLimit};
use crate::settings::Timing;
use crate::time::{later, whole_second};

/// Half an hour by default: zones that come back do so within it, mostly, and within it a person has seen the
/// alert.
const GRACES_BEFORE_A_TRIAL: u32 = 6;

/// How ready a core Node's kubelet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kubelet {
    /// The Node's condition Ready is true.
    Ready,
    /// It is not, since then.
    NotReady(Timestamp),
    /// There is no core Node.
    Absent,
}

/// How ready the core Node's kubelet is.
pub fn kubelet(core_node: Option<&CoreNode>) -> Kubelet {
    let Some(core_node) = core_node else { return Kubelet::Absent };
    match reported(core_node) {
        Some(condition) if condition.status == "True" => Kubelet::Ready,
        // One that has said nothing yet is no older than its Node; without any time its silence is not
        // proven.
        condition => {
            let since = condition.and_then(|condition| condition.last_transition_time.as_ref());
            Kubelet::NotReady(
                since
                    .or(core_node.metadata.creation_timestamp.as_ref())
                    .map_or(Timestamp::MAX, |time| time.0),
            )
        }
    }
}

/// Whether the kubelet has stopped reporting: Kubernetes' node lifecycle controller says then that it does
/// not know how ready it is (Kubernetes documentation, "Node status").
pub fn is_silent(core_node: &CoreNode) -> bool {
    reported(core_node).is_some_and(|condition| condition.status == "Unknown")
}

/// The core Node's condition Ready.
fn reported(core_node: &CoreNode) -> Option<&NodeCondition> {
    let conditions = core_node.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == "Ready")
}

/// Whether no pod is scheduled on the Kubernetes node (`kubectl cordon`). Freehold cordons only the machine
/// of a Node that is deleted.
pub fn is_cordoned(core_node: &CoreNode) -> bool {
    core_node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false)
}

/// Whether an instance of this Node may be stopped or terminated at all: its own not as long as the Node says
/// that it is released.
pub fn may_end(node: &Node, instance: &InstanceId) -> bool {
    let recorded = || node.status.as_ref().and_then(|status| status.instance_id.as_ref());
    !(node.spec.release && node.spec.instance_id.as_ref().or_else(recorded) == Some(instance))
}

/// Whether the machine of a Node that is being deleted may be terminated: its pods have ended and its volumes
/// are detached, unless nothing on it can run any more (EC2 shows it stopped), or its kubelet has not
/// reported for longer than `silence`: then nothing is left to stop the pods, and termination is the fence
/// itself. `pods`, `attachments` and `data`, the volumes that are known to hold data, are those that are
/// awaited: what does not end in its time is ended by the termination, which is the fence then, too.
pub fn may_terminate(
    instance: &Instance,
    kubelet: Kubelet,
    pods: &[String],
    attachments: &[String],
    data: &[VolumeId],
    silence: Duration,
    now: Timestamp,
) -> Result<(), Blocker> {
    if instance.state == InstanceState::Stopped {
        return Ok(());
    }
    if let Kubelet::NotReady(since) = kubelet
        && is_over(since, silence, now)
    {
        return Ok(());
    }
    if !pods.is_empty() {
        return Err(Blocker::PodsRemain(pods.to_vec()));
    }
    if !attachments.is_empty() {
        return Err(Blocker::NotDetached(attachments.to_vec()));
    }
    let data = data_volumes(instance, data);
    if kubelet == Kubelet::Absent && !data.is_empty() {
        return Err(Blocker::StillAttached(data));
    }
    Ok(())
}

/// Whether so long has passed since then.
fn is_over(since: Timestamp, span: Duration, now: Timestamp) -> bool {
    now.duration_since(since) >= SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX)
}

/// Whether a machine that looks lost may be declared lost now. Whatever its cause, not while the other
/// machines are not known, not while as many repairs as may be are underway, of all or of its own namespace,
/// and not while what is known of EC2 is old: a mistake about the whole fleet (a broken network, a wrong
/// credential, a bug of ours) must stop after few machines. And not while its zone looks down: its machines
/// come back with it, and there would be no capacity to replace them. A terminated one cannot come back, so
/// neither the zone nor the age of what showed its end matters to it. Of the others in such a zone one at a
/// time is tried when its loss has been `due` for six times the grace period: a brake that nothing releases
/// would leave databases down for ever. Where its successor does not serve, the others stay as they are.
///
/// Not while no kubelet of any database's machine reports to this API server either, where there are others
/// than its own: in a copy of the control plane beside the one that runs it would stop machines that serve.
/// This brake no time releases, since a copy lasts as long as it likes: a kubelet that reports does, or the
/// deletion of the Node by a person. On a terminated machine nothing runs, so nothing is stopped for it.
pub fn may_give_up(
    fleet: &FleetView,
    is_terminated: bool,
    due: Timestamp,
    swept_at: Option<Timestamp>,
    leading_since: Timestamp,
    timing: &Timing,
    now: Timestamp,
) -> Result<(), Blocker> {
    // A namespace that is gone, and whose Role went with it, is never listed: the others do not wait for it.
    if fleet.unlisted > 0 && now < later(leading_since, timing.loss_grace_period) {
        return Err(Blocker::FleetPartial);
    }
    fleet.has_place().map_err(repairs_at_limit)?;
    if is_terminated {
        return Ok(());
    }
    let oldest = SignedDuration::try_from(timing.trust()).unwrap_or(SignedDuration::MAX);
    if swept_at.is_none_or(|swept_at| now.duration_since(swept_at) > oldest) {
        return Err(Blocker::InventoryOld);
    }
    if fleet.no_kubelet_reports {
        return Err(Blocker::NoKubeletReports);
    }
    if fleet.zone_refused {
        return Err(Blocker::ZoneRefused);
    }
    // What looks like a zone that is down may be something else: one machine at a time shows it.
    let tried_at = later(due, timing.loss_grace_period.saturating_mul(GRACES_BEFORE_A_TRIAL));
    if fleet.zone_looks_down && fleet.is_first_of_zone && now >= tried_at {
        return Ok(());
    }
    if fleet.zone_looks_down {
        return Err(Blocker::ZoneDown { joined: fleet.zone_joined, lost: fleet.zone_lost });
    }
    // A zone's machines come back one by one: the last of them have the grace that the first had.
    if let Some(until) = fleet
        .zone_down_at
        .map(|at| whole_second(later(at, timing.loss_grace_period)))
        .filter(|until| now < *until)
    {
        return Err(Blocker::ZoneRecovering(until));
    }
    Ok(())
}

/// No more repairs may begin now.
pub fn repairs_at_limit(at_limit: RepairsAtLimit) -> Blocker {
    let RepairsAtLimit { underway, limit, of_namespace } = at_limit;
    if of_namespace {
        Blocker::NamespaceRepairsAtLimit { underway, limit }
    } else {
        Blocker::RepairsAtLimit { underway, limit }
    }
}

/// Whether the machine of a Node that was deleted may be emptied: no database runs on it, or nothing runs on
/// it any more. The Database controller takes its label off a machine before it gives it back, so a label
/// that is still there shows a Node that was deleted by hand: its database is moved as soon as another
/// machine is ready, and serves until then, however long that takes. `until` bounds that where nothing is
/// certain to move it.
pub fn may_drain(
    instance: &Instance,
    core_node: Option<&CoreNode>,
    kubelet: Kubelet,
    until: Option<Timestamp>,
    silence: Duration,
    now: Timestamp,
) -> Result<(), Blocker> {
    let Some(core_node) = core_node.filter(|node| node.labels().contains_key(DATABASE_NODE_LABEL)) else {
        return Ok(());
    };
    let is_silent = match kubelet {
        Kubelet::NotReady(since) => is_over(since, silence, now),
        Kubelet::Ready | Kubelet::Absent => false,
    };
    let is_over = until.is_some_and(|until| now >= until);
    if instance.state != InstanceState::Running || is_silent || is_over {
        return Ok(());
    }
    Err(Blocker::DatabaseRuns { core_node: core_node.name_any(), until })
}

/// Whether a second instance of one Node may be terminated: it is not the one that the Node's status names,
/// its core Node never got a database's label, and it has no data volume (`data` are those that are known).
/// `is_own`: its client token is one of this Node's, since a tag can be put on anything.
pub fn may_terminate_duplicate(
    instance: &Instance,
    is_own: bool,
    core_node: Option<&CoreNode>,
    data: &[VolumeId],
) -> Result<(), Blocker> {
    let kept = if !is_own {
        DuplicateKept::ForeignToken
    } else if core_node.is_some_and(|node| node.labels().contains_key(DATABASE_NODE_LABEL)) {
        DuplicateKept::Database
    } else if !data_volumes(instance, data).is_empty() {
        DuplicateKept::DataVolume
    } else {
        return Ok(());
    };
    Err(Blocker::Duplicate(instance.id.clone(), kept))
}

/// The volumes of an instance that hold the data of a database, of those that are known to: never all but the
/// root disk, since an image may have several disks.
pub fn data_volumes(instance: &Instance, data: &[VolumeId]) -> Vec<VolumeId> {
    instance.volumes.iter().filter(|id| data.contains(id)).cloned().collect()
}

/// Whether an EBS volume may be deleted: the Volume object is being deleted under a policy that says so, EC2
/// shows the volume available, and it carries the Volume's own tags. One that is released (`is_released`)
/// never is.
pub fn may_delete_volume(
    volume: &EbsVolume,
    wanted_tags: &std::collections::BTreeMap<String, String>,
    is_released: bool,
) -> Result<(), Blocker> {
    if is_released {
        return Err(Blocker::Released(volume.id.clone()));
    }
    if let Some((key, value)) = wanted_tags.iter().find(|(key, value)| volume.tags.get(*key) != Some(value)) {
        return Err(Blocker::TagMissing { id: volume.id.clone(), key: key.clone(), value: value.clone() });
    }
    if volume.state != VolumeState::Available {
        return Err(Blocker::NotAvailable(volume.id.clone(), volume.state));
    }
    Ok(())
}

/// Whether the snapshot of a Backup may be deleted: the Backup is being deleted under a policy that says so,
/// and the snapshot carries the Backup's own tags.
pub fn may_delete_snapshot(
    snapshot: &Snapshot,
    wanted_tags: &std::collections::BTreeMap<String, String>,
) -> Result<(), Blocker> {
    let missing = wanted_tags.iter().find(|(key, value)| snapshot.tags.get(*key) != Some(value));
    missing.map_or(Ok(()), |(key, value)| {
        Err(Blocker::SnapshotTagMissing { id: snapshot.id.clone(), key: key.clone(), value: value.clone() })
    })
}

/// Whether a database's machine may be released: the StatefulSet is stopped, its controller has seen that,
/// and the pod has ended. A machine that is lost, or that does not stop a pod within the pod's own grace, is
/// released all the same: the Node's own drain ends what is left on it, or its termination does.
pub fn may_give_back_machine(
    stateful_set: Option<&StatefulSet>,
    pod: Option<&Pod>,
    machine_is_lost: bool,
    now: Timestamp,
) -> Result<(), Blocker> {
    if machine_is_lost {
        return Ok(());
    }
    if let Some(pod) = pod {
        let name = pod.name_any();
        return match &pod.metadata.deletion_timestamp {
            // Kubernetes sets the time at which the grace ends.
            Some(ends) if now > ends.0 => Ok(()),
            Some(_) => Err(Blocker::PodStopping(name)),
            None if stateful_set.is_some() => Err(Blocker::PodRuns(name)),
            // Nothing would stop it but the Node's own drain.
            None => Ok(()),
        };
    }
    let Some(stateful_set) = stateful_set else { return Ok(()) };
    let is_stopped = stateful_set.spec.as_ref().and_then(|spec| spec.replicas) == Some(0);
    if is_stopped && is_observed(stateful_set) {
        return Ok(());
    }
    Err(Blocker::StatefulSetRuns(stateful_set.name_any()))
}

/// Whether the deleted claim of an adopted database may go: its PersistentVolume outlives it, and nothing
/// makes a pod, since Kubernetes would make an empty claim for that.
pub fn may_free_claim(
    persistent_volume: Option<&PersistentVolume>,
    stateful_set: Option<&StatefulSet>,
    pod: Option<&Pod>,
) -> bool {
    let policy = |it: &PersistentVolume| it.spec.as_ref()?.persistent_volume_reclaim_policy.clone();
    let is_stopped =
        |it: &StatefulSet| it.spec.as_ref().and_then(|spec| spec.replicas) == Some(0) && is_observed(it);
    persistent_volume.is_none_or(|it| policy(it).as_deref() == Some("Retain"))
        && stateful_set.is_none_or(is_stopped)
        && pod.is_none()
}

/// Whether a database may be moved away from the machine of this Node: at once while it is well, since its
/// pod ends there as any pod; once it is lost only when EC2 has shown that nothing on it can write any more.
pub fn may_move_from(node: &Node) -> Result<(), Blocker> {
    let is_lost = conditions::is_true(node.conditions(), ConditionType::Lost);
    if is_lost { fenced(node) } else { Ok(()) }
}

/// Whether the engine may be started on another machine while none carries the label, so that this Node's may
/// have been the last one. Once its Kubernetes node is gone, Kubernetes has forgotten the pods there (pod
/// garbage collection), and none of them keeps the next one waiting: EC2 must show that nothing writes.
pub fn may_start_beside(node: &Node, has_kubernetes_node: bool) -> Result<(), Blocker> {
    // Our finalizer is removed once EC2 has shown the end of the machine.
    if node.metadata.deletion_timestamp.is_some() && !finalizer::has(node) {
        return Ok(());
    }
    let has_joined = node.status.as_ref().is_some_and(|status| status.core_node_name.is_some());
    if has_joined && !has_kubernetes_node { fenced(node) } else { may_move_from(node) }
}

/// Whether EC2 has shown that nothing on the machine of this Node can write any more.
fn fenced(node: &Node) -> Result<(), Blocker> {
    let fenced = conditions::find(node.conditions(), ConditionType::Fenced);
    if conditions::is_true(node.conditions(), ConditionType::Fenced) {
        return Ok(());
    }
    let reason = fenced.and_then(|fenced| Reason::named(&fenced.reason)).unwrap_or(Reason::InstanceLost);
    let message = fenced.map(|fenced| fenced.message.clone());
    Err(Blocker::NotFenced { node: node.name_any(), reason, message })
}

/// Whether a Backup may be deleted with its snapshot because it is old: never the newest one of its Database
/// that can be restored. `all`: those that are kept for the same reason.
pub fn may_expire(backup: &Backup, all: &[&Backup]) -> bool {
    let of = |it: &Backup| {
        let status = it.status.as_ref()?;
        Some((status.source.as_ref()?.database_uid.clone(), status.started_at.as_ref()?.0))
    };
    let Some((database, started_at)) = of(backup) else { return false };
    let is_newer = |(of_database, at): (String, Timestamp)| of_database == database && at > started_at;
    all.iter().any(|other| other.can_be_restored() && of(other).is_some_and(is_newer))
}

/// Whether a Database may be deleted that a Backup was restored in: this BackupSchedule created it and owns
/// it, no person has taken the label off it or protects it, and it is the one that was written down. Where
/// none is written down it is left of a verification that is over, or whose record is lost.
pub fn may_delete_restored(
    database: &Database,
    running: Option<&Verification>,
    schedule: &BackupSchedule,
) -> bool {
    let uid = database.metadata.uid.as_ref();
    let owner = controller_of(database).map(|owner| &owner.uid);
    let is_noted = |noted: &Verification| {
        noted.database_name == database.name_any()
            && noted.database_uid.as_ref().is_none_or(|seen| uid == Some(seen))
    };
    running.is_none_or(is_noted)
        && owner.is_some()
        && owner == schedule.metadata.uid.as_ref()
        && database.labels().get(VERIFICATION_LABEL) == Some(&schedule.name_any())
        && !database.spec.deletion_protection
}

/// Whether a pod may be deleted so that it comes back from the new template: the StatefulSet's controller has
/// seen that template. A pod deleted earlier would come back from the old one.
pub fn may_replace_pod(stateful_set: &StatefulSet) -> Result<(), Blocker> {
    if is_observed(stateful_set) {
        return Ok(());
    }
    Err(Blocker::ChangeNotSeen(stateful_set.name_any()))
}

/// Whether the StatefulSet's controller has seen its newest spec.
pub fn is_observed(stateful_set: &StatefulSet) -> bool {
    let observed = stateful_set.status.as_ref().and_then(|status| status.observed_generation);
    observed.is_some() && observed >= stateful_set.metadata.generation
}

#[cfg(test)]
mod tests;

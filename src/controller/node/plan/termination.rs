//! The plan of a Node that is being deleted, backwards and in stages: cordon, pods ended, volumes detached,
//! terminated, released. Pure.

use jiff::Timestamp;
use kube::ResourceExt;

use super::action::{Action, Plan};
use super::facts::{
    again_to_terminate, attempt_facts, evictions, is_own, may_have_forgotten_a_launch, proven_absent,
    terminate,
};
use super::judgement::{Judged, Judgement, Lost};
use super::{adoption, duplicates, facts, fence, release};
use crate::api::{ConditionType, InstanceId};
use crate::cloud::{Instance, InstanceState};
use crate::cluster::finalizer;
use crate::cluster::ownership::Ownership;
use crate::controller::conditions;
use crate::controller::creation::judge::{Verdict, judge};
use crate::controller::memory::issued_requests::Again;
use crate::controller::node::messages;
use crate::controller::node::observe::Observed;
use crate::controller::node::pods;
use crate::controller::node::registration::is_live;
use crate::controller::node::wait::NodeWait;
use crate::controller::node::wait::deletion::DeletionWait;
use crate::controller::node::wait::launch::LaunchWait;
use crate::controller::safety::{self, Kubelet};
use crate::time::later;

pub(super) fn plan(observed: &Observed, judged: &Judged, now: Timestamp) -> Plan {
    if !finalizer::has(&observed.node) {
        return Plan::wait(DeletionWait::OtherFinalizers);
    }
    if observed.instances.swept_at.is_none() {
        return Plan::wait(NodeWait::FirstSync);
    }
    let status = observed.node.status.clone().unwrap_or_default();
    let live: Vec<&Instance> =
        observed.instances.instances.iter().filter(|instance| is_live(instance)).collect();
    let own = observed.node.spec.instance_id.as_ref().or(status.instance_id.as_ref());
    if let Some(own) = own.filter(|own| !safety::may_end(&observed.node, own)) {
        // A second instance was never a database's.
        let others: Vec<&Instance> = live.iter().copied().filter(|other| other.id != *own).collect();
        let is_adopted = observed.node.spec.instance_id.is_some();
        if !others.is_empty() && !is_adopted {
            return released(observed, &others, now);
        }
        return release::plan(observed, own, now);
    }
    if let Some(named) = &observed.node.spec.instance_id
        && status.instance_id.as_ref() != Some(named)
    {
        return unrecorded(observed, named, &live, now);
    }
    if let Some(id) = &status.instance_id {
        let shown = observed.instances.by_id(id);
        if let Some(plan) = adoption::untagged(observed, id, now).filter(|_| shown.is_none()) {
            return plan;
        }
        return match shown {
            Some(instance) => known(observed, instance, &live, judged, now),
            None if proven_absent(observed, status.creation.as_ref()).is_none() => {
                Plan::wait(DeletionWait::Absence(id.clone())).pending()
            }
            None => released(observed, &live, now),
        };
    }
    match &status.creation {
        None => match live.iter().find(|instance| is_own(observed, instance)) {
            // The status was lost: a machine of ours goes the whole way, too. What has only its tags is not.
            Some(instance) => Plan::act(
                vec![Action::RecordInstance(instance.id.clone())],
                DeletionWait::Adopted(instance.id.clone()),
            )
            .pending(),
            None if may_have_forgotten_a_launch(observed) => Plan::wait(LaunchWait::StatusLost).pending(),
            None => released(observed, &live, now),
        },
        Some(launch) => {
            match judge(attempt_facts(observed, launch, true), observed.timing.client_token_max_age, now) {
                Verdict::Adopt(id) => {
                    Plan::act(vec![Action::RecordInstance(id.clone())], DeletionWait::Found(id)).pending()
                }
                Verdict::Refused(_) | Verdict::ProvenAbsent(_) => released(observed, &live, now),
                Verdict::Resend => Plan::wait(DeletionWait::NotResent).pending(),
                Verdict::Wait(doubt, _) => {
                    Plan::wait(LaunchWait::InDoubt(launch.attempt.number, doubt)).pending()
                }
            }
        }
    }
}

/// The instance of the spec was not recorded, or the status was lost: only what carries this Node's tags goes
/// the whole way.
fn unrecorded(observed: &Observed, named: &InstanceId, live: &[&Instance], now: Timestamp) -> Plan {
    let Some(shown) = adoption::shown(observed, named) else { return adoption::not_read(observed, named) };
    if !shown.iter().any(|instance| adoption::is_tagged(observed, instance)) {
        return released(observed, live, now);
    }
    let actions = vec![Action::RecordInstance(named.clone())];
    Plan::act(actions, DeletionWait::Adopted(named.clone())).pending()
}

/// EC2 shows the Node's instance.
fn known(
    observed: &Observed,
    instance: &Instance,
    live: &[&Instance],
    judged: &Judged,
    now: Timestamp,
) -> Plan {
    let id = &instance.id;
    let declared = match &judged.loss {
        Judgement::Lost(declared) => Some(declared),
        Judgement::Well | Judgement::Suspected(_) | Judgement::Due(..) => None,
    };
    match instance.state {
        InstanceState::Terminated => released(observed, live, now),
        InstanceState::ShuttingDown if declared.is_none() => {
            Plan::wait(DeletionWait::ShuttingDown(vec![id.clone()])).pending()
        }
        InstanceState::Pending
        | InstanceState::Running
        | InstanceState::Stopping
        | InstanceState::Stopped
        | InstanceState::ShuttingDown
        | InstanceState::Unknown => match declared {
            Some(declared) => declared_lost(observed, instance, declared, now),
            None => drained(observed, instance, now),
        },
    }
}

/// The machine was declared lost: a stopped one is terminated, another is fenced first.
fn declared_lost(observed: &Observed, instance: &Instance, declared: &Lost, now: Timestamp) -> Plan {
    let id = &instance.id;
    if instance.state != InstanceState::Stopped {
        return fence::staged(observed, id, declared, now);
    }
    let loss = declared.fence.message.clone();
    let mut plan = terminate(observed, id, loss.clone(), DeletionWait::StoppedTerminated { loss }, now);
    plan.actions.splice(0..0, fence::out_of_service(observed, true));
    plan
}

/// The wait for the move of the database that runs on the machine. A Database that owns the Node moves it;
/// one that is being deleted with the propagation policy Orphan may not, and has a time for that, in which
/// this process has run; an orphaned Node has none.
fn awaiting_move(observed: &Observed, instance: &Instance, now: Timestamp) -> Option<Plan> {
    let timing = &observed.timing;
    let until = match observed.ownership {
        Ownership::Orphaned => return None,
        Ownership::Owned => None,
        Ownership::Unowned => {
            let deleted_at = observed.node.metadata.deletion_timestamp.as_ref().map_or(now, |time| time.0);
            Some(later(deleted_at.max(observed.leading_since), timing.registration_timeout))
        }
    };
    let (core_node, silence) = (observed.core_node.as_ref(), timing.kubelet_silence_timeout);
    let kubelet = facts::kubelet(observed, now);
    let blocker = safety::may_drain(instance, core_node, kubelet, until, silence, now).err()?;
    // Its kubelet's silence has a bound of its own; the label and the instance wake the Node.
    let interval =
        if kubelet == Kubelet::Ready { timing.instance_sync_interval } else { timing.requeue_interval };
    let next = later(now, interval);
    Some(Plan::wait(blocker).until(until.map_or(next, |until| next.min(until)), now))
}

/// Empties the machine and terminates it.
fn drained(observed: &Observed, instance: &Instance, now: Timestamp) -> Plan {
    if let Some(plan) = awaiting_move(observed, instance, now) {
        return plan;
    }
    let mut actions = Vec::new();
    if let Some(core_node) = &observed.core_node {
        if !safety::is_cordoned(core_node) {
            actions.push(Action::Cordon(core_node.name_any(), core_node.uid().unwrap_or_default()));
        }
        actions.extend(evictions(observed));
    }
    let kubelet = facts::kubelet(observed, now);
    let pods = pods::awaited(&observed.pods, &observed.node, &observed.timing, now);
    let (attachments, data) = if is_detaching_overdue(observed, now) {
        (&[][..], &[][..])
    } else {
        (&observed.attachments[..], &observed.data_volumes[..])
    };
    match safety::may_terminate(
        instance,
        kubelet,
        &pods,
        attachments,
        data,
        observed.timing.kubelet_silence_timeout,
        now,
    ) {
        Ok(()) => {
            let wait = DeletionWait::Terminated(instance.id.clone());
            let mut plan =
                terminate(observed, &instance.id, messages::events::NODE_DELETED.to_owned(), wait, now);
            plan.actions.splice(0..0, actions);
            plan
        }
        Err(blocker) => {
            // A VolumeAttachment that goes wakes us; pods and what EC2 has attached do not.
            let wakes = pods.is_empty() && !observed.attachments.is_empty();
            let requeue = Some(if wakes {
                observed.timing.requeue_interval
            } else {
                observed.timing.requeue_interval.div_f64(5.0)
            });
            Plan { requeue, ..Plan::act(actions, blocker) }
        }
    }
}

/// Whether the volumes are not awaited any more: a pod of the database does not end, or none has been left
/// for so long. Nothing is lost by it, since no engine writes to them any more, or it would not end by any
/// other means: termination ends everything on the machine, and nothing moves before EC2 shows it.
fn is_detaching_overdue(observed: &Observed, now: Timestamp) -> bool {
    let drained = conditions::since(observed.node.conditions(), ConditionType::Drained, true);
    let silence = observed.timing.kubelet_silence_timeout;
    drained.is_some_and(|since| now >= later(since, silence))
        || pods::overdue(&observed.pods, &observed.node, &observed.timing, now).next().is_some()
}

/// The Node's own instance is gone for certain. What has only its tags stays, and nothing waits for it.
fn released(observed: &Observed, live: &[&Instance], now: Timestamp) -> Plan {
    let is_ours = |instance: &&Instance| !duplicates::is_foreign(observed, instance);
    let live: Vec<&Instance> = live.iter().copied().filter(is_ours).collect();
    if !live.is_empty() {
        let mut actions = Vec::new();
        let mut blockers = Vec::new();
        for instance in &live {
            match safety::may_terminate_duplicate(
                instance,
                is_own(observed, instance),
                observed.core_node_of(instance),
                &observed.data_volumes,
            ) {
                Ok(()) if again_to_terminate(observed, &instance.id, now) == Again::Now => {
                    actions.push(Action::Terminate(
                        instance.id.clone(),
                        messages::events::NODE_DELETED.to_owned(),
                    ));
                }
                Ok(()) => {}
                Err(blocker) => blockers.push(blocker),
            }
        }
        let wait = if blockers.is_empty() {
            DeletionWait::ShuttingDown(live.iter().map(|instance| instance.id.clone()).collect())
        } else {
            DeletionWait::Duplicates(blockers)
        };
        return Plan::act(actions, wait).pending();
    }
    let is_ending = |it: &&Instance| it.state == InstanceState::ShuttingDown && is_ours(it);
    if let Some(shutting) = observed.instances.instances.iter().find(is_ending) {
        return Plan::wait(DeletionWait::ShuttingDown(vec![shutting.id.clone()])).pending();
    }
    let mut actions = fence::out_of_service(observed, false);
    // While something is attached the Kubernetes node must stay: without it Kubernetes waits six minutes
    // before it detaches.
    let status = observed.node.status.clone().unwrap_or_default();
    if let Some(attached) = fence::attached(observed, &status, now).filter(|_| observed.core_node.is_some()) {
        return Plan {
            requeue: Some(observed.timing.requeue_interval),
            ..Plan::act(actions, DeletionWait::Attached(attached))
        };
    }
    if let Some(core_node) = &observed.core_node {
        actions.push(Action::ReleaseCoreNode(Box::new(core_node.clone())));
    }
    actions.push(Action::RemoveFinalizer);
    Plan::act(actions, DeletionWait::Gone)
}

//! Which facts mean that a machine is lost, and after how long. Pure.

use jiff::Timestamp;

use super::facts::{core_node_name, is_impaired, kubelet, proven_absent};
use super::judgement::{Judgement, Loss, Lost};
use crate::api::{ConditionType, InstanceId, NodeStatus};
use crate::cloud::InstanceState;
use crate::controller::conditions;
use crate::controller::node::cause::{Cause, LossSigns};
use crate::controller::node::observe::Observed;
use crate::controller::node::registration::has_joined;
use crate::controller::recurrence;
use crate::controller::safety::{self, Kubelet};
use crate::time::{later, whole_second};

/// Judges the machine that the status names.
pub fn judge(observed: &Observed, status: &NodeStatus, now: Timestamp) -> Judgement {
    if let Some(fence) = &status.fence {
        return Judgement::Lost(Lost::by(fence.clone(), &observed.timing, now));
    }
    // What is deleted goes its own way, which ends in the same proof.
    if observed.node.metadata.deletion_timestamp.is_some() || observed.instances.swept_at.is_none() {
        return Judgement::Well;
    }
    let spec = &observed.node.spec;
    let (is_adopted, has_joined) =
        (spec.instance_id.is_some(), has_joined(status) || observed.core_node.is_some());
    let Some(id) = status.instance_id.as_ref().filter(|_| has_joined || is_adopted) else {
        return Judgement::Well;
    };
    let mut causes = causes(observed, status, id, now);
    // What would be released is fenced for nothing, and what has not joined is waited for.
    if spec.release || (is_adopted && !has_joined) {
        causes.retain(|(cause, _)| *cause == Cause::Terminated);
    }
    let timing = &observed.timing;
    let before = |since| recurrence::before(&observed.node, since, timing);
    // What ended the machines before it may end this one, too, and the next: it has longer to come back.
    let due = |cause: Cause, since: Timestamp| {
        let pause = cause.has_grace().then(|| recurrence::pause(before(since), timing));
        later(cause.due(since, timing), pause.unwrap_or_default())
    };
    let Some((cause, since)) =
        causes.iter().copied().min_by_key(|(cause, since)| (due(*cause, *since), *cause))
    else {
        return Judgement::Well;
    };
    let signs = LossSigns { instance: id.clone(), core_node: core_node_name(observed, status), causes };
    let loss = Loss { cause, since, due: due(cause, since), before: before(since), signs };
    // What EC2 ended is ended, even if our clock was set back since that was reported.
    if cause.has_grace() && now < loss.due {
        return Judgement::Suspected(loss);
    }
    let declared = Lost::by(loss.declared_lost(now), timing, now);
    Judgement::Due(loss, declared)
}

/// Everything that speaks against the machine, each with its time.
fn causes(
    observed: &Observed,
    status: &NodeStatus,
    id: &InstanceId,
    now: Timestamp,
) -> Vec<(Cause, Timestamp)> {
    let since =
        |kind| conditions::since(&status.conditions, kind, false).unwrap_or_else(|| whole_second(now));
    let instance = observed.instances.by_id(id);
    if instance.is_none() && proven_absent(observed, status.creation.as_ref()).is_some() {
        return vec![(Cause::Terminated, since(ConditionType::Launched))];
    }
    let ended = match instance.map(|instance| instance.state) {
        Some(InstanceState::Terminated) => Some(Cause::Terminated),
        Some(InstanceState::Stopped) => Some(Cause::Stopped),
        Some(InstanceState::ShuttingDown) => Some(Cause::ShuttingDown),
        Some(InstanceState::Stopping) => Some(Cause::Stopping),
        Some(InstanceState::Pending | InstanceState::Running | InstanceState::Unknown) | None => None,
    };
    if let Some(cause) = ended {
        return vec![(cause, since(ConditionType::Launched))];
    }
    let mut causes = Vec::new();
    if is_impaired(observed, id) {
        causes.push((
            Cause::Impaired,
            status.impaired_since.as_ref().map_or_else(|| whole_second(now), |since| since.0),
        ));
    }
    // A machine that was never ready for the database is waited for while its kubelet says why it is not: an
    // image or a network that is wrong would do the same to the next. EC2's failing check is about the host
    // alone, and a kubelet that has gone silent is not made to report by waiting.
    let was_ready = conditions::is_true(&status.conditions, ConditionType::Initialized);
    let reports = observed.core_node.as_ref().is_some_and(|core_node| !safety::is_silent(core_node));
    if !was_ready && reports {
        return causes;
    }
    match kubelet(observed, now) {
        Kubelet::NotReady(since) if since < Timestamp::MAX => causes.push((Cause::NotReady, since)),
        // Without any time its silence is not proven.
        Kubelet::NotReady(_) | Kubelet::Ready => {}
        Kubelet::Absent => causes.push((Cause::NodeGone, since(ConditionType::Registered))),
    }
    causes
}

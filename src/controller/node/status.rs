//! The status step of the Node controller: computes the NodeStatus, its conditions, and the events of their
//! changes. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::messages;
use super::observe::Observed;
use super::plan::action::Plan;
use super::plan::judgement::{Judgement, Lost, Stage};
use super::plan::{departing, duplicates, facts, offering};
use super::pods;
use super::registration::{self, provider_id};
use super::wait::NodeWait;
use super::wait::loss::LossWait;
use crate::api::ConditionType as Type;
use crate::api::node::{MachineHealth, ReplacementNeeded};
use crate::api::{EventReason, Node, NodeStatus, Reason};
use crate::cloud::{Instance, InstanceState};
use crate::cluster::events::Happened;
use crate::cluster::ownership::Ownership;
use crate::controller::call_blocked::CallBlocked;
use crate::controller::conditions::{self, Entry};
use crate::controller::pass::acted::{Acted, why};
use crate::controller::safety::{self, Kubelet};
use crate::time::{later, whole_second};

/// No launch was sent after the status was found lost: a second that has begun counts as over.
const A_SECOND: Duration = Duration::from_secs(1);

/// The status to write: the fields of the create protocol as the last write left them, everything else from
/// what was seen.
pub fn status(observed: &Observed, plan: &Plan, acted: &Acted<Node>, now: Timestamp) -> NodeStatus {
    let old = acted.object.status.clone().unwrap_or_default();
    // Right after a start nothing is known of EC2 yet: what was said before stands.
    if !facts::is_known(observed) && !old.conditions.is_empty() {
        return old;
    }
    let instance = old.instance_id.as_ref().and_then(|id| observed.instances.by_id(id));
    let core_node_name =
        observed.core_node.as_ref().map(ResourceExt::name_any).or_else(|| old.core_node_name.clone());
    let loss = match (&plan.judged.loss, &old.fence) {
        // What was decided is written down by now.
        (Judgement::Due(_, lost), Some(_)) => &Judgement::Lost(lost.clone()),
        (loss, _) => loss,
    };
    let seen = Seen { observed, plan, acted, loss, now };
    let entries = entries(seen, instance, core_node_name.is_some());
    let is_impaired = old.instance_id.as_ref().is_some_and(|id| facts::is_impaired(observed, id));
    let health = health(&seen, core_node_name.is_some());
    let impaired_since = old.impaired_since.clone().unwrap_or_else(|| Time(whole_second(now)));
    let is_lost = facts::has_lost_status(observed) || facts::has_lost_adoption(&observed.node);
    let lost_at =
        old.status_lost_at.clone().or_else(|| is_lost.then(|| Time(later(whole_second(now), A_SECOND))));
    NodeStatus {
        // What was seen and judged: the object of the last write may have a newer spec, which no pass has
        // looked at.
        observed_generation: observed.node.metadata.generation,
        conditions: conditions::merge(&old.conditions, &entries, observed.node.metadata.generation, now),
        provider_id: instance.map(provider_id).or(old.provider_id),
        instance_type: instance.map(|instance| instance.instance_type.clone()).or(old.instance_type),
        zone: instance.map(|instance| instance.zone.clone()).or(old.zone),
        core_node_name,
        status_lost_at: lost_at.filter(|_| old.creation.is_none() && old.instance_id.is_none()),
        creation: old.creation,
        instance_id: old.instance_id,
        impaired_since: is_impaired.then_some(impaired_since),
        not_ready_since: not_ready_since(observed, old.not_ready_since, now),
        fence: old.fence,
        health,
        replacement_needed: replacement_needed(plan),
    }
}

/// Since when the kubelet is seen not Ready.
fn not_ready_since(observed: &Observed, seen: Option<Time>, now: Timestamp) -> Option<Time> {
    match safety::kubelet(observed.core_node.as_ref()) {
        Kubelet::NotReady(_) => seen.or_else(|| Some(Time(whole_second(now)))),
        Kubelet::Ready | Kubelet::Absent => None,
    }
}

/// How a machine that has joined is; nothing while it has not.
fn health(seen: &Seen, has_joined: bool) -> Option<MachineHealth> {
    let is_fence_failed = |lost: &Lost| seen.plan.judged.proof.is_none() && lost.stage == Stage::Failed;
    has_joined.then(|| match seen.loss {
        Judgement::Well => MachineHealth::Healthy,
        Judgement::Due(..) if seen.is_repair_postponed() => MachineHealth::RepairPostponed,
        Judgement::Suspected(_) | Judgement::Due(..) => MachineHealth::Suspected,
        Judgement::Lost(lost) if is_fence_failed(lost) => MachineHealth::FenceFailed,
        Judgement::Lost(_) => MachineHealth::Lost,
    })
}

/// What the Database controller must know of a machine that cannot stay.
fn replacement_needed(plan: &Plan) -> Option<ReplacementNeeded> {
    let wait = plan.waiting.as_ref()?;
    Some(ReplacementNeeded { cause: departing::cause(wait)?, message: wait.message() })
}

/// What a pass has seen, planned and done.
#[derive(Clone, Copy)]
struct Seen<'a> {
    observed: &'a Observed,
    plan: &'a Plan,
    acted: &'a Acted<Node>,
    /// As the plan judged it, and as lost once that is written down.
    loss: &'a Judgement,
    now: Timestamp,
}

impl Seen<'_> {
    /// Whether the repair of this machine is postponed, and nothing else came in the way of this pass.
    fn is_repair_postponed(&self) -> bool {
        let is_planned = matches!(self.plan.waiting, Some(NodeWait::Loss(LossWait::RepairPostponed(..))));
        match &self.acted.call_blocked {
            Some(CallBlocked::RepairPostponed { .. }) => true,
            Some(CallBlocked::RateLimited { .. } | CallBlocked::Refused { .. }) => false,
            None => is_planned && self.acted.error.is_none(),
        }
    }

    /// Whether the machine is terminated with its Node although its kubelet does not report.
    fn is_forced(&self) -> bool {
        let is_silent = match facts::kubelet(self.observed, self.now) {
            Kubelet::NotReady(since) => {
                self.now >= later(since, self.observed.timing.kubelet_silence_timeout)
            }
            Kubelet::Ready | Kubelet::Absent => false,
        };
        self.is_deleting() && !self.is_released() && is_silent
    }

    /// Whether the instance goes on running without its Node: nothing of its end is reported then.
    fn is_released(&self) -> bool {
        let node = &self.observed.node;
        let recorded = || node.status.as_ref()?.instance_id.as_ref();
        node.spec.instance_id.as_ref().or_else(recorded).is_some_and(|id| !safety::may_end(node, id))
    }

    fn is_deleting(&self) -> bool {
        self.observed.node.metadata.deletion_timestamp.is_some()
    }
}

fn entries(seen: Seen<'_>, instance: Option<&Instance>, has_joined: bool) -> Vec<Entry> {
    let Seen { observed, plan, acted, .. } = seen;
    let waiting = plan.waiting.as_ref().map(|waiting| (waiting.reason(), waiting.message()));
    let (reason, message) = why(acted.error.as_ref(), acted.call_blocked.as_ref(), waiting);
    let running = instance.filter(|instance| instance.state == InstanceState::Running);
    let was_initialized = has_joined && conditions::is_true(acted.object.conditions(), Type::Initialized);
    let is_kubelet_ready = safety::kubelet(observed.core_node.as_ref()) == Kubelet::Ready;
    let is_ready_now = running.is_some() && is_kubelet_ready && observed.driver_registered;
    let is_held = observed.core_node.as_ref().is_some_and(crate::cluster::finalizer::has);
    let is_dedicated = observed
        .core_node
        .as_ref()
        .is_some_and(|core_node| registration::is_dedicated(&observed.node, core_node));
    let is_initialized = was_initialized || (is_ready_now && is_held && is_dedicated);
    let steps = [
        (Type::Launched, running.map(|instance| messages::launched(&instance.id))),
        (
            Type::Registered,
            observed.core_node.as_ref().map(|core_node| messages::registered(&core_node.name_any())),
        ),
        (Type::Initialized, is_initialized.then(|| messages::INITIALIZED.to_owned())),
    ];
    let ready = if seen.is_deleting() {
        Entry::no(Type::Ready, Reason::Deleting, message.clone())
    } else if is_initialized && is_ready_now && plan.waiting.is_none() {
        Entry::yes(Type::Ready, Reason::AsExpected, messages::READY)
    } else {
        Entry::no(Type::Ready, reason, message.clone())
    };
    let stalled = plan.waiting.as_ref().filter(|waiting| waiting.is_stalled());
    let stalled = conditions::stalled(stalled.map(|waiting| (waiting.reason(), waiting.message())));
    let mut entries = vec![ready];
    entries.extend(conditions::in_order(steps, reason, &message));
    entries.extend([drifted(observed, acted), stalled, lost(seen, &message)]);
    entries.extend(fenced(seen));
    entries.extend(foreign(observed));
    if seen.is_deleting() {
        if !seen.is_released() {
            entries.extend(leaving(observed, instance, &message));
        }
    } else if observed.ownership == Ownership::Orphaned {
        entries.push(Entry::yes(Type::Orphaned, Reason::Orphaned, messages::ORPHANED));
    }
    entries
}

/// The instances that have only this Node's tags: they are neither recorded nor ended, and nothing waits for
/// them.
fn foreign(observed: &Observed) -> Option<Entry> {
    let shown = observed.instances.instances.iter();
    let is_left_alone = |it: &&Instance| registration::is_live(it) && duplicates::is_foreign(observed, it);
    let ids: Vec<&str> = shown.filter(is_left_alone).map(|it| it.id.0.as_str()).collect();
    let entry =
        || Entry::yes(Type::ForeignInstance, Reason::DuplicateInstance, messages::foreign_instances(&ids));
    (!ids.is_empty()).then(entry)
}

/// Whether the machine is declared lost, or what speaks against it.
fn lost(seen: Seen<'_>, message: &str) -> Entry {
    match seen.loss {
        Judgement::Lost(Lost { fence, .. }) => {
            let reason = Reason::named(&fence.cause).unwrap_or(Reason::InstanceLost);
            Entry::yes(Type::Lost, reason, &fence.message)
        }
        Judgement::Well => Entry::no(Type::Lost, Reason::Progressing, messages::NOT_LOST),
        Judgement::Suspected(loss) => {
            Entry::no(Type::Lost, loss.cause.reason(), messages::suspected(&loss.signs, loss.due))
        }
        Judgement::Due(..) if seen.is_repair_postponed() => {
            Entry::no(Type::Lost, Reason::RepairPostponed, message)
        }
        Judgement::Due(loss, _) => Entry::no(Type::Lost, loss.cause.reason(), loss.signs.message()),
    }
}

/// Whether anything on a machine that is declared lost, or terminated by force, can still write.
fn fenced(seen: Seen<'_>) -> Option<Entry> {
    let proven = || {
        let proof = seen.plan.judged.proof.as_ref()?;
        Some(Entry::yes(Type::Fenced, Reason::AsExpected, messages::fenced(proof)))
    };
    let not_proven = match seen.loss {
        Judgement::Lost(lost) => {
            let reason = if lost.stage == Stage::Failed { Reason::FenceFailed } else { Reason::Fencing };
            Entry::no(Type::Fenced, reason, messages::not_fenced(lost.stage.step(), lost.begun))
        }
        Judgement::Well | Judgement::Suspected(_) | Judgement::Due(..) if seen.is_forced() => {
            Entry::no(Type::Fenced, Reason::Fencing, messages::FENCED_BY_TERMINATION)
        }
        Judgement::Well | Judgement::Suspected(_) | Judgement::Due(..) => return None,
    };
    Some(proven().unwrap_or(not_proven))
}

fn drifted(observed: &Observed, acted: &Acted<Node>) -> Entry {
    let launch = acted.object.status.as_ref().and_then(|status| status.creation.as_ref());
    let (Some(launch), Some(class)) = (launch, &observed.class) else {
        return Entry::no(Type::Drifted, Reason::Pending, messages::NOT_COMPARED);
    };
    let fields = offering::drift(launch, &class.spec);
    if fields.is_empty() {
        return Entry::no(Type::Drifted, Reason::UpToDate, messages::UP_TO_DATE);
    }
    Entry::yes(Type::Drifted, Reason::NodeClassChanged, messages::drifted(&class.name_any(), &fields))
}

/// The stages of a planned termination, each with what blocks it.
fn leaving(observed: &Observed, instance: Option<&Instance>, message: &str) -> [Entry; 3] {
    let is_terminated = instance.is_none_or(|instance| instance.state == InstanceState::Terminated);
    let drained = if is_terminated || pods::own(&observed.pods, &observed.node).next().is_none() {
        Entry::yes(Type::Drained, Reason::AsExpected, messages::DRAINED)
    } else {
        Entry::no(Type::Drained, Reason::AwaitingDrain, message)
    };
    let attached = !observed.attachments.is_empty()
        || instance
            .is_some_and(|instance| !safety::data_volumes(instance, &observed.data_volumes).is_empty());
    let detached = if observed.attachments.is_empty() && (is_terminated || !attached) {
        Entry::yes(Type::VolumeDetached, Reason::AsExpected, messages::DETACHED)
    } else {
        Entry::no(Type::VolumeDetached, Reason::AwaitingDetach, message)
    };
    let terminated = if is_terminated {
        Entry::yes(Type::InstanceTerminated, Reason::AsExpected, messages::TERMINATED)
    } else {
        Entry::no(Type::InstanceTerminated, Reason::AwaitingTermination, message)
    };
    [drained, detached, terminated]
}

/// What changed so that an event reports it.
pub fn changes(old: &NodeStatus, new: &NodeStatus) -> Vec<Happened> {
    let mut happened = Vec::new();
    let became_true =
        |kind| !conditions::is_true(&old.conditions, kind) && conditions::is_true(&new.conditions, kind);
    // That it is ready for the first time, its Database says.
    if became_true(Type::Ready) && conditions::is_true(&old.conditions, Type::Initialized) {
        let name = new.core_node_name.as_deref().unwrap_or_default();
        happened.push(Happened::normal(EventReason::NodeReady, messages::events::node_ready(name)));
    }
    if became_true(Type::Fenced)
        && let Some(fenced) = conditions::find(&new.conditions, Type::Fenced)
    {
        happened.push(Happened::normal(EventReason::MachineFenced, fenced.message.clone()));
    }
    if became_true(Type::Orphaned) {
        happened.push(Happened::warning(EventReason::Orphaned, messages::ORPHANED.to_owned()));
    }
    let cause = |status: &NodeStatus| status.replacement_needed.as_ref().map(|needed| needed.cause);
    if let Some(needed) = new.replacement_needed.as_ref().filter(|_| cause(old) != cause(new)) {
        happened.push(Happened::warning(EventReason::ReplacementNeeded, needed.message.clone()));
    }
    let sign = match new.health {
        Some(MachineHealth::Suspected) => Some((Type::Lost, EventReason::MachineSuspected)),
        Some(MachineHealth::RepairPostponed) => Some((Type::Lost, EventReason::RepairPostponed)),
        Some(MachineHealth::FenceFailed) => Some((Type::Fenced, EventReason::FenceFailed)),
        Some(MachineHealth::Healthy | MachineHealth::Lost | MachineHealth::Unknown) | None => None,
    };
    if let Some((kind, event)) = sign
        && let Some(reported) = conditions::find(&new.conditions, kind)
        // The same sign is reported once: only that it was reported is read back, not what it was.
        && conditions::find(&old.conditions, kind).is_none_or(|before| before.reason != reported.reason)
    {
        happened.push(Happened::warning(event, reported.message.clone()));
    }
    happened
}

/// How long it took from the first sign of a loss to its proof, when the proof is new.
pub fn fenced_after(old: &NodeStatus, new: &NodeStatus) -> Option<Duration> {
    let is_new = !conditions::is_true(&old.conditions, Type::Fenced)
        && conditions::is_true(&new.conditions, Type::Fenced);
    let proven = conditions::find(&new.conditions, Type::Fenced).filter(|_| is_new)?;
    let since = new.fence.as_ref()?.since.0;
    Some(Duration::try_from(proven.last_transition_time.0.duration_since(since)).unwrap_or_default())
}

/// How long it took from the decision to launch the machine to its registration, when that is new.
pub fn joined_after(old: &NodeStatus, new: &NodeStatus) -> Option<Duration> {
    let is_new = old.core_node_name.is_none() && new.core_node_name.is_some();
    let registered = conditions::since(&new.conditions, Type::Registered, true).filter(|_| is_new)?;
    let launched = new.creation.as_ref()?.attempt.started_at.0;
    Some(Duration::try_from(registered.duration_since(launched)).unwrap_or_default())
}

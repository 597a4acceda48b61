//! The status step of the Node controller: computes the NodeStatus, its conditions, and the events of their changes. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::messages;
use super::observe::Observed;
use super::plan::action::{Plan, Repair};
use super::plan::fence::{self, Stage};
use super::plan::loss::{self, Judgement};
use super::plan::{facts, offering};
use super::registration::provider_id;
use super::wait::{JoinWait, LossWait, NodeWait};

use crate::api::ConditionType as Type;
use crate::api::node::{Fence, MachineHealth, ReplacementCause, ReplacementNeeded};
use crate::api::{EventReason, Node, NodeStatus, Reason};
use crate::cloud::{Instance, InstanceState};
use crate::cluster::events::Happened;
use crate::controller::conditions::{self, Entry, whole_second};
use crate::controller::pass::acted::{Acted, why};
use crate::controller::safety::{self, Kubelet};
use crate::time::later;

/// The status to write: the fields of the create protocol as the last write left them, everything else from what was seen.
pub fn status(observed: &Observed, plan: &Plan, acted: &Acted<Node>, repair: Repair, now: Timestamp) -> NodeStatus {
    let old = acted.object.status.clone().unwrap_or_default();
    // Right after a start nothing is known of EC2 yet: what was said before stands.
    if observed.instances.swept_at.is_none() && !old.conditions.is_empty() {
        return old;
    }
    let instance = old.instance_id.as_ref().and_then(|id| observed.instances.by_id(id));
    let core_node_name = observed.core_node.as_ref().map(ResourceExt::name_any).or_else(|| old.core_node_name.clone());
    let seen = Seen { observed, plan, acted, repair, now };
    let entries = entries(seen, instance, core_node_name.is_some());
    let is_impaired = old.instance_id.as_ref().is_some_and(|id| facts::is_impaired(observed, id));
    let health = health(&seen, &old, core_node_name.is_some());
    let impaired_since = old.impaired_since.clone().unwrap_or_else(|| Time(whole_second(now)));
    NodeStatus {
        // What was seen and judged: the object of the last write may have a newer spec, which nobody has looked at.
        observed_generation: observed.node.metadata.generation,
        conditions: conditions::merge(&old.conditions, &entries, observed.node.metadata.generation, now),
        provider_id: instance.map(provider_id).or(old.provider_id),
        instance_type: instance.map(|instance| instance.instance_type.clone()).or(old.instance_type),
        zone: instance.map(|instance| instance.zone.clone()).or(old.zone),
        core_node_name,
        launch: old.launch,
        instance_id: old.instance_id,
        impaired_since: is_impaired.then_some(impaired_since),
        fence: old.fence,
        health,
        replacement_needed: replacement_needed(plan),
    }
}

/// How a machine that has joined is; nothing while it has not.
fn health(seen: &Seen, status: &NodeStatus, has_joined: bool) -> Option<MachineHealth> {
    let is_fence_failed = |fence: &Fence| {
        fence::proof(seen.observed, status).is_none() && Stage::at(fence, &seen.observed.timing, seen.now).0 == Stage::Failed
    };
    has_joined.then(|| match loss::judge(seen.observed, status, seen.now) {
        Judgement::Well => MachineHealth::Healthy,
        Judgement::Due(_) if seen.is_repair_postponed() => MachineHealth::RepairHeldBack,
        Judgement::Suspected(_) | Judgement::Due(_) => MachineHealth::Suspected,
        Judgement::Lost(fence) if is_fence_failed(&fence) => MachineHealth::FenceFailed,
        Judgement::Lost(_) => MachineHealth::Lost,
    })
}

/// What the Database controller must know of a machine that cannot stay.
fn replacement_needed(plan: &Plan) -> Option<ReplacementNeeded> {
    match &plan.waiting {
        Some(wait @ NodeWait::Join(JoinWait::KubernetesNodeDeleted(_))) => {
            Some(ReplacementNeeded { cause: ReplacementCause::KubernetesNodeDeleted, message: wait.message() })
        }
        Some(_) | None => None,
    }
}

/// What a pass has seen, planned and done.
#[derive(Clone, Copy)]
struct Seen<'a> {
    observed: &'a Observed,
    plan: &'a Plan,
    acted: &'a Acted<Node>,
    repair: Repair,
    now: Timestamp,
}

impl Seen<'_> {
    /// Whether the repair of this machine is held back, and nothing else came in the way of this pass.
    fn is_repair_postponed(&self) -> bool {
        let is_planned = matches!(self.plan.waiting, Some(NodeWait::Loss(LossWait::RepairPostponed(..))));
        let is_as_planned = self.acted.error.is_none() && self.acted.held_up.is_none();
        self.repair == Repair::Postponed || (is_planned && is_as_planned)
    }

    fn is_deleting(&self) -> bool {
        self.observed.node.metadata.deletion_timestamp.is_some()
    }
}

fn entries(seen: Seen<'_>, instance: Option<&Instance>, has_joined: bool) -> Vec<Entry> {
    let Seen { observed, plan, acted, now, .. } = seen;
    let waiting = plan.waiting.as_ref().map(|waiting| (waiting.reason(), waiting.message()));
    let (reason, message) = why(acted.error.as_ref(), acted.held_up.as_ref(), waiting);
    let running = instance.filter(|instance| instance.state == InstanceState::Running);
    let was_initialized = has_joined && conditions::is_true(acted.object.conditions(), Type::Initialized);
    let is_kubelet_ready = safety::kubelet(observed.core_node.as_ref()) == Kubelet::Ready;
    let is_ready_now = running.is_some() && is_kubelet_ready && observed.driver_registered;
    let is_held = observed.core_node.as_ref().is_some_and(crate::cluster::finalizer::has);
    let is_initialized = was_initialized || (is_ready_now && is_held);
    let steps = [
        (Type::Launched, running.map(|instance| messages::launched(&instance.id))),
        (Type::Registered, observed.core_node.as_ref().map(|core_node| messages::registered(&core_node.name_any()))),
        (Type::Initialized, is_initialized.then(|| messages::INITIALIZED.to_owned())),
    ];
    let ready = if seen.is_deleting() {
        Entry::no(Type::Ready, Reason::Deleting, message.clone())
    } else if is_initialized && is_ready_now && plan.waiting.is_none() {
        Entry::yes(Type::Ready, Reason::AsExpected, messages::READY)
    } else {
        Entry::no(Type::Ready, reason, message.clone())
    };
    let stalled = match &plan.waiting {
        Some(waiting) if waiting.is_stalled() => Entry::yes(Type::Stalled, waiting.reason(), waiting.message()),
        Some(_) | None => Entry::no(Type::Stalled, Reason::Progressing, messages::NOT_STALLED),
    };
    let mut entries = vec![ready];
    entries.extend(in_order(steps, reason, &message));
    entries.extend([drifted(observed, acted), stalled, lost(seen, &message)]);
    entries.extend(fenced(observed, acted, now));
    if seen.is_deleting() {
        entries.extend(leaving(observed, instance, &message));
    }
    entries
}

/// The conditions of steps that follow each other, each with its words if it holds: the first that does not says what is waited for.
fn in_order<const COUNT: usize>(steps: [(Type, Option<String>); COUNT], reason: Reason, message: &str) -> Vec<Entry> {
    let first_unmet = steps.iter().position(|(_, met)| met.is_none());
    let entry = |(place, (kind, met)): (usize, (Type, Option<String>))| match met {
        Some(met) => Entry::yes(kind, Reason::AsExpected, met),
        None if Some(place) == first_unmet => Entry::no(kind, reason, message),
        None => Entry::no(kind, Reason::Pending, messages::EARLIER_STEP),
    };
    steps.into_iter().enumerate().map(entry).collect()
}

/// Whether the machine is given up, or what speaks against it.
fn lost(seen: Seen<'_>, message: &str) -> Entry {
    let status = seen.acted.object.status.clone().unwrap_or_default();
    match loss::judge(seen.observed, &status, seen.now) {
        Judgement::Lost(fence) => Entry::yes(Type::Lost, Reason::named(&fence.cause).unwrap_or(Reason::InstanceLost), fence.message),
        Judgement::Well => Entry::no(Type::Lost, Reason::Progressing, messages::NOT_LOST),
        Judgement::Suspected(loss) => Entry::no(Type::Lost, loss.cause.reason(), messages::suspected(&loss.signs, loss.due)),
        Judgement::Due(_) if seen.is_repair_postponed() => Entry::no(Type::Lost, Reason::RepairHeldBack, message),
        Judgement::Due(loss) => Entry::no(Type::Lost, loss.cause.reason(), loss.signs.message()),
    }
}

/// Whether anything on a machine that is given up, or taken down by force, can still write.
fn fenced(observed: &Observed, acted: &Acted<Node>, now: Timestamp) -> Option<Entry> {
    let status = acted.object.status.clone().unwrap_or_default();
    let is_silent = match safety::kubelet(observed.core_node.as_ref()) {
        Kubelet::NotReady(since) => now >= later(since, observed.timing.silence),
        Kubelet::Ready | Kubelet::Absent => false,
    };
    let is_forced = observed.node.metadata.deletion_timestamp.is_some() && is_silent;
    if status.fence.is_none() && !is_forced {
        return None;
    }
    if let Some(proof) = fence::proof(observed, &status) {
        return Some(Entry::yes(Type::Fenced, Reason::AsExpected, messages::fenced(&proof)));
    }
    let Some(fence) = &status.fence else {
        return Some(Entry::no(Type::Fenced, Reason::Fencing, messages::FENCED_BY_TERMINATION));
    };
    let (stage, since, _) = Stage::at(fence, &observed.timing, now);
    let reason = if stage == Stage::Failed { Reason::FenceFailed } else { Reason::Fencing };
    Some(Entry::no(Type::Fenced, reason, messages::not_fenced(stage.step(), since)))
}

fn drifted(observed: &Observed, acted: &Acted<Node>) -> Entry {
    let launch = acted.object.status.as_ref().and_then(|status| status.launch.as_ref());
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
    let drained = if is_terminated || observed.pods.is_empty() {
        Entry::yes(Type::Drained, Reason::AsExpected, messages::DRAINED)
    } else {
        Entry::no(Type::Drained, Reason::AwaitingDrain, message)
    };
    let attached = !observed.attachments.is_empty() || instance.is_some_and(|instance| !safety::data_volumes(instance).is_empty());
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

/// What changed so that somebody should hear of it.
pub fn changes(old: &NodeStatus, new: &NodeStatus) -> Vec<Happened> {
    let mut happened = Vec::new();
    let became_true = |kind| !conditions::is_true(&old.conditions, kind) && conditions::is_true(&new.conditions, kind);
    if became_true(Type::Ready) {
        let name = new.core_node_name.as_deref().unwrap_or_default();
        happened.push(Happened::normal(EventReason::NodeReady, messages::node_ready(name)));
    }
    if became_true(Type::Fenced)
        && let Some(fenced) = conditions::find(&new.conditions, Type::Fenced)
    {
        happened.push(Happened::normal(EventReason::MachineFenced, fenced.message.clone()));
    }
    let sign = match new.health {
        Some(MachineHealth::Suspected) => Some((Type::Lost, EventReason::MachineSuspected)),
        Some(MachineHealth::RepairHeldBack) => Some((Type::Lost, EventReason::RepairHeldBack)),
        Some(MachineHealth::FenceFailed) => Some((Type::Fenced, EventReason::FenceFailed)),
        Some(MachineHealth::Healthy | MachineHealth::Lost) | None => None,
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
    let is_new = !conditions::is_true(&old.conditions, Type::Fenced) && conditions::is_true(&new.conditions, Type::Fenced);
    let proven = conditions::find(&new.conditions, Type::Fenced).filter(|_| is_new)?;
    let since = new.fence.as_ref()?.since.0;
    Some(Duration::try_from(proven.last_transition_time.0.duration_since(since)).unwrap_or_default())
}

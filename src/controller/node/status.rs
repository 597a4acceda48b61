//! The status step of the Node controller: computes the NodeStatus, its conditions, and the events of their changes. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt;

use super::observe::Observed;
use super::plan::action::Plan;
use super::plan::fence::{self, Stage};
use super::plan::loss::{self, Judgement};
use super::plan::{facts, offering};
use super::registration::provider_id;

use crate::api::ConditionType as Type;
use crate::api::node::{MachineHealth, ReplacementCause, ReplacementNeeded};
use crate::api::{EventReason, Node, NodeStatus, Reason};
use crate::cloud::{Instance, InstanceState};
use crate::cluster::events::Happened;
use crate::controller::conditions::{self, Entry, whole_second};
use crate::controller::pass::acted::{Acted, why};
use crate::controller::safety::{self, Kubelet};
use crate::time::later;

/// The status to write: the fields of the create protocol as the last write left them, everything else from what was seen.
pub fn status(observed: &Observed, plan: &Plan, acted: &Acted<Node>, now: Timestamp) -> NodeStatus {
    let old = acted.object.status.clone().unwrap_or_default();
    // Right after a start nothing is known of EC2 yet: what was said before stands.
    if observed.instances.swept_at.is_none() && !old.conditions.is_empty() {
        return old;
    }
    let instance = old.instance_id.as_ref().and_then(|id| observed.instances.by_id(id));
    let core_node_name = observed.core_node.as_ref().map(ResourceExt::name_any).or_else(|| old.core_node_name.clone());
    let entries = entries(observed, plan, acted, instance, core_node_name.is_some(), now);
    let is_impaired = old.instance_id.as_ref().is_some_and(|id| facts::is_impaired(observed, id));
    let health = health(observed, &old, core_node_name.is_some(), now);
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

/// Whether the machine looks lost; nothing while it has not joined.
fn health(observed: &Observed, status: &NodeStatus, has_joined: bool, now: Timestamp) -> Option<MachineHealth> {
    has_joined.then(|| match loss::judge(observed, status, now) {
        Judgement::Well => MachineHealth::Healthy,
        Judgement::Suspected(_) | Judgement::Due(_) => MachineHealth::Suspected,
        Judgement::Lost(_) => MachineHealth::Lost,
    })
}

/// What the Database controller must know of a machine that cannot stay.
fn replacement_needed(plan: &Plan) -> Option<ReplacementNeeded> {
    let waiting = plan.waiting.as_ref().filter(|waiting| waiting.reason == Reason::KubernetesNodeDeleted)?;
    Some(ReplacementNeeded { cause: ReplacementCause::KubernetesNodeDeleted, message: waiting.message.clone() })
}

fn entries(
    observed: &Observed,
    plan: &Plan,
    acted: &Acted<Node>,
    instance: Option<&Instance>,
    has_joined: bool,
    now: Timestamp,
) -> Vec<Entry> {
    let (reason, message) = why(acted.error.as_ref(), acted.held_up.as_ref(), plan.waiting.as_ref());
    let mut said = false;
    let mut not_yet = |kind: Type| {
        if said {
            return Entry::no(kind, Reason::Pending, "an earlier step is awaited");
        }
        said = true;
        Entry::no(kind, reason, message.clone())
    };
    let launched = match instance {
        Some(instance) if instance.state == InstanceState::Running => {
            Entry::yes(Type::Launched, Reason::AsExpected, format!("instance {} runs", instance.id))
        }
        Some(_) | None => not_yet(Type::Launched),
    };
    let registered = match &observed.core_node {
        Some(core_node) => {
            Entry::yes(Type::Registered, Reason::AsExpected, format!("Kubernetes node {} has registered", core_node.name_any()))
        }
        None => not_yet(Type::Registered),
    };
    let was_initialized = has_joined && conditions::is_true(acted.object.conditions(), Type::Initialized);
    let kubelet = safety::kubelet(observed.core_node.as_ref());
    let is_ready_now = launched.is_true() && registered.is_true() && kubelet == Kubelet::Ready && observed.driver_registered;
    let held = observed.core_node.as_ref().is_some_and(crate::cluster::finalizer::has);
    let initialized = if was_initialized || (is_ready_now && held) {
        Entry::yes(Type::Initialized, Reason::AsExpected, "the Kubernetes node was made ready for the database")
    } else {
        not_yet(Type::Initialized)
    };
    let deleting = observed.node.metadata.deletion_timestamp.is_some();
    let ready = if deleting {
        Entry::no(Type::Ready, Reason::Deleting, message.clone())
    } else if initialized.is_true() && is_ready_now && plan.waiting.is_none() {
        Entry::yes(Type::Ready, Reason::AsExpected, "the machine is ready for the database")
    } else {
        Entry::no(Type::Ready, reason, message.clone())
    };
    let stalled = match &plan.waiting {
        Some(waiting) if waiting.stalled => Entry::yes(Type::Stalled, waiting.reason, waiting.message.clone()),
        Some(_) | None => Entry::no(Type::Stalled, Reason::Progressing, "nothing needs a person"),
    };
    let mut entries =
        vec![ready, launched, registered, initialized, drifted(observed, acted), stalled, lost(observed, acted, (reason, &message), now)];
    entries.extend(fenced(observed, acted, now));
    if deleting {
        entries.extend(leaving(observed, instance, &message));
    }
    entries
}

/// Whether the machine is given up, or what speaks against it.
fn lost(observed: &Observed, acted: &Acted<Node>, (reason, message): (Reason, &str), now: Timestamp) -> Entry {
    let status = acted.object.status.clone().unwrap_or_default();
    match loss::judge(observed, &status, now) {
        Judgement::Lost(fence) => Entry::yes(Type::Lost, Reason::named(&fence.cause).unwrap_or(Reason::InstanceLost), fence.message),
        Judgement::Well => Entry::no(Type::Lost, Reason::Progressing, "nothing speaks against the machine"),
        Judgement::Suspected(loss) => {
            let message = format!("{}; the machine is given up at {} if that stays so", loss.message, whole_second(loss.due));
            Entry::no(Type::Lost, loss.cause.reason(), message)
        }
        Judgement::Due(_) if reason == Reason::RepairHeldBack => Entry::no(Type::Lost, reason, message),
        Judgement::Due(loss) => Entry::no(Type::Lost, loss.cause.reason(), loss.message),
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
        return Some(Entry::yes(Type::Fenced, Reason::AsExpected, format!("{proof}: nothing on it can write any more")));
    }
    let Some(fence) = &status.fence else {
        return Some(Entry::no(Type::Fenced, Reason::Fencing, "its kubelet is silent, and EC2 is asked to terminate the instance"));
    };
    let (stage, since, _) = Stage::at(fence, &observed.timing, now);
    let reason = if stage == Stage::Failed { Reason::FenceFailed } else { Reason::Fencing };
    let message = format!("EC2 does not show the instance stopped or terminated, so nothing moves; {} since {since}", stage.words());
    Some(Entry::no(Type::Fenced, reason, message))
}

fn drifted(observed: &Observed, acted: &Acted<Node>) -> Entry {
    let launch = acted.object.status.as_ref().and_then(|status| status.launch.as_ref());
    let (Some(launch), Some(class)) = (launch, &observed.class) else {
        return Entry::no(Type::Drifted, Reason::Pending, "no machine was launched yet, or its NodeClass is gone");
    };
    match offering::drift(launch, &class.spec) {
        Some(fields) => Entry::yes(
            Type::Drifted,
            Reason::NodeClassChanged,
            format!("NodeClass {} has changed since ({fields}); the next machine is made as it says now", class.name_any()),
        ),
        None => Entry::no(Type::Drifted, Reason::UpToDate, "the machine is as its NodeClass says"),
    }
}

/// The stages of a planned termination, each with what blocks it.
fn leaving(observed: &Observed, instance: Option<&Instance>, message: &str) -> [Entry; 3] {
    let is_terminated = instance.is_none_or(|instance| instance.state == InstanceState::Terminated);
    let drained = if is_terminated || observed.pods.is_empty() {
        Entry::yes(Type::Drained, Reason::AsExpected, "no pod is left on the machine")
    } else {
        Entry::no(Type::Drained, Reason::AwaitingDrain, message)
    };
    let attached = !observed.attachments.is_empty() || instance.is_some_and(|instance| !safety::data_volumes(instance).is_empty());
    let detached = if observed.attachments.is_empty() && (is_terminated || !attached) {
        Entry::yes(Type::VolumeDetached, Reason::AsExpected, "no volume is attached to the machine")
    } else {
        Entry::no(Type::VolumeDetached, Reason::AwaitingDetach, message)
    };
    let terminated = if is_terminated {
        Entry::yes(Type::InstanceTerminated, Reason::AsExpected, "the instance is gone")
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
        happened.push(Happened::normal(EventReason::NodeReady, format!("Kubernetes node {name} is ready for the database")));
    }
    if became_true(Type::Fenced)
        && let Some(fenced) = conditions::find(&new.conditions, Type::Fenced)
    {
        happened.push(Happened::normal(EventReason::MachineFenced, fenced.message.clone()));
    }
    let reason = |conditions: &[Condition], kind| conditions::find(conditions, kind).map(|condition| condition.reason.clone());
    for (kind, event) in [(Type::Lost, EventReason::MachineSuspected), (Type::Fenced, EventReason::FenceFailed)] {
        let Some(now) = conditions::find(&new.conditions, kind).filter(|now| now.status == "False") else { continue };
        let is_news = reason(&old.conditions, kind).as_ref() != Some(&now.reason);
        let is_calm = now.reason == Reason::Progressing.as_str() || now.reason == Reason::Fencing.as_str();
        if is_news && !is_calm {
            let event = if now.reason == Reason::RepairHeldBack.as_str() { EventReason::RepairHeldBack } else { event };
            happened.push(Happened::warning(event, now.message.clone()));
        }
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

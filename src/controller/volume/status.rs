//! The status step of the Volume controller: computes the VolumeStatus and its conditions. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::observe::Observed;
use super::plan::action::{Action, Plan, Stage};
use super::wait::VolumeWait;
use super::wait::modification::ModificationWait;
use super::{messages, remembered};

use crate::api::ConditionType as Type;
use crate::api::volume::ModificationRefusal;
use crate::api::{Reason, Size, Volume, VolumeStatus};
use crate::cloud::Class;
use crate::controller::conditions::{self, Entry, whole_second};
use crate::controller::pass::acted::{Acted, why};

/// The status to write: the fields of the create protocol as the last write left them, everything else from what was seen.
pub fn status(observed: &Observed, plan: &Plan, acted: &Acted<Volume>, now: Timestamp) -> VolumeStatus {
    let old = acted.object.status.clone().unwrap_or_default();
    // Right after a start nothing is known of EC2 yet: what was said before stands.
    if observed.volumes.swept_at.is_none() && !old.conditions.is_empty() {
        return old;
    }
    let volume = old.volume_id.as_ref().and_then(|id| observed.volumes.volumes.iter().find(|volume| volume.id == *id));
    let is_lost = plan.waiting.as_ref().is_some_and(VolumeWait::is_lost);
    let lost_since = if is_lost { remembered::lost_since(&old).or_else(|| Some(Time(whole_second(now)))) } else { None };
    VolumeStatus {
        // What was seen and judged: the object of the last write may have a newer spec, which nobody has looked at.
        observed_generation: observed.volume.metadata.generation,
        conditions: conditions::merge(&old.conditions, &entries(observed, plan, acted), observed.volume.metadata.generation, now),
        change_due_since: if plan.due { old.change_due_since.clone().or_else(|| Some(Time(whole_second(now)))) } else { None },
        modification_refused: modification_refused(plan, acted, observed.volume.metadata.generation),
        lost_since,
        size: volume.map(|volume| Size::from_gib(volume.size)).or_else(|| old.size.clone()),
        ..old
    }
}

/// EC2's refusal of what this spec asks for: its answer in this pass, or the one that the plan still waits on.
fn modification_refused(plan: &Plan, acted: &Acted<Volume>, generation: Option<i64>) -> Option<ModificationRefusal> {
    if let Some(VolumeWait::Modification(ModificationWait::Refused(refusal))) = &plan.waiting {
        return Some(refusal.clone());
    }
    let has_asked = plan.actions.iter().any(|action| matches!(action, Action::Modify(_)));
    let answer = acted.held_up.as_ref().filter(|answer| has_asked && answer.class == Some(Class::Invalid))?;
    Some(ModificationRefusal { generation: generation?, message: answer.message.clone() })
}

fn entries(observed: &Observed, plan: &Plan, acted: &Acted<Volume>) -> Vec<Entry> {
    let waiting = plan.waiting.as_ref().map(|waiting| (waiting.reason(), waiting.message()));
    let (reason, message) = why(acted.error.as_ref(), acted.held_up.as_ref(), waiting);
    let ready = if observed.volume.metadata.deletion_timestamp.is_some() {
        Entry::no(Type::Ready, Reason::Deleting, message.clone())
    } else if plan.stage == Stage::AsWanted && plan.waiting.is_none() && acted.error.is_none() {
        Entry::yes(Type::Ready, Reason::AsExpected, messages::READY)
    } else {
        Entry::no(Type::Ready, reason, message.clone())
    };
    let stalled = match plan.waiting.as_ref().filter(|waiting| waiting.is_stalled()) {
        Some(waiting) => Entry::yes(Type::Stalled, waiting.reason(), waiting.message()),
        None => Entry::no(Type::Stalled, Reason::Progressing, messages::NOT_STALLED),
    };
    let mut entries = vec![ready];
    entries.extend(steps(plan.stage, reason, &message));
    entries.push(stalled);
    entries
}

/// Created, Bound and Modified: the first that does not hold says why, and those after it wait for it.
fn steps(stage: Stage, reason: Reason, message: &str) -> [Entry; 3] {
    let steps = [
        (Type::Created, Stage::Created, messages::CREATED),
        (Type::Bound, Stage::Bound, messages::BOUND),
        (Type::Modified, Stage::AsWanted, messages::MODIFIED),
    ];
    let first_unmet = steps.iter().find(|(_, needed, _)| stage < *needed).map(|(kind, _, _)| *kind);
    steps.map(|(kind, needed, holds)| {
        if stage >= needed {
            Entry::yes(kind, Reason::AsExpected, holds)
        } else if first_unmet == Some(kind) {
            Entry::no(kind, reason, message)
        } else {
            Entry::no(kind, Reason::Pending, messages::EARLIER_STEP)
        }
    })
}

//! The status step of the Volume controller: computes the VolumeStatus, its conditions, and the events of
//! their change. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::observe::Observed;
use super::plan::action::{Action, Plan, Stage};
use super::wait::VolumeWait;
use super::wait::modification::ModificationWait;
use super::{initialization, messages, recorded};
use crate::api::ConditionType as Type;
use crate::api::volume::ModificationRefusal;
use crate::api::{EventReason, Reason, Size, Volume, VolumeStatus};
use crate::cloud::Class;
use crate::cluster::events::Happened;
use crate::cluster::ownership::Ownership;
use crate::controller::conditions::{self, Entry};
use crate::controller::pass::acted::{Acted, why};
use crate::time::whole_second;

/// The status to write: the fields of the create protocol as the last write left them, everything else from
/// what was seen.
pub fn status(observed: &Observed, plan: &Plan, acted: &Acted<Volume>, now: Timestamp) -> VolumeStatus {
    let old = acted.object.status.clone().unwrap_or_default();
    // Right after a start nothing is known of EC2 yet: what was said before stands.
    if observed.volumes.swept_at.is_none() && !old.conditions.is_empty() {
        return old;
    }
    let volume =
        old.volume_id.as_ref().and_then(|id| observed.volumes.volumes.iter().find(|volume| volume.id == *id));
    let is_lost = plan.waiting.as_ref().is_some_and(VolumeWait::is_lost);
    let lost_since =
        if is_lost { recorded::lost_since(&old).or_else(|| Some(Time(whole_second(now)))) } else { None };
    VolumeStatus {
        // What was seen and judged: the object of the last write may have a newer spec, which no
        // pass has judged.
        observed_generation: observed.volume.metadata.generation,
        conditions: conditions::merge(
            &old.conditions,
            &entries(observed, plan, acted),
            observed.volume.metadata.generation,
            now,
        ),
        change_due_since: if plan.due {
            old.change_due_since.clone().or_else(|| Some(Time(whole_second(now))))
        } else {
            None
        },
        modification_refused: modification_refused(plan, acted, observed.volume.metadata.generation),
        lost_since,
        initialization: initialization::status(old.initialization, observed.volumes.initialization, now),
        size: volume.map(|volume| Size::from_gib(volume.size)).or_else(|| old.size.clone()),
        ..old
    }
}

/// What changed so that an event reports it.
pub fn changes(old: &VolumeStatus, new: &VolumeStatus) -> Vec<Happened> {
    let became_true =
        |kind| !conditions::is_true(&old.conditions, kind) && conditions::is_true(&new.conditions, kind);
    let mut happened = Vec::new();
    // That it is ready for the first time, its Database says.
    if became_true(Type::Ready) && conditions::is_true(&old.conditions, Type::Bound) {
        let note = messages::events::ready(new.size.as_ref());
        happened.push(Happened::normal(EventReason::VolumeReady, note));
    }
    if became_true(Type::Orphaned) {
        happened.push(Happened::warning(EventReason::Orphaned, messages::ORPHANED.to_owned()));
    }
    happened
}

/// EC2's refusal of what this spec asks for: its answer in this pass, or the one that the plan still waits
/// on.
fn modification_refused(
    plan: &Plan,
    acted: &Acted<Volume>,
    generation: Option<i64>,
) -> Option<ModificationRefusal> {
    if let Some(VolumeWait::Modification(ModificationWait::Refused(refusal))) = &plan.waiting {
        return Some(refusal.clone());
    }
    let has_asked = plan.actions.iter().any(|action| matches!(action, Action::Modify(_)));
    let answer =
        acted.call_blocked.as_ref().filter(|answer| has_asked && answer.class() == Some(Class::Invalid))?;
    Some(ModificationRefusal { generation: generation?, message: answer.message() })
}

fn entries(observed: &Observed, plan: &Plan, acted: &Acted<Volume>) -> Vec<Entry> {
    let waiting = plan.waiting.as_ref().map(|waiting| (waiting.reason(), waiting.message()));
    let (reason, message) = why(acted.error.as_ref(), acted.call_blocked.as_ref(), waiting);
    let reached = |stage: Stage, message: &str| (plan.stage >= stage).then(|| message.to_owned());
    let modified = if observed.volume.spec.release { messages::NOT_MODIFIED } else { messages::MODIFIED };
    let steps = [
        (Type::Created, reached(Stage::Created, messages::CREATED)),
        (Type::Bound, reached(Stage::Bound, messages::BOUND)),
        (Type::Modified, reached(Stage::AsWanted, modified)),
    ];
    let ready = if observed.volume.metadata.deletion_timestamp.is_some() {
        Entry::no(Type::Ready, Reason::Deleting, message.clone())
    } else if plan.stage == Stage::AsWanted && plan.waiting.is_none() && acted.error.is_none() {
        Entry::yes(Type::Ready, Reason::AsExpected, messages::READY)
    } else {
        Entry::no(Type::Ready, reason, message.clone())
    };
    let stalled = plan.waiting.as_ref().filter(|waiting| waiting.is_stalled());
    let stalled = conditions::stalled(stalled.map(|waiting| (waiting.reason(), waiting.message())));
    let mut entries = vec![ready];
    entries.extend(conditions::in_order(steps, reason, &message));
    entries.push(stalled);
    let is_leaving = observed.volume.metadata.deletion_timestamp.is_some();
    if !is_leaving && observed.ownership == Ownership::Orphaned {
        entries.push(Entry::yes(Type::Orphaned, Reason::Orphaned, messages::ORPHANED));
    }
    entries
}

//! The status step of the Volume controller: computes the VolumeStatus and its conditions. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::observe::Observed;
use super::plan::action::{Plan, Stage};

use crate::api::ConditionType as Type;
use crate::api::{Reason, Size, Volume, VolumeStatus};
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
    VolumeStatus {
        // What was seen and judged: the object of the last write may have a newer spec, which nobody has looked at.
        observed_generation: observed.volume.metadata.generation,
        conditions: conditions::merge(&old.conditions, &entries(observed, plan, acted), observed.volume.metadata.generation, now),
        change_due_since: if plan.due { old.change_due_since.clone().or_else(|| Some(Time(whole_second(now)))) } else { None },
        size: volume.map(|volume| Size::from_gib(volume.size)).or_else(|| old.size.clone()),
        ..old
    }
}

fn entries(observed: &Observed, plan: &Plan, acted: &Acted<Volume>) -> Vec<Entry> {
    let (reason, message) =
        why(acted.error.as_ref(), acted.held_up.as_ref(), plan.waiting.as_ref().map(|waiting| (waiting.reason, waiting.message.clone())));
    let mut said = false;
    let mut entry = |kind: Type, needed: Stage, holds: &str| {
        if plan.stage >= needed {
            return Entry::yes(kind, Reason::AsExpected, holds);
        }
        if said {
            return Entry::no(kind, Reason::Pending, "an earlier step is awaited");
        }
        said = true;
        Entry::no(kind, reason, message.clone())
    };
    let created = entry(Type::Created, Stage::Created, "the EBS volume exists");
    let bound = entry(Type::Bound, Stage::Bound, "the PersistentVolume and the claim are bound to each other");
    let modified = entry(Type::Modified, Stage::AsWanted, "size, type, IOPS and throughput are as wanted");
    let ready = if observed.volume.metadata.deletion_timestamp.is_some() {
        Entry::no(Type::Ready, Reason::Deleting, message.clone())
    } else if plan.stage == Stage::AsWanted && plan.waiting.is_none() && acted.error.is_none() {
        Entry::yes(Type::Ready, Reason::AsExpected, "the volume is as wanted and bound")
    } else {
        Entry::no(Type::Ready, reason, message.clone())
    };
    let stalled = match &plan.waiting {
        Some(waiting) if waiting.stalled => Entry::yes(Type::Stalled, waiting.reason, waiting.message.clone()),
        Some(_) | None => Entry::no(Type::Stalled, Reason::Progressing, "nothing needs a person"),
    };
    vec![ready, created, bound, modified, stalled]
}

//! The plan of a Volume that adopts a retained EBS volume: checked once more, announced, tagged anew, and its
//! old record closed. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolume;
use kube::ResourceExt;

use super::action::{Action, Plan, Stage};
use super::facts::owner_of;
use crate::api::{VolumeId, keys};
use crate::cloud::call::Call;
use crate::cloud::{EbsVolume, VolumeState, identity};
use crate::controller::memory::issued_requests::{Again, again};
use crate::controller::retention::{self, Retained};
use crate::controller::volume::observe::Observed;
use crate::controller::volume::wait::VolumeWait;
use crate::controller::volume::wait::creation::{AdoptionRefusal, AdoptionWait};

/// Nothing is announced yet: the retained volume is adopted, or the plan says why not. An empty one is never
/// made instead.
pub(super) fn take(observed: &Observed, name: &str, size: i32) -> Plan {
    let kept = match recorded(observed, name) {
        Ok(kept) => kept,
        Err(cause) => return refused(observed, name, cause),
    };
    let id = &kept.volume_id;
    let Some(volume) = observed.former.volumes.iter().find(|volume| volume.id == *id) else {
        let wait = AdoptionWait::NotListed { id: id.clone(), record: name.to_owned() };
        return Plan::wait(Stage::Nothing, wait).after(observed.timing.requeue_interval);
    };
    if let Err(cause) = fits(observed, volume, size) {
        return refused(observed, name, cause);
    }
    if volume.state != VolumeState::Available {
        let wait = AdoptionWait::NotAvailable { id: id.clone(), state: volume.state };
        return Plan::wait(Stage::Nothing, wait).after(observed.timing.requeue_interval).pending();
    }
    let actions = vec![Action::Adopt(id.clone(), tags(observed))];
    Plan::act(Stage::Nothing, actions, AdoptionWait::Adopting(id.clone())).pending()
}

/// The record, if it is this Volume's to take: of its namespace, and held by its Database.
fn recorded(observed: &Observed, name: &str) -> Result<Retained, AdoptionRefusal> {
    let volume = &observed.volume;
    let namespace = volume.namespace().unwrap_or_default();
    let kept =
        observed.record.as_ref().and_then(retention::read).filter(|kept| kept.persistent_volume == name);
    let Some(kept) = kept.filter(|kept| kept.namespace == namespace) else {
        return Err(AdoptionRefusal::NoRecord { namespace });
    };
    let database = volume.labels().get(keys::DATABASE_UID_LABEL).filter(|uid| !uid.is_empty());
    if database.is_none() || kept.adopted_by.as_ref().map(|holder| &holder.uid) != database {
        return Err(AdoptionRefusal::NotHeld);
    }
    if kept.file_system.as_deref() != Some(volume.spec.file_system.as_str()) {
        return Err(AdoptionRefusal::FileSystem(volume.spec.file_system.as_str()));
    }
    Ok(kept)
}

/// Whether the EBS volume itself is what its record says. That it carries this cluster's tag and the former
/// Volume's UID is how it was found.
fn fits(observed: &Observed, volume: &EbsVolume, size: i32) -> Result<(), AdoptionRefusal> {
    let namespace = observed.volume.namespace().unwrap_or_default();
    let tag = volume.tags.get(keys::DATABASE_TAG).and_then(|database| database.split_once('/'));
    if tag.map(|(tagged, _)| tagged) != Some(namespace.as_str()) {
        return Err(AdoptionRefusal::Tag(volume.id.clone()));
    }
    if volume.zone != observed.volume.spec.zone {
        let wanted = observed.volume.spec.zone.clone();
        return Err(AdoptionRefusal::Zone { id: volume.id.clone(), zone: volume.zone.clone(), wanted });
    }
    if size < volume.size {
        return Err(AdoptionRefusal::Larger { id: volume.id.clone(), size: volume.size });
    }
    Ok(())
}

fn refused(observed: &Observed, name: &str, cause: AdoptionRefusal) -> Plan {
    let wait = AdoptionWait::Refused { record: name.to_owned(), cause };
    Plan::wait(Stage::Nothing, wait).after(observed.timing.requeue_interval.saturating_mul(12))
}

fn tags(observed: &Observed) -> BTreeMap<String, String> {
    identity::adoption_tags(&owner_of(&observed.volume, &observed.cluster_id))
}

/// Announced, and EC2 still shows the former owner's tag: the same call again, until it shows ours. What was
/// announced is always finished, before a deletion, too.
pub(super) fn moving(observed: &Observed, id: &VolumeId, now: Timestamp) -> Option<Plan> {
    observed.former.volumes.iter().find(|volume| volume.id == *id)?;
    Some(tagging(observed, id, tags(observed), observed.volumes.swept_at, now))
}

/// CreateTags again, until EC2 shows the tags; `seen_at` is when EC2 was last seen not to.
pub(super) fn tagging(
    observed: &Observed,
    id: &VolumeId,
    tags: BTreeMap<String, String>,
    seen_at: Option<Timestamp>,
    now: Timestamp,
) -> Plan {
    let issued = observed.issued.get(&Call::CreateTags);
    let plan = match again(issued, seen_at, observed.timing.requeue_interval, now) {
        Again::Now => {
            let actions = vec![Action::Retag(id.clone(), tags)];
            Plan::act(Stage::Nothing, actions, AdoptionWait::Tagging(id.clone()))
        }
        Again::OnceShown => Plan::wait(Stage::Nothing, AdoptionWait::TagsNotShown(id.clone())),
        Again::Later(call_blocked, until) => {
            Plan::wait(Stage::Nothing, VolumeWait::Blocked(call_blocked.clone())).until(until, now)
        }
    };
    plan.pending()
}

/// The former record goes once this Volume's own is there and bound. It carries the UID of another Volume, so
/// its watch does not find this one.
pub(super) fn closing(observed: &Observed, id: &VolumeId) -> Option<Plan> {
    let close = close_record(observed, id)?;
    let plan = Plan::act(Stage::Bound, vec![close], AdoptionWait::ClosingRecord(id.clone()));
    Some(plan.after(observed.timing.requeue_interval))
}

/// Deletes the former record of an EBS volume that this Volume has adopted.
pub(super) fn close_record(observed: &Observed, id: &VolumeId) -> Option<Action> {
    let record = held(observed)?;
    let is_of_this = retention::read(record).is_some_and(|kept| kept.volume_id == *id);
    (is_of_this && record.metadata.deletion_timestamp.is_none())
        .then(|| Action::DeletePersistentVolume(Box::new(record.clone())))
}

/// Releases a record whose volume was never adopted.
pub(super) fn release(observed: &Observed) -> Option<Action> {
    held(observed).map(|record| Action::ReleaseRecord(Box::new(record.clone())))
}

/// The record, while this Volume's Database holds it.
fn held(observed: &Observed) -> Option<&PersistentVolume> {
    let database = observed.volume.labels().get(keys::DATABASE_UID_LABEL)?;
    let record = observed.record.as_ref()?;
    retention::read(record)?.adopted_by.filter(|holder| holder.uid == *database).map(|_| record)
}

//! The plan of a Volume that adopts a retained EBS volume: checked once more, announced, tagged anew, and its old record closed. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolume;
use kube::ResourceExt;

use super::action::{Action, Plan, Stage};
use super::facts::owner_of;

use crate::api::{Reason, VolumeId, keys};
use crate::cloud::call::Call;
use crate::cloud::{EbsVolume, VolumeState, identity};
use crate::controller::memory::issued_requests::{Again, again};
use crate::controller::retention::{self, Retained};
use crate::controller::volume::observe::Observed;

/// Nothing is announced yet: the kept volume is taken, or it is said why not. An empty one is never made instead.
pub(super) fn take(observed: &Observed, name: &str, size: i32) -> Plan {
    let kept = match recorded(observed, name) {
        Ok(kept) => kept,
        Err(why) => return refused(observed, name, &why),
    };
    let id = &kept.volume_id;
    let Some(volume) = observed.former.volumes.iter().find(|volume| volume.id == *id) else {
        let message = format!("EC2 does not show EBS volume {id} with the tags of PersistentVolume {name}: it is looked for on");
        return Plan { again: Some(observed.timing.recheck), ..Plan::wait(Stage::Nothing, Reason::AdoptionRefused, message) };
    };
    if let Err(why) = fits(observed, volume, size) {
        return refused(observed, name, &why);
    }
    if volume.state != VolumeState::Available {
        let message = format!("EBS volume {id} is not available yet ({:?}): it is taken over once no machine has it", volume.state);
        return Plan { again: Some(observed.timing.recheck), ..Plan::wait(Stage::Nothing, Reason::Adopting, message) }.pending();
    }
    let message = format!("EBS volume {id}, which was kept, is taken over");
    Plan::act(Stage::Nothing, vec![Action::Adopt(id.clone(), tags(observed))], Reason::Adopting, message).pending()
}

/// The record, if it is this Volume's to take: of its namespace, and held by its Database.
fn recorded(observed: &Observed, name: &str) -> Result<Retained, String> {
    let volume = &observed.volume;
    let namespace = volume.namespace().unwrap_or_default();
    let kept = observed.record.as_ref().and_then(retention::read).filter(|kept| kept.persistent_volume == name);
    let Some(kept) = kept.filter(|kept| kept.namespace == namespace) else {
        return Err(format!("it is no record of a volume that was kept in namespace {namespace}"));
    };
    let database = volume.labels().get(keys::DATABASE_UID_LABEL).filter(|uid| !uid.is_empty());
    if database.is_none() || kept.adopted_by.as_ref().map(|holder| &holder.uid) != database {
        return Err("it is not held by this Volume's Database".to_owned());
    }
    if kept.file_system.as_deref() != Some(volume.spec.file_system.as_str()) {
        return Err(format!("its file system is not {}", volume.spec.file_system.as_str()));
    }
    Ok(kept)
}

/// Whether the EBS volume itself is what its record says. That it carries this cluster's tag and the former Volume's UID is how it
/// was found.
fn fits(observed: &Observed, volume: &EbsVolume, size: i32) -> Result<(), String> {
    let namespace = observed.volume.namespace().unwrap_or_default();
    let tag = volume.tags.get(keys::DATABASE_TAG).and_then(|database| database.split_once('/'));
    if tag.map(|(tagged, _)| tagged) != Some(namespace.as_str()) {
        return Err(format!("EBS volume {} does not carry the tag {} of this namespace", volume.id, keys::DATABASE_TAG));
    }
    if volume.zone != observed.volume.spec.zone {
        return Err(format!("EBS volume {} is in {}, not in {}", volume.id, volume.zone, observed.volume.spec.zone));
    }
    if size < volume.size {
        return Err(format!("EBS volume {} has {} GiB, and EBS volumes only grow: ask for as much or more", volume.id, volume.size));
    }
    Ok(())
}

fn refused(observed: &Observed, name: &str, why: &str) -> Plan {
    let message = format!("the volume that PersistentVolume {name} records is not taken over: {why}");
    Plan { again: Some(observed.timing.recheck.saturating_mul(12)), ..Plan::stalled(Stage::Nothing, Reason::AdoptionRefused, message) }
}

fn tags(observed: &Observed) -> BTreeMap<String, String> {
    identity::adoption_tags(&owner_of(&observed.volume, &observed.cluster_id))
}

/// Announced, and EC2 still shows the former owner's tag: the same call again, until it shows ours. What was announced is always
/// finished, before a deletion, too.
pub(super) fn moving(observed: &Observed, id: &VolumeId, now: Timestamp) -> Option<Plan> {
    observed.former.volumes.iter().find(|volume| volume.id == *id)?;
    let wait = |reason: Reason, message: String| Plan::wait(Stage::Nothing, reason, message).pending();
    Some(match again(observed.asked.get(&Call::CreateTags), observed.volumes.swept_at, observed.timing.recheck, now) {
        Again::Now => {
            let message = format!("EBS volume {id} is tagged as this Volume's");
            Plan::act(Stage::Nothing, vec![Action::Retag(id.clone(), tags(observed))], Reason::Adopting, message).pending()
        }
        Again::OnceShown => wait(Reason::Adopting, format!("EC2 does not show the new tags of EBS volume {id} yet")),
        Again::Later(held_up, until) => wait(held_up.reason, held_up.message.clone()).until(until, now),
    })
}

/// The former record goes once this Volume's own is there and bound.
pub(super) fn closing(observed: &Observed, id: &VolumeId) -> Option<Plan> {
    let close = close_record(observed, id)?;
    let message = format!("EBS volume {id} is taken over; its former record goes");
    Some(Plan::act(Stage::Bound, vec![close], Reason::Adopting, message))
}

/// Deletes the former record of an EBS volume that this Volume has taken over.
pub(super) fn close_record(observed: &Observed, id: &VolumeId) -> Option<Action> {
    let record = held(observed)?;
    let is_of_this = retention::read(record).is_some_and(|kept| kept.volume_id == *id);
    (is_of_this && record.metadata.deletion_timestamp.is_none()).then(|| Action::DeletePersistentVolume(Box::new(record.clone())))
}

/// Gives back a record whose volume was never taken.
pub(super) fn release(observed: &Observed) -> Option<Action> {
    held(observed).map(|record| Action::ReleaseRecord(Box::new(record.clone())))
}

/// The record, while this Volume's Database holds it.
fn held(observed: &Observed) -> Option<&PersistentVolume> {
    let database = observed.volume.labels().get(keys::DATABASE_UID_LABEL)?;
    let record = observed.record.as_ref()?;
    retention::read(record)?.adopted_by.filter(|holder| holder.uid == *database).map(|_| record)
}

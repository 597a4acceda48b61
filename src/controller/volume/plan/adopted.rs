//! The plan of a Volume that adopts an EBS volume in place, which a database uses: identified by its id and a
//! tag, announced, tagged, its PersistentVolume made the record, and its claim owned last. Pure.
//!
//! Nothing here creates or ends anything in EC2: what is gone there is lost (`docs/decisions/0020`).

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::ResourceExt;

use super::action::{Action, Plan, Stage};
use super::facts::{is_tagged, owner_of, ownership_tags};
use super::{adoption, modification, release, restored};
use crate::api::names::VolumeNames;
use crate::api::volume::AdoptedVolume;
use crate::api::{VolumeStatus, keys};
use crate::cloud::{EbsVolume, VolumeState, identity};
use crate::cluster::persistent_volume::file_system;
use crate::controller::volume::adopted;
use crate::controller::volume::observe::{ById, Observed};
use crate::controller::volume::wait::VolumeWait;
use crate::controller::volume::wait::adopted::{AdoptedRefusal, AdoptedWait};
use crate::controller::volume::wait::creation::AdoptionWait;

/// Nothing is announced yet: the EBS volume is adopted, or the plan says why not.
pub(super) fn take(observed: &Observed, adopt: &AdoptedVolume, size: i32) -> Plan {
    let id = &adopt.volume_id;
    let fits = match &observed.by_id {
        ById::NotRead => return release::reads(observed, id, Vec::new()),
        // A tenant does not learn which EBS volumes exist: the same answer.
        ById::NotShown => Err(AdoptedRefusal::NotTagged(adopter(observed))),
        ById::Shown(volume) => fits(observed, volume, size).and_then(|()| bound(observed, adopt).map(drop)),
    };
    match fits {
        Ok(()) => {
            let actions = vec![Action::Adopt(id.clone(), ownership_tags(observed))];
            Plan::act(Stage::Nothing, actions, AdoptionWait::Adopting(id.clone())).pending()
        }
        Err(cause) => {
            Plan::wait(Stage::Nothing, AdoptedWait::Refused(id.clone(), cause)).after(rarely(observed))
        }
    }
}

/// Whether EC2 shows what the spec says, and that this Volume may have it.
fn fits(observed: &Observed, volume: &EbsVolume, size: i32) -> Result<(), AdoptedRefusal> {
    if !is_tagged(observed, volume) && !may_tag(observed, volume) {
        return Err(AdoptedRefusal::NotTagged(adopter(observed)));
    }
    if let Some(other) = other(observed, volume) {
        return Err(other);
    }
    let wanted = &observed.volume.spec.zone;
    if volume.zone != *wanted {
        return Err(AdoptedRefusal::Zone { zone: volume.zone.clone(), wanted: wanted.clone() });
    }
    if volume.multi_attach {
        return Err(AdoptedRefusal::MultiAttach);
    }
    if let Some(held) = volume.attachments.iter().find(|held| held.delete_on_termination) {
        return Err(AdoptedRefusal::EndsWithInstance {
            instance: held.instance.clone(),
            device: held.device.clone(),
        });
    }
    if !matches!(volume.state, VolumeState::Available | VolumeState::InUse) {
        return Err(AdoptedRefusal::State(volume.state));
    }
    if size < volume.size {
        return Err(AdoptedRefusal::Larger(volume.size));
    }
    Ok(())
}

/// Whose tags it carries, if they are another's.
fn other(observed: &Observed, volume: &EbsVolume) -> Option<AdoptedRefusal> {
    let uid = observed.volume.uid().unwrap_or_default();
    let other = |key: &str, ours: &str| volume.tags.get(key).filter(|value| *value != ours).cloned();
    let cluster = other(keys::CLUSTER_ID_TAG, &observed.cluster_id).map(AdoptedRefusal::OtherCluster);
    cluster.or_else(|| other(keys::VOLUME_UID_TAG, &uid).map(AdoptedRefusal::OtherVolume))
}

/// The PersistentVolume and the claim, if they are those of the EBS volume.
fn bound<'a>(
    observed: &'a Observed,
    adopt: &AdoptedVolume,
) -> Result<(&'a PersistentVolume, &'a PersistentVolumeClaim), AdoptedRefusal> {
    let VolumeNames { persistent_volume: name, claim } = VolumeNames::of(&observed.volume);
    let named = observed.persistent_volume.as_ref().filter(|it| adopted::names(it, &adopt.volume_id));
    let Some(named) = named else { return Err(AdoptedRefusal::NoPersistentVolume(name)) };
    if named.metadata.deletion_timestamp.is_some() {
        return Err(AdoptedRefusal::PersistentVolumeDeleted(name));
    }
    let uid = named.labels().get(keys::VOLUME_UID_LABEL);
    if let Some(uid) = uid.filter(|uid| Some(*uid) != observed.volume.metadata.uid.as_ref()) {
        return Err(AdoptedRefusal::OtherRecord { persistent_volume: name, uid: uid.clone() });
    }
    let Some(bound) = observed.claim.as_ref().filter(|claim| adopted::is_bound(named, claim)) else {
        return Err(AdoptedRefusal::NotBound { persistent_volume: name, claim });
    };
    if bound.metadata.deletion_timestamp.is_some() {
        return Err(AdoptedRefusal::ClaimDeleted(claim));
    }
    let wanted = observed.volume.spec.file_system.as_str();
    let has = file_system(named).unwrap_or_default();
    if has != wanted {
        return Err(AdoptedRefusal::FileSystem { has, wanted });
    }
    Ok((named, bound))
}

/// Announced, and no look-up by this Volume's tags shows it: tagged until one does. `None` where EC2 does not
/// show it by its id either, or was not asked.
pub(super) fn moving(observed: &Observed, adopt: &AdoptedVolume, now: Timestamp) -> Option<Plan> {
    let id = &adopt.volume_id;
    let ById::Shown(volume) = &observed.by_id else { return None };
    if matches!(volume.state, VolumeState::Deleting | VolumeState::Deleted) {
        return None;
    }
    let recheck = observed.timing.requeue_interval;
    if is_tagged(observed, volume) {
        let wait = AdoptionWait::TagsNotShown(id.clone());
        return Some(Plan::wait(Stage::Nothing, wait).pending().after(recheck));
    }
    if !may_tag(observed, volume) || other(observed, volume).is_some() {
        let wait = VolumeWait::WithoutTags(id.clone());
        return Some(Plan::wait(Stage::Nothing, wait).pending().after(rarely(observed)));
    }
    let plan = adoption::tagging(observed, id, ownership_tags(observed), Some(now), now);
    Some(Plan { requeue: plan.requeue.or(Some(recheck)), ..plan })
}

/// EC2 shows the EBS volume under this Volume's UID: the PersistentVolume is made the record, then the claim
/// is owned. While the volume would be released, nothing is owned that could be deleted with the Volume,
/// and nothing of the EBS volume is modified.
pub(super) fn bind(
    observed: &Observed,
    status: &VolumeStatus,
    adopt: &AdoptedVolume,
    volume: &EbsVolume,
    size: i32,
    now: Timestamp,
) -> Plan {
    if let Some(plan) = restored::plan(observed, adopt, volume) {
        return plan;
    }
    let (named, claim) = match bound(observed, adopt) {
        Ok(bound) => bound,
        Err(cause) => {
            let wait = AdoptedWait::Unbound(adopt.volume_id.clone(), cause);
            return Plan::wait(Stage::Created, wait).after(rarely(observed));
        }
    };
    let act = |stage: Stage, action: Action, wait: AdoptedWait| {
        Plan::act(stage, vec![action], wait).after(observed.timing.requeue_interval)
    };
    if let Some(change) = adopted::record(named, &observed.volume) {
        let wait = AdoptedWait::Recording(named.name_any());
        return act(Stage::Created, Action::RecordAdopted(change), wait);
    }
    if observed.volume.spec.release {
        return match adopted::disown(claim, &observed.volume) {
            Some(change) => {
                act(Stage::Bound, Action::DisownClaim(change), AdoptedWait::Disowning(claim.name_any()))
            }
            None => Plan::done(),
        };
    }
    match adopted::own(claim, &observed.volume) {
        Some(change) => act(Stage::Bound, Action::OwnClaim(change), AdoptedWait::Owning(claim.name_any())),
        None => modification::plan(observed, status, volume, claim, size, now),
    }
}

/// Only a person helps, and nothing of this is watched.
fn rarely(observed: &Observed) -> Duration {
    observed.timing.requeue_interval.saturating_mul(12)
}

/// What the tag `freehold.dev/adopt` must say.
fn adopter(observed: &Observed) -> String {
    let owner = owner_of(&observed.volume, &observed.cluster_id);
    identity::adopter(&owner.cluster_id, &owner.database)
}

/// Whether the tag of the person who adopts allows this Database to have it.
fn may_tag(observed: &Observed, volume: &EbsVolume) -> bool {
    volume.tags.get(keys::ADOPT_TAG) == Some(&adopter(observed))
}

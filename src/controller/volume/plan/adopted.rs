//! The plan of a Volume that adopts an EBS volume in place, which a database uses: identified by its id and a
//! tag, announced, tagged, its PersistentVolume made the record, and its claim owned last; or all of that
//! given back. Pure.
//!
//! Nothing here creates or ends anything in EC2: what is gone there is lost (`docs/decisions/0020`).

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::ResourceExt;

use super::action::{Action, Plan, Stage};
use super::facts::owner_of;
use super::{adoption, modification, restored};
use crate::api::names::VolumeNames;
use crate::api::volume::AdoptedVolume;
use crate::api::{VolumeStatus, keys};
use crate::cloud::call::Call;
use crate::cloud::{EbsVolume, VolumeState, identity};
use crate::cluster::persistent_volume::file_system;
use crate::controller::memory::issued_requests::{Again, again};
use crate::controller::volume::adopted;
use crate::controller::volume::observe::{ById, Observed};
use crate::controller::volume::wait::VolumeWait;
use crate::controller::volume::wait::adopted::{AdoptedRefusal, AdoptedWait};
use crate::controller::volume::wait::creation::AdoptionWait;
use crate::time::later;

/// Nothing is announced yet: the EBS volume is adopted, or the plan says why not.
pub(super) fn take(observed: &Observed, adopt: &AdoptedVolume, size: i32) -> Plan {
    let id = &adopt.volume_id;
    let fits = match &observed.by_id {
        ById::NotRead => return reads(observed, adopt, Vec::new()),
        // A tenant does not learn which EBS volumes exist: the same answer.
        ById::NotShown => Err(AdoptedRefusal::NotTagged(adopter(observed))),
        ById::Shown(volume) => fits(observed, volume, size).and_then(|()| bound(observed, adopt).map(drop)),
    };
    match fits {
        Ok(()) => {
            let actions = vec![Action::Adopt(id.clone(), tags(observed))];
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
    let plan = adoption::tagging(observed, id, tags(observed), Some(now), now);
    Some(Plan { requeue: plan.requeue.or(Some(recheck)), ..plan })
}

/// EC2 shows the EBS volume under this Volume's UID: the PersistentVolume is made the record, then the claim
/// is owned. While the volume would be given back, nothing is owned that could be deleted with the Volume,
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

/// The Volume is being deleted, and everything is to be as it was found: the claim is not owned any more
/// before the PersistentVolume has its reclaim policy back, and the tags are seen to be gone last.
pub(super) fn release(observed: &Observed, adopt: &AdoptedVolume, now: Timestamp) -> Plan {
    let (id, volume) = (&adopt.volume_id, &observed.volume);
    let claim = observed.claim.as_ref();
    let mut actions = Vec::new();
    actions.extend(claim.and_then(|claim| adopted::disown(claim, volume)).map(Action::DisownClaim));
    let record = observed.persistent_volume.as_ref();
    let given_back = record.and_then(|record| adopted::give_back(record, claim, volume));
    actions.extend(given_back.map(Action::GiveBackRecord));
    let shown = match &observed.by_id {
        ById::NotRead => return reads(observed, adopt, actions),
        ById::NotShown => None,
        ById::Shown(shown) => Some(shown),
    };
    let recheck = observed.timing.requeue_interval;
    if shown.is_none_or(|shown| !is_tagged(observed, shown)) {
        let tagged = observed.issued.get(&Call::CreateTags).map(|tagged| later(tagged.at, recheck));
        // What was tagged a moment ago may not be shown yet.
        if let Some(shown_from) = tagged.filter(|shown_from| now < *shown_from) {
            let wait = AdoptedWait::GivingBack(id.clone());
            return Plan::act(Stage::Nothing, actions, wait).until(shown_from, now);
        }
        actions.push(Action::RemoveFinalizer);
        return Plan::act(Stage::Nothing, actions, AdoptedWait::GivenBack(id.clone()));
    }
    // EC2 was just read.
    match again(observed.issued.get(&Call::DeleteTags), Some(now), recheck, now) {
        Again::Now => actions.push(Action::Untag(id.clone(), tags(observed))),
        Again::OnceShown => {}
        Again::Later(call_blocked, until) => {
            let wait = VolumeWait::Blocked(call_blocked.clone());
            return Plan::act(Stage::Nothing, actions, wait).until(until, now);
        }
    }
    Plan::act(Stage::Nothing, actions, AdoptedWait::GivingBack(id.clone())).after(recheck)
}

/// EC2 is to be read first; this much can be done before.
fn reads(observed: &Observed, adopt: &AdoptedVolume, actions: Vec<Action>) -> Plan {
    let id = &adopt.volume_id;
    let plan = Plan::act(Stage::Nothing, actions, AdoptedWait::Reading(id.clone()));
    Plan { look_up: Some(id.clone()), ..plan.after(observed.timing.requeue_interval) }
}

/// Only a person helps, and nothing of this is watched.
fn rarely(observed: &Observed) -> Duration {
    observed.timing.requeue_interval.saturating_mul(12)
}

/// Whose the EBS volume is, but not its Name, which stays as it was found.
fn tags(observed: &Observed) -> BTreeMap<String, String> {
    identity::ownership_tags(&owner_of(&observed.volume, &observed.cluster_id))
}

/// What the tag `freehold.dev/adopt` must say.
fn adopter(observed: &Observed) -> String {
    let owner = owner_of(&observed.volume, &observed.cluster_id);
    identity::adopter(&owner.cluster_id, &owner.database)
}

/// Whether it carries this Volume's tags.
pub(super) fn is_tagged(observed: &Observed, volume: &EbsVolume) -> bool {
    let owner = owner_of(&observed.volume, &observed.cluster_id);
    let tags = identity::owner_tags(&owner.cluster_id, owner.kind, &owner.uid);
    tags.iter().all(|(key, value)| volume.tags.get(key) == Some(value))
}

/// Whether the tag of the person who adopts allows this Database to have it.
fn may_tag(observed: &Observed, volume: &EbsVolume) -> bool {
    volume.tags.get(keys::ADOPT_TAG) == Some(&adopter(observed))
}

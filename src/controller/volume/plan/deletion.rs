//! The plan of a Volume that is being deleted: claim, then what the policy says, then the record. Pure.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::ResourceExt;

use super::action::{Action, Plan, Stage};
use super::facts::{attempt_facts, blocked, is_decided, once_confirmed, owner_of, proven_absent};
use super::{adopted, adoption, binding, release, snapshot};
use crate::api::names::VolumeNames;
use crate::api::{ConditionType, DeletionPolicy, Size, VolumeId, VolumeStatus, keys};
use crate::cloud::call::Call;
use crate::cloud::identity;
use crate::cloud::{EbsVolume, VolumeState};
use crate::cluster::finalizer;
use crate::cluster::ownership::{is_orphaning, is_unowned};
use crate::controller::creation::judge::{Verdict, judge};
use crate::controller::database::in_place;
use crate::controller::retention::{self, Disk};
use crate::controller::volume::observe::{ById, Observed};
use crate::controller::volume::wait::VolumeWait;
use crate::controller::volume::wait::adopted::AdoptedWait;
use crate::controller::volume::wait::creation::{CreationWait, Found};
use crate::controller::volume::wait::deletion::DeletionWait;
use crate::controller::volume::{adopted as adopted_objects, build, messages};
use crate::controller::{conditions, safety};

pub(super) fn plan(observed: &Observed, now: Timestamp) -> Plan {
    if !finalizer::has(&observed.volume) {
        return Plan::wait(Stage::Nothing, DeletionWait::OtherFinalizers);
    }
    if let Some(id) = released(observed) {
        return release::plan(observed, &id, now);
    }
    // Before anything ends the claim, and whatever the policy says: Freehold deletes the EBS volume itself.
    if let Some((action, wait)) = binding::retaining(observed) {
        return Plan::act(reached(observed), vec![action], wait).after(observed.timing.requeue_interval);
    }
    if observed.volumes.swept_at.is_none() {
        return Plan::wait(Stage::Nothing, VolumeWait::FirstSync);
    }
    if !is_decided(observed) {
        return Plan::wait(reached(observed), DeletionWait::DatabaseRemains)
            .after(observed.timing.requeue_interval.saturating_mul(12));
    }
    let status = observed.volume.status.clone().unwrap_or_default();
    if let Some(plan) = claim(observed) {
        return plan;
    }
    if let Some(adopt) = &observed.volume.spec.adopt
        && status.volume_id.as_ref() != Some(&adopt.volume_id)
    {
        return unannounced(observed, &adopt.volume_id);
    }
    match (&status.volume_id, &status.creation) {
        (Some(id), _) => identified(observed, &status, id, now),
        (None, None) => unrecorded(observed),
        (None, Some(creation)) => {
            match judge(attempt_facts(observed, creation, true), observed.timing.client_token_max_age, now) {
                Verdict::Adopt(id) => record(id, Found::ByAttempt).pending(),
                Verdict::Refused(_) | Verdict::ProvenAbsent(_) => finished(observed),
                Verdict::Resend => Plan::wait(Stage::Nothing, DeletionWait::NotResent).pending(),
                Verdict::Wait(doubt, _) => Plan::wait(
                    Stage::Nothing,
                    CreationWait::InDoubt { attempt: creation.attempt.number, doubt },
                )
                .pending(),
            }
        }
    }
}

/// The claim goes first, if it is this Volume's. It needs our finalizer no more: the engine has stopped.
fn claim(observed: &Observed) -> Option<Plan> {
    let is_ours = |it: &&PersistentVolumeClaim| adopted_objects::is_owned(it, &observed.volume);
    let claim = observed.claim.as_ref().filter(is_ours).filter(|_| !observed.volume.spec.release)?;
    let mut actions = Vec::new();
    if finalizer::has(claim) {
        actions.push(Action::FreeClaim(Box::new(claim.clone())));
    }
    if claim.metadata.deletion_timestamp.is_none() {
        actions.push(Action::DeleteClaim(Box::new(claim.clone())));
    }
    Some(Plan::act(Stage::Bound, actions, DeletionWait::ClaimRemains(claim.name_any())))
}

/// How far the Volume was before it was deleted: until its Database has decided, nothing changes.
fn reached(observed: &Observed) -> Stage {
    let conditions = observed.volume.conditions();
    let is_true = |kind: ConditionType| conditions::is_true(conditions, kind);
    match (is_true(ConditionType::Created), is_true(ConditionType::Bound)) {
        (_, true) => Stage::Bound,
        (true, false) => Stage::Created,
        (false, false) => Stage::Nothing,
    }
}

/// The EBS volume that is released; `None` as well while it is not known.
fn released(observed: &Observed) -> Option<VolumeId> {
    let spec = &observed.volume.spec;
    let recorded = || observed.volume.status.as_ref()?.volume_id.clone();
    let adopted = spec.adopt.as_ref().map(|adopt| adopt.volume_id.clone());
    adopted.or_else(recorded).filter(|_| spec.release)
}

/// Nothing was ever requested; a resource that carries this Volume's identity all the same is adopted first.
fn unrecorded(observed: &Observed) -> Plan {
    match observed.volumes.volumes.as_slice() {
        [] => {
            if let Some(id) = observed.recorded_volume() {
                return record(id, Found::ByPersistentVolume);
            }
            let mut plan = finished(observed);
            // Nothing was announced: the kept volume stays what it was, under its own record.
            if let Some(release) = adoption::release(observed) {
                plan.actions.insert(0, release);
            }
            plan
        }
        [one] => record(one.id.clone(), Found::ByTags),
        several => Plan::wait(
            Stage::Nothing,
            DeletionWait::Several(several.iter().map(|volume| volume.id.clone()).collect()),
        ),
    }
}

/// The EBS volume is one that Freehold has not created, and the status does not name it: it is this Volume's
/// only if it carries its tags, or its PersistentVolume does.
fn unannounced(observed: &Observed, id: &VolumeId) -> Plan {
    if observed.volumes.volumes.iter().any(|volume| volume.id == *id) {
        return record(id.clone(), Found::ByTags);
    }
    match observed.recorded_volume() {
        Some(named) if named == *id => record(named, Found::ByPersistentVolume),
        Some(_) | None => finished(observed),
    }
}

fn record(id: VolumeId, found: Found) -> Plan {
    Plan::act(Stage::Nothing, vec![Action::RecordVolume(id.clone())], DeletionWait::Recording(id, found))
}

/// The policy that counts: the newest that the Database says; in a teardown, and where the deletion of the
/// Database is to leave everything as it is, Retain, since neither is a decision about this very volume.
/// Retain as well while the Database is protected or is to be released, whatever has deleted the Volume, and
/// for a Volume whose place another one takes. A Database without our finalizer has said its last word in the
/// Volume's spec.
pub fn effective_policy(observed: &Observed) -> DeletionPolicy {
    // The record says it, too, where an older definition of Volumes has dropped the field.
    let record = observed.owner.as_ref().and_then(|owner| in_place::underway(owner));
    if observed.volume.spec.replaced || record.is_some_and(|it| !in_place::is_wanted(it, &observed.volume)) {
        return DeletionPolicy::Retain;
    }
    let newest = match observed.owner.as_ref().filter(|owner| finalizer::has(*owner)) {
        Some(owner) if owner.spec.deletion_protection || owner.spec.release => DeletionPolicy::Retain,
        Some(owner) => owner.spec.deletion_policy,
        None => observed.volume.spec.deletion_policy,
    };
    let is_orphaning = observed.owner.as_ref().is_some_and(is_orphaning);
    if observed.around.is_torn_down || is_orphaning { DeletionPolicy::Retain } else { newest }
}

fn identified(observed: &Observed, status: &VolumeStatus, id: &VolumeId, now: Timestamp) -> Plan {
    let seen = observed.volumes.volumes.iter().find(|volume| volume.id == *id);
    match seen.map(|volume| (volume, volume.state)) {
        Some((_, VolumeState::Creating)) => {
            Plan::wait(Stage::Nothing, CreationWait::Creating(id.clone())).pending()
        }
        // EC2 has accepted its deletion, whether it shows that or not yet: whatever the policy says now, it
        // can't be kept any more.
        Some(_) if status.deleted_at.is_some() => {
            Plan::wait(Stage::Created, DeletionWait::DeletingVolume(id.clone())).pending()
        }
        Some((_, VolumeState::Deleting | VolumeState::Deleted)) => {
            Plan::act(Stage::Created, vec![Action::NoteDeleted], DeletionWait::DeletingVolume(id.clone()))
                .pending()
        }
        Some((
            volume,
            VolumeState::Available | VolumeState::InUse | VolumeState::Error | VolumeState::Unknown,
        )) => match effective_policy(observed) {
            DeletionPolicy::Retain => retained(observed, volume, now),
            DeletionPolicy::Snapshot => snapshot::plan(observed, status, volume, now)
                .unwrap_or_else(|| deleted(observed, volume, now)),
            DeletionPolicy::Delete => deleted(observed, volume, now),
        },
        None => match &observed.volume.spec.adopt {
            Some(adopt) => adopted::moving(observed, adopt, now).unwrap_or_else(|| {
                let look_up = (observed.by_id == ById::NotRead).then(|| id.clone());
                Plan { look_up, ..gone(observed, status, id) }
            }),
            None => adoption::moving(observed, id, now).unwrap_or_else(|| gone(observed, status, id)),
        },
    }
}

/// EC2 does not show the volume.
fn gone(observed: &Observed, status: &VolumeStatus, id: &VolumeId) -> Plan {
    let was_deleted = status.deleted_at.as_ref().is_some_and(|at| {
        observed
            .volumes
            .swept_at
            .is_some_and(|swept| swept.duration_since(at.0) > SignedDuration::from_secs(1))
    });
    let proven = proven_absent(observed, status.creation.as_ref()).is_some();
    if was_deleted {
        return finished(observed);
    }
    if proven {
        let wait = DeletionWait::ProvingAbsence(id.clone());
        return once_confirmed(observed, id, finished(observed).pending(), wait);
    }
    Plan::wait(Stage::Nothing, DeletionWait::ProvingAbsence(id.clone())).pending()
}

/// Retain: the EBS volume stays, and a PersistentVolume is the record of it.
fn retained(observed: &Observed, volume: &EbsVolume, now: Timestamp) -> Plan {
    let uid = observed.volume.uid().unwrap_or_default();
    let mut actions = Vec::new();
    match &observed.persistent_volume {
        // It is being deleted outside Freehold: one that stays is created once it is gone.
        Some(record) if record.metadata.deletion_timestamp.is_some() => {
            let wait = DeletionWait::RecordDeleted { id: volume.id.clone(), record: record.name_any() };
            return Plan::wait(Stage::Created, wait).after(observed.timing.requeue_interval);
        }
        // Adopted, and not marked yet.
        Some(record)
            if observed.volume.spec.adopt.is_some()
                && adopted_objects::names(record, &volume.id)
                && record.labels().get(keys::VOLUME_UID_LABEL).is_none() =>
        {
            let change = adopted_objects::record(record, &observed.volume);
            let wait = AdoptedWait::Recording(record.name_any());
            let actions = change.map(Action::RecordAdopted).into_iter().collect();
            return Plan::act(Stage::Created, actions, wait).after(observed.timing.requeue_interval);
        }
        Some(record) if !build::is_record_of(record, &observed.volume) => {
            let wait = DeletionWait::RecordNotOurs { id: volume.id.clone(), record: record.name_any(), uid };
            return Plan::wait(Stage::Created, wait).after(observed.timing.requeue_interval);
        }
        Some(record) if record.labels().get(keys::RETAINED_LABEL).is_none() => {
            actions.push(Action::MarkRetained(Box::new(marked(observed, volume, record.clone(), now))));
        }
        Some(_) => {}
        None => actions.push(Action::CreatePersistentVolume(Box::new(record_of(observed, volume, now)))),
    }
    actions.extend(adoption::close_record(observed, &volume.id));
    actions.push(Action::RemoveFinalizer);
    Plan::act(
        Stage::Created,
        actions,
        DeletionWait::Retaining {
            id: volume.id.clone(),
            record: VolumeNames::of(&observed.volume).persistent_volume,
        },
    )
}

/// The record of a volume that never had a PersistentVolume: claimed by a claim that is gone, so that it
/// shows as Released.
fn record_of(observed: &Observed, volume: &EbsVolume, now: Timestamp) -> PersistentVolume {
    let storage_class =
        observed.class.as_ref().map(|class| class.spec.storage_class_name.clone()).unwrap_or_default();
    let record = build::persistent_volume(
        &observed.volume,
        &volume.id,
        &Size::from_gib(volume.size),
        &storage_class,
        None,
    );
    marked(observed, volume, record, now)
}

/// The PersistentVolume as the record of what was kept: it says what, when and why, and is Released, since
/// the claim that it names can come no more.
fn marked(
    observed: &Observed,
    volume: &EbsVolume,
    mut record: PersistentVolume,
    now: Timestamp,
) -> PersistentVolume {
    let name = observed.volume.name_any();
    let because = if observed.around.is_torn_down {
        messages::RETAINED_BY_TEARDOWN
    } else if is_unowned(&observed.volume) || observed.owner.as_ref().is_some_and(is_orphaning) {
        messages::RETAINED_BY_ORPHANING
    } else if observed.volume.spec.replaced {
        messages::RETAINED_BY_RESTORE
    } else {
        messages::RETAINED_BY_POLICY
    };
    let engine = observed.volume.labels().get(keys::ENGINE_LABEL);
    let disk = Disk { size: Size::from_gib(volume.size), volume_type: volume.volume_type.clone() };
    let namespace_uid = observed.around.namespace_uid.as_ref();
    let marks = retention::marks(&name, engine, observed.owner.as_ref(), &disk, because, namespace_uid, now);
    record.annotations_mut().extend(marks);
    record.labels_mut().insert(keys::RETAINED_LABEL.to_owned(), "true".to_owned());
    if let Some(spec) = &mut record.spec {
        let claim = spec.claim_ref.get_or_insert_default();
        claim.name.get_or_insert(name);
        claim.namespace = observed.volume.namespace();
        claim.uid = claim.uid.take().or_else(|| observed.volume.uid());
    }
    record
}

/// Delete: only what is available and ours.
fn deleted(observed: &Observed, volume: &EbsVolume, now: Timestamp) -> Plan {
    if !observed.attachments.is_empty() {
        return Plan::wait(Stage::Created, DeletionWait::NotDetached(volume.id.clone()))
            .after(observed.timing.requeue_interval);
    }
    let owner = owner_of(&observed.volume, &observed.cluster_id);
    let tags = identity::owner_tags(&owner.cluster_id, owner.kind, &owner.uid);
    match safety::may_delete_volume(volume, &tags, observed.volume.spec.release) {
        Ok(()) => blocked(observed, Call::DeleteVolume, Stage::Created, now).unwrap_or_else(|| {
            let actions = vec![Action::DeleteVolume(volume.id.clone())];
            Plan::act(Stage::Created, actions, DeletionWait::DeletingVolume(volume.id.clone())).pending()
        }),
        Err(blocker) => Plan::wait(Stage::Created, DeletionWait::Unsafe(blocker)).pending(),
    }
}

/// The EBS volume is gone for certain: its record goes, too.
fn finished(observed: &Observed) -> Plan {
    let mut actions: Vec<Action> = observed
        .persistent_volume
        .iter()
        .filter(|record| build::is_record_of(record, &observed.volume) && !observed.volume.spec.release)
        .map(|record| Action::DeletePersistentVolume(Box::new(record.clone())))
        .collect();
    let taken = observed.volume.status.as_ref().and_then(|status| status.volume_id.as_ref());
    actions.extend(taken.and_then(|id| adoption::close_record(observed, id)));
    actions.push(Action::RemoveFinalizer);
    Plan::act(Stage::Nothing, actions, DeletionWait::Gone)
}

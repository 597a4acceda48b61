//! The plan of a Database that takes over a kept volume: the record first, which is the lock, then zone and
//! credentials. Pure.
//!
//! Nothing is made before the record is held: of two Databases that ask for one volume, the other costs
//! nothing. The Volume then takes the disk itself (`volume/plan/adoption.rs`).

use kube::ResourceExt;

use super::action::{Action, Plan};
use super::leaving::is_leaving;
use crate::api::keys::TAKEN_FROM_ANNOTATION;
use crate::api::{ConditionType, Reason};
use crate::controller::conditions::Entry;
use crate::controller::database::build;
use crate::controller::database::cause::AdoptionRefusal;
use crate::controller::database::messages;
use crate::controller::database::observe::Observed;
use crate::controller::database::observe::child::{Child, Credentials};
use crate::controller::database::wait::DatabaseWait;
use crate::controller::retention::{self, Retained};
use crate::engine::Profile;

/// What comes before the Database's resources are created; `None` once all of it is done, or when nothing is
/// to be adopted.
pub(super) fn plan(observed: &Observed, profile: &Profile) -> Option<Plan> {
    let name = observed.database.spec.storage.adopt_retained.as_ref()?;
    let was_made = observed.database.status.as_ref().is_some_and(|status| status.volume_name.is_some());
    if was_made || observed.volume != Child::Absent {
        return None;
    }
    let record = observed.kept.record.as_ref();
    let namespace_uid = observed.kept.namespace_uid.as_deref();
    let kept = match retention::may_adopt(name, record, &observed.database, namespace_uid) {
        Ok(kept) => kept,
        Err(why) => return Some(refused(observed, AdoptionRefusal::Record(why))),
    };
    match &kept.adopted_by {
        Some(holder) if holder.uid == observed.names.uid => {}
        Some(holder) if !observed.kept.holder_is_gone => {
            let held = AdoptionRefusal::HeldByOther { database: holder.name.clone(), record: name.clone() };
            return Some(refused(observed, held));
        }
        Some(_) | None if observed.kept.former_exists => {
            let wait = DatabaseWait::FormerVolumeExists(kept.volume_id);
            return Some(Plan::wait(wait).requeue(observed.timing.requeue_interval));
        }
        Some(_) | None => {
            let actions =
                record.map(|record| Action::TakeRecord(Box::new(record.clone()))).into_iter().collect();
            return Some(adopts(observed, &kept, actions));
        }
    }
    let mut actions = Vec::new();
    let recorded = observed.database.status.as_ref().and_then(|status| status.zone.as_ref());
    if let Some(zone) = kept.zone.clone().filter(|zone| recorded != Some(zone)) {
        actions.push(Action::RecordZone(zone));
    }
    if observed.credentials == Credentials::Read(Child::Absent) {
        match credentials(observed, &kept, profile) {
            Ok(take) => actions.push(take),
            Err(why) => return Some(refused(observed, why)),
        }
    }
    (!actions.is_empty()).then(|| adopts(observed, &kept, actions))
}

fn adopts(observed: &Observed, kept: &Retained, actions: Vec<Action>) -> Plan {
    let wait =
        DatabaseWait::Adopting { volume_id: kept.volume_id.clone(), record: kept.persistent_volume.clone() };
    Plan::act(actions, wait).requeue(observed.timing.requeue_interval)
}

/// Retention records are not watched.
fn refused(observed: &Observed, refusal: AdoptionRefusal) -> Plan {
    Plan::wait(DatabaseWait::AdoptionRefused(refusal))
        .requeue(observed.timing.requeue_interval.saturating_mul(12))
}

/// The credentials that the data was made with: the engine has them stored, so others would not open it,
/// unless the spec says that it gets new ones.
fn credentials(observed: &Observed, kept: &Retained, profile: &Profile) -> Result<Action, AdoptionRefusal> {
    if observed.database.spec.storage.new_credentials {
        return Ok(Action::CreateCredentials(Box::new(profile.clone())));
    }
    let secret = || kept.credentials_secret.clone().unwrap_or_else(|| "with the credentials".to_owned());
    let namespace = || observed.names.namespace.clone();
    let held = match &observed.kept.credentials {
        Credentials::Read(Child::Ours(held)) => held,
        Credentials::Unreadable(answer) => {
            return Err(AdoptionRefusal::SecretForbidden {
                secret: secret(),
                namespace: namespace(),
                answer: answer.clone(),
            });
        }
        Credentials::Read(Child::Absent) => {
            let database_uid = kept.database_uid.clone().unwrap_or_default();
            return Err(AdoptionRefusal::SecretMissing {
                secret: secret(),
                namespace: namespace(),
                database_uid,
            });
        }
        Credentials::Read(Child::Foreign) => {
            return Err(AdoptionRefusal::SecretUnlabelled { secret: secret(), namespace: namespace() });
        }
    };
    build::check_credentials(&held.0)
        .map_err(|fault| AdoptionRefusal::SecretContent { secret: secret(), fault })?;
    Ok(Action::TakeCredentials(Box::new(profile.clone()), held.clone()))
}

/// The kept Secret goes once its volume is this Database's: its credentials are in the Database's own Secret
/// then.
pub(super) fn after(observed: &Observed, actions: &mut Vec<Action>) {
    let Credentials::Read(Child::Ours(own)) = &observed.credentials else { return };
    let Credentials::Read(Child::Ours(kept)) = &observed.kept.credentials else { return };
    let is_taken = own.0.annotations().get(TAKEN_FROM_ANNOTATION) == kept.0.metadata.name.as_ref();
    let has_disk = match &observed.volume {
        Child::Ours(volume) => volume.status.as_ref().is_some_and(|status| status.volume_id.is_some()),
        Child::Absent | Child::Foreign => is_leaving(observed),
    };
    // The Volume deletes the record when it has its own: that is the proof.
    if is_taken && has_disk && observed.kept.record.is_none() {
        actions.push(Action::DeleteRetainedCredentials(kept.0.name_any(), kept.0.uid().unwrap_or_default()));
    }
}

/// Whether what this Database requested was never adopted: its record and the Secret that was retained with
/// it are still there.
pub(super) fn is_untaken(observed: &Observed) -> bool {
    observed.kept.record.is_some() && matches!(observed.kept.credentials, Credentials::Read(Child::Ours(_)))
}

/// During a deletion: releases the record of a volume that was reserved and never adopted.
pub(super) fn release(observed: &Observed) -> Option<Action> {
    let record = observed.kept.record.as_ref()?;
    let holder = retention::read(record)?.adopted_by?;
    (holder.uid == observed.names.uid).then(|| Action::ReleaseRecord(Box::new(record.clone())))
}

/// What was retained under this name, as long as the spec does not say whether this Database uses it or
/// begins with an empty volume: one that is created again from its manifest has the name, the Service and
/// the Secret that clients know.
pub(super) fn undecided(observed: &Observed) -> Option<DatabaseWait> {
    let spec = &observed.database.spec;
    let is_decided = spec.storage.start_empty
        || spec.storage.adopt_retained.is_some()
        || spec.adopt.is_some()
        || spec.restore.is_some();
    let status = observed.database.status.as_ref();
    let was_made = status.is_some_and(|status| status.volume_name.is_some());
    let is_begun = was_made || observed.volume != Child::Absent || !observed.nodes.is_empty();
    latest(observed).filter(|_| !is_decided && !is_begun).map(retained)
}

/// What was retained of this very Database, which has no Volume and knows nothing of one: its status was lost
/// in a restore in place. Nothing is created in its place.
pub(super) fn lost(observed: &Observed) -> Option<DatabaseWait> {
    let status = observed.database.status.as_ref();
    let was_made = status.is_some_and(|status| status.volume_name.is_some());
    let is_own = |kept: &Retained| kept.database_uid.as_ref() == Some(&observed.names.uid);
    let is_lost = !was_made && observed.volume == Child::Absent;
    latest(observed).filter(|(latest, _)| is_lost && is_own(latest)).map(retained)
}

fn retained((latest, older): (&Retained, usize)) -> DatabaseWait {
    DatabaseWait::DataRetained {
        volume_id: latest.volume_id.clone(),
        record: latest.persistent_volume.clone(),
        older,
    }
}

/// Says that a volume is retained under this name, which this Database does not use.
pub(in crate::controller::database) fn found(observed: &Observed) -> Option<Entry> {
    let (latest, older) = latest(observed)?;
    let message = messages::retained_volume_found(latest, older);
    Some(Entry::yes(ConditionType::RetainedVolumeFound, Reason::RetainedVolumeFound, message))
}

/// The record of what was retained last under this name, and how many older ones there are.
fn latest(observed: &Observed) -> Option<(&Retained, usize)> {
    let records = observed.kept.found.as_ref()?;
    let latest = records.iter().max_by(|one, other| one.retained_at.cmp(&other.retained_at))?;
    Some((latest, records.len() - 1))
}

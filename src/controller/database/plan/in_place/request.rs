//! Whether a restore in place that the spec requests begins, and why not. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use kube::ResourceExt;

use crate::api::database::{FormerData, Restored, RestoredInPlace};
use crate::api::{DatabaseStatus, Volume};
use crate::controller::database::build;
use crate::controller::database::in_place::{Due, due, goes_on_with, restored_unrecorded};
use crate::controller::database::observe::Observed;
use crate::controller::database::plan::action::{Action, Plan};
use crate::controller::database::plan::facts::slowly;
use crate::controller::database::plan::restore::{Backup, backup};
use crate::controller::database::plan::{permission, prerequisites, total_storage};
use crate::controller::database::upgrade::{self, Phase};
use crate::controller::database::wait::{DatabaseWait, RestoreWait};
use crate::controller::restoring::RestoreRefusal;
use crate::time::whole_second;

/// Begins, if the backup fits and everything that the spec says can be carried out: an engine that is stopped
/// for it must be able to start again.
pub(super) fn begun(observed: &Observed, now: Timestamp) -> Option<Plan> {
    let (due, volume) = requested(observed)?;
    let Backup::Fits(restored) = judged(observed, &due, now) else { return None };
    let record = record(observed, &due, volume, &restored, now)?;
    if !observed.database.spec.running || !can_start(observed, &record) {
        return None;
    }
    let wait = RestoreWait::Recording(restored.snapshot_id);
    let actions = vec![Action::RecordRestoreInPlace(Box::new(record))];
    Some(Plan::act(actions, DatabaseWait::Restore(wait)).requeue(observed.timing.requeue_interval))
}

/// Whether the backup that is to be restored in place fits. A database that serves is not stopped for a
/// moment that has not come, which no log has.
fn judged(observed: &Observed, due: &Due, now: Timestamp) -> Backup {
    let until = due.backup.point_in_time.as_ref();
    match until.and_then(|until| until.time.as_ref()) {
        Some(MicroTime(wanted)) if *wanted > now => Backup::Refused(RestoreRefusal::TooLate(*wanted)),
        Some(_) | None => backup(observed, until),
    }
}

/// The restore in place that is to begin, and the Volume that makes room for it.
fn requested(observed: &Observed) -> Option<(Due, &Volume)> {
    let volume = observed
        .volume
        .ours()
        .filter(|volume| volume.metadata.deletion_timestamp.is_none() && !volume.spec.release)?;
    // What the Volume was created from is read first.
    if restored_unrecorded(&observed.database, volume).is_some() {
        return None;
    }
    Some((due(&observed.database, volume)?, volume))
}

fn record(
    observed: &Observed,
    due: &Due,
    volume: &Volume,
    restored: &Restored,
    now: Timestamp,
) -> Option<RestoredInPlace> {
    let status = observed.database.status.as_ref()?;
    let former = former(status, volume).or_else(|| {
        // A Volume that never had an EBS volume leaves the one before it, which is retained.
        let last = status.restored_in_place.as_ref().filter(|last| last.no_way_back)?;
        Some(last.former.clone())
    })?;
    // What an upgrade is gone back from, or is about to be, no engine of before is to be started on.
    let is_touched =
        upgrade::underway(&observed.database).is_some_and(|(phase, _)| phase != Phase::BackingUp);
    let is_of_upgrade = is_touched || former.volume_uid != volume.uid()?;
    Some(RestoredInPlace {
        generation: due.generation,
        backup: restored.clone(),
        initialization_rate: due.backup.initialization_rate,
        timeout_minutes: due.timeout_minutes.filter(|_| !is_of_upgrade),
        no_way_back: is_of_upgrade,
        former,
        started_at: Time(whole_second(now)),
        startable_at: None,
        went_back: None,
        ended_at: None,
    })
}

/// The data that the database has.
fn former(status: &DatabaseStatus, volume: &Volume) -> Option<FormerData> {
    let of_volume = volume.status.as_ref()?;
    Some(FormerData {
        volume_uid: volume.uid()?,
        volume_id: of_volume.volume_id.clone()?,
        persistent_volume_name: of_volume.persistent_volume_name.clone()?,
        size: volume.spec.size.clone(),
        zone: volume.spec.zone.clone(),
        restored: status.restored.clone(),
        engine_version: status.engine_version.clone(),
        served: status.served.clone(),
    })
}

/// Whether nothing of the spec keeps the engine from being started with the data of the backup.
fn can_start(observed: &Observed, record: &RestoredInPlace) -> bool {
    let mut restored = observed.clone();
    let status = restored.database.status.get_or_insert_default();
    // The engine that could not be started would be tried again.
    let has_gone_back = status.served.as_ref().is_some_and(|served| served.went_back.is_some());
    goes_on_with(status, record);
    // A database that goes back is down: the platform's limit does not keep it so.
    let has_room = || record.no_way_back || lacking_room(observed, record) == Some(0);
    !has_gone_back
        && has_room()
        && permission::engine(observed).is_none()
        && prerequisites::check(&restored, &mut Vec::new()).is_ok()
}

/// How many GiB the NodeClass' limit leaves too few for the Volume of the backup, beside the one that is
/// retained; `None` as long as EC2 was not listed.
fn lacking_room(observed: &Observed, record: &RestoredInPlace) -> Option<i32> {
    let volume = build::volume_in_place(&observed.database, &observed.names, record);
    let size = volume.spec.size.gib().unwrap_or_default();
    Some((size - total_storage::room(observed, size)?).max(0))
}

/// Why the restore in place that is requested does not begin.
pub(super) fn refused(observed: &Observed, now: Timestamp) -> Option<(RestoreWait, Duration)> {
    let (due, volume) = requested(observed).filter(|(due, _)| !due.is_of_upgrade())?;
    // Backups are not watched.
    let (soon, slowly) = (observed.timing.requeue_interval, slowly(observed));
    Some(match judged(observed, &due, now) {
        Backup::Refused(refusal) => (RestoreWait::RefusedInPlace(refusal), slowly),
        Backup::Awaited(wait) => (wait, soon),
        Backup::Fits(_) if !observed.database.spec.running => (RestoreWait::Paused, slowly),
        Backup::Fits(restored) => {
            let record = record(observed, &due, volume, &restored, now);
            match record.and_then(|record| lacking_room(observed, &record)) {
                Some(lacking) if lacking > 0 => (RestoreWait::NoStorage(lacking), slowly),
                Some(_) | None => (RestoreWait::Recording(restored.snapshot_id), soon),
            }
        }
    })
}

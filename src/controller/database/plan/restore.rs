//! The plan of a Database that begins with the data of a backup: which snapshot that is, is decided and
//! written down before anything is created. Pure.

use super::action::{Action, Plan};
use super::facts::slowly;
use crate::api::Volume;
use crate::api::database::{DatabaseSpec, PointInTime, RestoreInPlace, Restored};
use crate::cloud::SnapshotState;
use crate::controller::database::in_place::restored_unrecorded;
use crate::controller::database::observe::Observed;
use crate::controller::database::observe::child::Child;
use crate::controller::database::observe::restore::RestoreView;
use crate::controller::database::wait::{DatabaseWait, RestoreWait};
use crate::controller::restoring::{RestoreRefusal, fits};

/// What is known of the backup that the spec names.
pub(super) enum Backup {
    /// It does not fit this Database, or is none.
    Refused(RestoreRefusal),
    /// It is not complete, or not known yet.
    Awaited(RestoreWait),
    /// It can be restored.
    Fits(Restored),
}

/// What comes before the Database's resources are created; `None` once it is decided, or when nothing is to
/// be restored.
pub(super) fn plan(observed: &Observed) -> Option<Plan> {
    let until = observed.database.spec.restore.as_ref()?.point_in_time.as_ref();
    let status = observed.database.status.as_ref();
    let is_decided = status.is_some_and(|it| it.volume_name.is_some() || it.restored.is_some());
    if is_decided || observed.volume != Child::Absent {
        return None;
    }
    let soon = observed.timing.requeue_interval;
    Some(match backup(observed, until) {
        // Backups are not watched.
        Backup::Refused(refusal) => {
            Plan::wait(DatabaseWait::Restore(RestoreWait::Refused(refusal))).requeue(slowly(observed))
        }
        Backup::Awaited(wait) => Plan::wait(DatabaseWait::Restore(wait)).requeue(soon),
        Backup::Fits(restored) => recording(restored).requeue(soon),
    })
}

/// What the Volume was created from is recorded again where the status was lost, before an engine starts: it
/// must recover from the backup. A snapshot that is gone, or does not fit what the spec says by now, was
/// restored long ago.
pub(super) fn known_again(observed: &Observed) -> Option<Plan> {
    let volume = observed.volume.ours()?;
    restored_unrecorded(&observed.database, volume)?;
    let soon = observed.timing.requeue_interval;
    match backup(observed, requested_of(observed, volume)) {
        Backup::Awaited(RestoreWait::FirstSync) => {
            Some(Plan::wait(DatabaseWait::Restore(RestoreWait::FirstSync)).requeue(soon))
        }
        Backup::Fits(restored) => Some(recording(restored).requeue(soon)),
        Backup::Awaited(_) | Backup::Refused(_) => None,
    }
}

/// Up to which moment the data of this Volume was to be recovered.
fn requested_of<'a>(observed: &'a Observed, volume: &Volume) -> Option<&'a PointInTime> {
    let DatabaseSpec { restore, restore_in_place, .. } = &observed.database.spec;
    let made_for = |it: &&RestoreInPlace| Some(it.generation) == volume.spec.restore_generation;
    match restore_in_place.as_ref().filter(made_for) {
        Some(in_place) => in_place.point_in_time.as_ref(),
        None if volume.spec.restore_generation.is_some() => None,
        None => restore.as_ref()?.point_in_time.as_ref(),
    }
}

fn recording(restored: Restored) -> Plan {
    let wait = RestoreWait::Recording(restored.snapshot_id.clone());
    Plan::act(vec![Action::RecordRestore(Box::new(restored))], DatabaseWait::Restore(wait))
}

/// Whether the backup that the spec names can be restored in this Database, up to this moment if there is
/// one.
pub(super) fn backup(observed: &Observed, until: Option<&PointInTime>) -> Backup {
    let incomplete = |what: String| Backup::Awaited(RestoreWait::Incomplete(what));
    match &observed.kept.restore {
        RestoreView::NotRead | RestoreView::NotListedYet => Backup::Awaited(RestoreWait::FirstSync),
        RestoreView::NoBackup(name) => Backup::Refused(RestoreRefusal::NoBackup(name.clone())),
        RestoreView::Unusable(name) => Backup::Refused(RestoreRefusal::Unusable(name.clone())),
        RestoreView::Ending(name) => Backup::Refused(RestoreRefusal::Ending(name.clone())),
        RestoreView::Incomplete(name) => incomplete(format!("Backup {name}")),
        RestoreView::NotShown(id) => Backup::Refused(RestoreRefusal::NotOurs(id.0.clone())),
        RestoreView::Shown(snapshot) => {
            match fits(snapshot, &observed.database, until, observed.kept.namespace_uid.as_deref()) {
                Err(refusal) => Backup::Refused(refusal),
                Ok(_) if snapshot.state != SnapshotState::Completed => {
                    incomplete(format!("snapshot {}", snapshot.id))
                }
                Ok(restored) => Backup::Fits(restored),
            }
        }
    }
}

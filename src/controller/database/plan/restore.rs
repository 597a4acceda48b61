//! The plan of a Database that begins with the data of a backup: which snapshot that is, is decided and
//! written down before anything is created. Pure.

use super::action::{Action, Plan};
use super::facts::slowly;
use crate::cloud::SnapshotState;
use crate::controller::database::observe::Observed;
use crate::controller::database::observe::child::Child;
use crate::controller::database::observe::restore::RestoreView;
use crate::controller::database::wait::{DatabaseWait, RestoreWait};
use crate::controller::restoring::{RestoreRefusal, fits};

/// What comes before the Database's resources are created; `None` once it is decided, or when nothing is to
/// be restored.
pub(super) fn plan(observed: &Observed) -> Option<Plan> {
    observed.database.spec.restore.as_ref()?;
    let status = observed.database.status.as_ref();
    let is_decided = status.is_some_and(|it| it.volume_name.is_some() || it.restored.is_some());
    if is_decided || observed.volume != Child::Absent {
        return None;
    }
    let soon = |wait| Plan::wait(DatabaseWait::Restore(wait)).requeue(observed.timing.requeue_interval);
    // Backups are not watched.
    let refused =
        |refusal| Plan::wait(DatabaseWait::Restore(RestoreWait::Refused(refusal))).requeue(slowly(observed));
    Some(match &observed.kept.restore {
        RestoreView::NotRead | RestoreView::NotListedYet => soon(RestoreWait::FirstSync),
        RestoreView::NoBackup(name) => refused(RestoreRefusal::NoBackup(name.clone())),
        RestoreView::Unusable(name) => refused(RestoreRefusal::Unusable(name.clone())),
        RestoreView::Ending(name) => refused(RestoreRefusal::Ending(name.clone())),
        RestoreView::Incomplete(name) => soon(RestoreWait::Incomplete(format!("Backup {name}"))),
        RestoreView::NotShown(id) => refused(RestoreRefusal::NotOurs(id.0.clone())),
        RestoreView::Shown(snapshot) => {
            match fits(snapshot, &observed.database, observed.kept.namespace_uid.as_deref()) {
                Err(refusal) => refused(refusal),
                Ok(_) if snapshot.state != SnapshotState::Completed => {
                    soon(RestoreWait::Incomplete(format!("snapshot {}", snapshot.id)))
                }
                Ok(restored) => {
                    let wait = RestoreWait::Recording(snapshot.id.clone());
                    let actions = vec![Action::RecordRestore(Box::new(restored))];
                    Plan::act(actions, DatabaseWait::Restore(wait)).requeue(observed.timing.requeue_interval)
                }
            }
        }
    })
}

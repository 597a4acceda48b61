//! The backup that this Database is to begin or to go on with. Only reads.

use kube::ResourceExt;
use kube::api::{Api, ListParams};

use super::child::Child;
use crate::api::database::Restore;
use crate::api::{Backup, ConditionType, Database, SnapshotId, Volume};
use crate::cloud::Snapshot;
use crate::cloud::identity::Kind;
use crate::cluster::if_served;
use crate::controller::conditions;
use crate::controller::database::in_place::{self, Due};
use crate::controller::pass::context::Context;
use crate::controller::restoring::is_ending;

/// What is known of the backup that the spec names (spec.restore, spec.restoreInPlace).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RestoreView {
    /// None is named, or it is decided already.
    #[default]
    NotRead,
    /// There is no Backup of this name.
    NoBackup(String),
    /// The Backup has failed, or its snapshot is gone.
    Unusable(String),
    /// The Backup is being deleted with its snapshot.
    Ending(String),
    /// The Backup is not complete yet.
    Incomplete(String),
    /// EC2 was not listed yet.
    NotListedYet,
    /// EC2 lists no such snapshot of a Backup, and no such final one.
    NotShown(SnapshotId),
    /// EC2 shows it.
    Shown(Box<Snapshot>),
}

/// The backup of which it is still to be decided, or recorded again, whether it is restored; and whether an
/// upgrade goes back to it.
fn undecided(database: &Database, volume: &Child<Volume>) -> Option<(Restore, bool)> {
    let Some(volume) = volume.ours() else {
        let is_decided = database.status.as_ref().is_some_and(|status| status.restored.is_some());
        let requested = database.spec.restore.clone().filter(|_| *volume == Child::Absent && !is_decided);
        return requested.map(|restore| (restore, false));
    };
    let due = in_place::due(database, volume);
    let is_way_back = due.as_ref().is_some_and(Due::is_of_upgrade);
    let of_volume = in_place::restored_unrecorded(database, volume).cloned();
    let again = |id| Restore { snapshot_id: Some(id), ..Restore::default() };
    Some((of_volume.map(again).or_else(|| due.map(|due| due.backup))?, is_way_back))
}

/// Reads only what is still to be decided. What EC2 has is in the inventory, with the tags of the snapshot.
pub(super) async fn observe(
    database: &Database,
    volume: &Child<Volume>,
    ctx: &Context,
) -> Result<RestoreView, kube::Error> {
    let Some((restore, is_way_back)) = undecided(database, volume) else { return Ok(RestoreView::NotRead) };
    let namespace = database.metadata.namespace.clone().unwrap_or_default();
    let backups = Api::<Backup>::namespaced(ctx.client.clone(), &namespace);
    let id = match (&restore.backup_name, &restore.snapshot_id) {
        (Some(name), _) => match backups.get_opt(name).await?.map(|backup| of_backup(&backup, database)) {
            Some(Ok(id)) => id,
            Some(Err(view)) => return Ok(view),
            None => return Ok(RestoreView::NoBackup(name.clone())),
        },
        (None, Some(id)) => {
            let all = if_served(backups.list(&ListParams::default()).await.map(|list| list.items))?;
            // The Backup of an upgrade that goes back is deleted only after that (`uses`).
            if let Some(ending) = ending(id, &all, database).filter(|_| !is_way_back) {
                return Ok(RestoreView::Ending(ending.name_any()));
            }
            id.clone()
        }
        (None, None) => return Ok(RestoreView::NoBackup(String::new())),
    };
    if ctx.inventory.last_complete(Kind::Backup).is_none() {
        return Ok(RestoreView::NotListedYet);
    }
    let shown = ctx.inventory.restorable(&id);
    Ok(shown.map_or(RestoreView::NotShown(id), |snapshot| RestoreView::Shown(Box::new(snapshot))))
}

/// The snapshot of this Backup, or why there is none to restore.
pub fn of_backup(backup: &Backup, database: &Database) -> Result<SnapshotId, RestoreView> {
    let name = backup.name_any();
    let is_missing = conditions::is_true(backup.conditions(), ConditionType::SnapshotMissing);
    let status = backup.status.clone().unwrap_or_default();
    match status.snapshot_id {
        _ if is_ending(backup, database) => Err(RestoreView::Ending(name)),
        _ if is_missing || status.failure.is_some() => Err(RestoreView::Unusable(name)),
        Some(id) if status.completed_at.is_some() => Ok(id),
        Some(_) | None => Err(RestoreView::Incomplete(name)),
    }
}

/// The Backup of this snapshot, if it is being deleted with it.
pub fn ending<'a>(id: &SnapshotId, all: &'a [Backup], database: &Database) -> Option<&'a Backup> {
    let is_of = |it: &Backup| it.status.as_ref().is_some_and(|it| it.snapshot_id.as_ref() == Some(id));
    all.iter().find(|backup| is_of(backup) && is_ending(backup, database))
}

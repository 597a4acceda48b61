//! The backup that this Database is to begin with. Only reads.

use kube::Api;

use crate::api::{Backup, ConditionType, Database, SnapshotId};
use crate::cloud::Snapshot;
use crate::cloud::identity::Kind;
use crate::controller::conditions;
use crate::controller::pass::context::Context;

/// What is known of the backup that the spec names.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RestoreView {
    /// None is named, or it is decided already.
    #[default]
    NotRead,
    /// There is no Backup of this name.
    NoBackup(String),
    /// The Backup has failed, or its snapshot is gone.
    Unusable(String),
    /// The Backup is not complete yet.
    Incomplete(String),
    /// EC2 was not listed yet.
    NotListedYet,
    /// EC2 lists no such snapshot of a Backup, and no such final one.
    NotShown(SnapshotId),
    /// EC2 shows it.
    Shown(Box<Snapshot>),
}

/// Reads only what is still to be decided. What EC2 has is in the inventory, with the tags of the snapshot.
pub(super) async fn observe(
    database: &Database,
    is_new: bool,
    ctx: &Context,
) -> Result<RestoreView, kube::Error> {
    let is_decided = database.status.as_ref().is_some_and(|status| status.restored.is_some());
    let Some(restore) = database.spec.restore.as_ref().filter(|_| is_new && !is_decided) else {
        return Ok(RestoreView::NotRead);
    };
    let id = match (&restore.backup_name, &restore.snapshot_id) {
        (Some(name), _) => match of_backup(name, database, ctx).await? {
            Ok(id) => id,
            Err(view) => return Ok(view),
        },
        (None, Some(id)) => id.clone(),
        (None, None) => return Ok(RestoreView::NoBackup(String::new())),
    };
    if ctx.inventory.last_complete(Kind::Backup).is_none() {
        return Ok(RestoreView::NotListedYet);
    }
    let shown = ctx.inventory.restorable(&id);
    Ok(shown.map_or(RestoreView::NotShown(id), |snapshot| RestoreView::Shown(Box::new(snapshot))))
}

/// The snapshot of the Backup of this name.
async fn of_backup(
    name: &str,
    database: &Database,
    ctx: &Context,
) -> Result<Result<SnapshotId, RestoreView>, kube::Error> {
    let namespace = database.metadata.namespace.clone().unwrap_or_default();
    let backup = Api::<Backup>::namespaced(ctx.client.clone(), &namespace).get_opt(name).await?;
    let Some(backup) = backup else { return Ok(Err(RestoreView::NoBackup(name.to_owned()))) };
    let is_missing = conditions::is_true(backup.conditions(), ConditionType::SnapshotMissing);
    let status = backup.status.unwrap_or_default();
    Ok(match status.snapshot_id {
        _ if is_missing || status.failure.is_some() => Err(RestoreView::Unusable(name.to_owned())),
        Some(id) if status.completed_at.is_some() => Ok(id),
        Some(_) | None => Err(RestoreView::Incomplete(name.to_owned())),
    })
}

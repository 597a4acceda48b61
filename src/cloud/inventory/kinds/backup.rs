//! Snapshots of Backups: listed by cluster tag, often while a pass awaits one, and else as rarely as volumes,
//! so that one that is deleted outside Freehold is noticed. Final snapshots are kept beside them, for
//! restores.

use super::synced::Synced;

use crate::api::SnapshotId;
use crate::cloud::call::Call;
use crate::cloud::identity::{self, Kind};
use crate::cloud::inventory::known::BackupSnapshot;
use crate::cloud::inventory::{Inventory, SnapshotView};
use crate::cloud::{CloudError, Snapshot};

pub(super) const SYNCED: Synced = Synced {
    idle: |timing| Some(timing.volume_sync_interval),
    sync: |inventory, _| Box::pin(list(inventory)),
};

impl Inventory {
    /// What EC2 shows of the snapshots of this Backup.
    pub fn backups_of(&self, backup_uid: &str) -> SnapshotView {
        let state = self.lock();
        let store = &state.known.backups;
        SnapshotView {
            snapshots: store.of(backup_uid).into_iter().map(|backup| backup.0).collect(),
            swept_at: store.swept_at(),
            empty: store.empty_runs(backup_uid).by_tag,
        }
    }

    /// The snapshot of this id, if the last full sync showed it as that of a Backup, whichever, or as a final
    /// one.
    pub fn restorable(&self, id: &SnapshotId) -> Option<Snapshot> {
        let state = self.lock();
        let backups = state.known.backups.values().map(|backup| &backup.0);
        backups.chain(&state.known.finals).find(|snapshot| snapshot.id == *id).cloned()
    }
}

async fn list(inventory: &Inventory) -> Result<(), CloudError> {
    let started = inventory.begin(Kind::Backup, Call::DescribeSnapshots).await;
    let tags = identity::cluster_tags(&inventory.cluster_id);
    let snapshots = inventory.cloud.describe_snapshots(&tags).await?;
    let is_of = |kind: Kind, snapshot: &Snapshot| identity::owner_uid(kind, &snapshot.tags).is_some();
    let (backups, others): (Vec<_>, Vec<_>) =
        snapshots.into_iter().partition(|snapshot| is_of(Kind::Backup, snapshot));
    let snapshots: Vec<BackupSnapshot> = backups.into_iter().map(BackupSnapshot).collect();
    let (coverage, _) = inventory.lock().known.backups.coverage(&snapshots);
    let is_credible = !coverage.is_suspect();
    if !is_credible {
        inventory.report_suspect(Kind::Backup, coverage);
    }
    let mut state = inventory.lock();
    state.known.finals = others.into_iter().filter(|snapshot| is_of(Kind::Snapshot, snapshot)).collect();
    let woken = state.known.backups.apply_full_sync(started, snapshots, is_credible);
    state.wake(Kind::Backup, woken);
    Ok(())
}

//! Snapshots of Backups: listed by tag, often while a pass awaits one, and else as rarely as volumes, so that
//! one that is deleted outside Freehold is noticed.

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

    /// The snapshot of this id, if the last full sync showed it as that of a Backup, whichever.
    pub fn backup_snapshot(&self, id: &SnapshotId) -> Option<Snapshot> {
        let state = self.lock();
        state.known.backups.values().find(|backup| backup.0.id == *id).map(|backup| backup.0.clone())
    }
}

async fn list(inventory: &Inventory) -> Result<(), CloudError> {
    let started = inventory.begin(Kind::Backup, Call::DescribeSnapshots).await;
    let tags = identity::backup_tags(&inventory.cluster_id);
    let snapshots = inventory.cloud.describe_snapshots(&tags).await?;
    let snapshots: Vec<BackupSnapshot> = snapshots.into_iter().map(BackupSnapshot).collect();
    let mut state = inventory.lock();
    let (coverage, _) = state.known.backups.coverage(&snapshots);
    let woken = state.known.backups.apply_full_sync(started, snapshots, !coverage.is_suspect());
    state.wake(Kind::Backup, woken);
    Ok(())
}

//! Final snapshots: listed by cluster tag, and only while a pass awaits one.

use std::collections::BTreeMap;

use super::synced::Synced;

use crate::cloud::call::Call;
use crate::cloud::identity::{self, Kind};
use crate::cloud::inventory::store::Resource;
use crate::cloud::inventory::{Inventory, SnapshotView};
use crate::cloud::{CloudError, Snapshot};

pub(super) const SYNCED: Synced = Synced { idle: |_| None, sync: |inventory, _| Box::pin(list(inventory)) };

impl Resource for Snapshot {
    const KIND: Kind = Kind::Snapshot;

    fn id(&self) -> &str {
        &self.id.0
    }

    fn tags(&self) -> &BTreeMap<String, String> {
        &self.tags
    }
}

impl Inventory {
    /// What EC2 shows of the final snapshots of this `Volume`. Snapshots are listed only while a pass awaits
    /// one.
    pub fn snapshots_of(&self, volume_uid: &str) -> SnapshotView {
        let state = self.lock();
        let store = &state.known.snapshots;
        SnapshotView {
            snapshots: store.of(volume_uid),
            swept_at: store.swept_at(),
            empty: store.empty_runs(volume_uid).by_tag,
        }
    }
}

async fn list(inventory: &Inventory) -> Result<(), CloudError> {
    let started = inventory.begin(Kind::Snapshot, Call::DescribeSnapshots).await;
    let snapshots =
        inventory.cloud.describe_snapshots(&identity::cluster_tags(&inventory.cluster_id)).await?;
    let mut state = inventory.lock();
    let woken = state.known.snapshots.apply_full_sync(started, snapshots, true);
    state.wake(Kind::Snapshot, woken);
    Ok(())
}

//! EBS volumes: listed by cluster tag; and the modifications that passes await, looked up by volume.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

use super::synced::Synced;

use crate::api::VolumeId;
use crate::cloud::call::Call;
use crate::cloud::identity::{self, Kind};
use crate::cloud::inventory::known::Volumes;
use crate::cloud::inventory::store::Resource;
use crate::cloud::inventory::{InitializationView, Inventory, TaggedVolume, VolumeView};
use crate::cloud::{CloudError, EbsVolume, Initialization, VALUES_PER_FILTER, VolumeQuery, VolumeState};
use crate::time::later;

pub(super) const SYNCED: Synced = Synced {
    idle: |timing| Some(timing.volume_sync_interval),
    sync: |inventory, began| Box::pin(sync(inventory, began)),
};

impl Resource for EbsVolume {
    const KIND: Kind = Kind::Volume;

    fn id(&self) -> &str {
        &self.id.0
    }

    fn tags(&self) -> &BTreeMap<String, String> {
        &self.tags
    }
}

impl Inventory {
    /// What EC2 shows of the EBS volumes of this `Volume`.
    pub fn volumes_of(&self, volume_uid: &str) -> VolumeView {
        let state = self.lock();
        let Volumes { store, modifications, initializing } = &state.known.volumes;
        let volumes = store.of(volume_uid);
        let answer = volumes.iter().find_map(|volume| modifications.get(&volume.id));
        VolumeView {
            modification: answer.cloned().flatten(),
            modification_is_known: answer.is_some(),
            initialization: initializing.of(volume_uid),
            volumes,
            swept_at: store.swept_at(),
            empty: store.empty_runs(volume_uid).by_tag,
        }
    }

    /// Sets the EBS volume of this `Volume` whose initialization is awaited: EC2 is asked for it at the idle
    /// interval of volumes, for all that are awaited in one call. None if nothing is awaited.
    pub fn set_initializing(&self, volume_uid: &str, id: Option<&VolumeId>) {
        self.lock().known.volumes.initializing.set(volume_uid, id);
    }

    /// Every EBS volume that is or was that of a `Volume` and is not being deleted, of this namespace or of
    /// all; `None` before the first full sync.
    pub fn tagged_volumes(&self, namespace: Option<&str>) -> Option<Vec<TaggedVolume>> {
        let state = self.lock();
        let store = &state.known.volumes.store;
        store.swept_at()?;
        let tagged = store.values().filter_map(tagged);
        Some(tagged.filter(|volume| namespace.is_none_or(|it| volume.namespace == it)).collect())
    }

    /// The EBS volumes with the tags of a `Volume` that has not existed for a whole absence window: retained
    /// ones, and others.
    pub fn unclaimed_volumes(&self) -> Vec<EbsVolume> {
        let state = self.lock();
        state.known.volumes.store.unclaimed(self.timing.absence_window).cloned().collect()
    }

    /// Whether the last full sync showed this EBS volume as that of a `Volume`, whichever.
    pub fn is_of_a_volume(&self, id: &VolumeId) -> bool {
        self.lock().known.volumes.store.values().any(|volume| volume.id == *id)
    }
}

fn tagged(volume: &EbsVolume) -> Option<TaggedVolume> {
    if matches!(volume.state, VolumeState::Deleting | VolumeState::Deleted) {
        return None;
    }
    Some(TaggedVolume {
        volume_uid: identity::owner_uid(Kind::Volume, &volume.tags)?.to_owned(),
        namespace: identity::namespace(&volume.tags)?.to_owned(),
        size: volume.size,
    })
}

async fn sync(inventory: &Inventory, began: Instant) -> Result<(), CloudError> {
    list(inventory).await?;
    look_up_modifications(inventory).await?;
    // EC2's figures are up to five minutes old: no more often than the idle interval, however often the syncs
    // come.
    let pause = inventory.timing.volume_sync_interval;
    let is_due = inventory.lock().known.volumes.initializing.is_due(pause, began);
    // The lists have succeeded, and what is shown decides nothing: a role without this right changes nothing
    // else.
    if is_due && let Err(error) = inventory.slowed(look_up_initializations(inventory, began).await) {
        tracing::warn!(%error,
            "EC2 did not report how far volumes are read from snapshots; keeping the last report");
    }
    Ok(())
}

/// Those that the last full sync showed: an id that EC2 does not know fails the call for all.
async fn look_up_initializations(inventory: &Inventory, began: Instant) -> Result<(), CloudError> {
    let ids: Vec<VolumeId> = {
        let mut state = inventory.lock();
        let Volumes { store, initializing, .. } = &mut state.known.volumes;
        initializing.requested_at = Some(began);
        let is_shown = |id: &&VolumeId| store.values().any(|volume| volume.id == **id);
        initializing.awaited.values().filter(is_shown).cloned().collect()
    };
    for ids in ids.chunks(VALUES_PER_FILTER) {
        inventory.acquire(Call::DescribeVolumeStatus, 1).await;
        let asked_at = inventory.clock.now();
        let found = inventory.cloud.describe_initializations(ids).await?;
        let mut state = inventory.lock();
        let initializing = &mut state.known.volumes.initializing;
        let mut woken = BTreeSet::new();
        for Initialization { volume, progress, left } in found {
            let view = InitializationView { progress, expected_end: left.map(|left| later(asked_at, left)) };
            let owners = initializing.awaited.iter().filter(|(_, id)| **id == volume);
            let owners: Vec<String> = owners.map(|(uid, _)| uid.clone()).collect();
            if !owners.is_empty() && initializing.answers.insert(volume, view) != Some(view) {
                woken.extend(owners);
            }
        }
        state.wake(Kind::Volume, woken);
    }
    Ok(())
}

async fn list(inventory: &Inventory) -> Result<(), CloudError> {
    let started = inventory.begin(Kind::Volume, Call::DescribeVolumes).await;
    let query = VolumeQuery::Tags(identity::cluster_tags(&inventory.cluster_id));
    let volumes = inventory.cloud.describe_volumes(&query).await?;
    let (coverage, _) = inventory.lock().known.volumes.store.coverage(&volumes);
    // Before a pass acts on the absence of one that its status names, it reads that by its id.
    let is_credible = !coverage.is_suspect() || coverage.shown > 0;
    if !is_credible {
        inventory.report_suspect(Kind::Volume, coverage);
    }
    let mut state = inventory.lock();
    let woken = state.known.volumes.store.apply_full_sync(started, volumes, is_credible);
    state.known.volumes.store.note_unclaimed(|volume| {
        let is_there = !matches!(volume.state, VolumeState::Deleting | VolumeState::Deleted);
        is_there && inventory.expects(&volume.tags)
    });
    state.wake(Kind::Volume, woken);
    Ok(())
}

async fn look_up_modifications(inventory: &Inventory) -> Result<(), CloudError> {
    let modifying: Vec<VolumeId> = inventory.lock().known.volumes.store.modifying().into_iter().collect();
    for ids in modifying.chunks(VALUES_PER_FILTER) {
        inventory.acquire(Call::DescribeVolumesModifications, 1).await;
        let found = inventory.cloud.describe_modifications(ids).await?;
        let mut state = inventory.lock();
        let Volumes { store, modifications, .. } = &mut state.known.volumes;
        let mut changed = BTreeSet::new();
        for id in ids {
            let answer = found.iter().find(|modification| modification.volume == *id).cloned();
            if modifications.get(id) != Some(&answer) {
                modifications.insert(id.clone(), answer);
                changed.insert(id.clone());
            }
        }
        let woken = store.owners_modifying(&changed);
        state.wake(Kind::Volume, woken);
    }
    Ok(())
}

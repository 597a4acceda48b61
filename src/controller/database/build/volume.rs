//! Builds the Volume: what the Database asks of its disk.

use kube::Resource;

use super::owned;
use crate::api::database::{RestoredInPlace, Storage};
use crate::api::names::Names;
use crate::api::{Database, DeletionPolicy, Size, Volume, VolumeSpec};

/// What the spec asks of the disk.
pub fn volume_spec(database: &Database, zone: &str, deletion_policy: DeletionPolicy) -> VolumeSpec {
    let Storage {
        size,
        volume_type,
        iops,
        throughput,
        file_system,
        // Its size is that of the Volume, once it has grown (plan/auto_grow.rs).
        auto_grow: _,
        adopt_retained,
        start_empty: _,
        new_credentials: _,
    } = &database.spec.storage;
    let rate = database.spec.restore.as_ref().and_then(|restore| restore.initialization_rate);
    let restored = database.status.as_ref().and_then(|status| status.restored.as_ref());
    VolumeSpec {
        node_class_name: database.spec.node_class_name.clone(),
        size: size.clone(),
        volume_type: volume_type.clone(),
        iops: *iops,
        throughput: *throughput,
        file_system: *file_system,
        zone: zone.to_owned(),
        snapshot_id: restored.map(|restored| restored.snapshot_id.clone()),
        initialization_rate: restored.and(rate),
        adopt: None,
        release: false,
        deletion_decided: false,
        replaced: false,
        // A manifest that is applied anew, or whose status is lost, replaces nothing again.
        restore_generation: database.spec.restore_in_place.as_ref().map(|it| it.generation),
        adopt_retained: adopt_retained.clone(),
        deletion_policy,
    }
}

/// What becomes of the disk of a Database that is not on its way out: that of one that is protected, or is to
/// be released, is retained, whatever deletes its Volume.
pub fn deletion_policy(database: &Database) -> DeletionPolicy {
    let stays = database.spec.deletion_protection || database.spec.release;
    if stays { DeletionPolicy::Retain } else { database.spec.deletion_policy }
}

/// The Volume.
pub fn volume(database: &Database, names: &Names, zone: &str) -> Volume {
    let mut volume = Volume::new(&names.volume, volume_spec(database, zone, deletion_policy(database)));
    *volume.meta_mut() = owned(names, &names.volume);
    volume
}

/// The Volume of a restore in place: with the data of the backup, or with the data that the database had.
pub fn volume_in_place(database: &Database, names: &Names, record: &RestoredInPlace) -> Volume {
    let RestoredInPlace { backup, former, .. } = record;
    let mut volume = volume(database, names, &former.zone);
    let spec = &mut volume.spec;
    // An upgrade may go back where no restore was ever requested.
    spec.restore_generation = Some(record.generation).filter(|generation| *generation > 0);
    let has = if record.went_back.is_none() {
        spec.snapshot_id = Some(backup.snapshot_id.clone());
        spec.initialization_rate = record.initialization_rate;
        spec.adopt_retained = None;
        backup.size.as_ref()
    } else {
        (spec.snapshot_id, spec.initialization_rate) = (None, None);
        spec.adopt_retained = Some(former.persistent_volume_name.clone());
        Some(&former.size)
    };
    // An EBS volume never becomes smaller than its snapshot or itself.
    if let Some(has) = has.and_then(Size::gib).filter(|has| Some(*has) > spec.size.gib()) {
        spec.size = Size::from_gib(has);
    }
    volume
}

//! What the status and the Volume of a Database say of a restore in place. Pure.

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;

pub use super::in_place_record::{recorded, underway};
use super::upgrade::{self, Phase};
use crate::api::database::{FormerData, Restore, RestoreInPlace, RestoredInPlace};
use crate::api::{ConditionType, Database, DatabaseStatus, SnapshotId, Volume};
use crate::controller::conditions;
use crate::time::later;

/// A restore in place that is to begin.
#[derive(Clone, Debug, PartialEq)]
pub struct Due {
    /// The generation that it has.
    pub generation: i64,
    /// What is restored.
    pub backup: Restore,
    /// How long the engine may take, in minutes; `None` where the database goes back from an upgrade.
    pub timeout_minutes: Option<u32>,
}

impl Due {
    fn of(request: &RestoreInPlace) -> Self {
        Self {
            generation: request.generation,
            backup: request.backup(),
            timeout_minutes: Some(request.timeout_minutes),
        }
    }

    /// Whether the database goes back from an upgrade: no user has requested it.
    pub fn is_of_upgrade(&self) -> bool {
        self.timeout_minutes.is_none()
    }
}

/// The restore in place that is requested, and was not begun: of a generation that neither the status nor the
/// Volume knows. The Volume's says it where the status was lost: nothing is replaced twice. Else that of an
/// upgrade which goes back, as long as the Volume has the data that is left.
pub fn due(database: &Database, volume: &Volume) -> Option<Due> {
    if database.spec.adopt.is_some() || underway(database).is_some() {
        return None;
    }
    let known = recorded(database).map(|record| record.generation).max(volume.spec.restore_generation);
    let requested = database.spec.restore_in_place.as_ref().filter(|it| Some(it.generation) > known);
    requested.map(Due::of).or_else(|| {
        let upgrade = upgrade::in_phase(database, Phase::GoingBack)
            .filter(|upgrade| !has_begun(database) && upgrade::is_of_volume(upgrade, volume))?;
        let snapshot_id = upgrade.snapshot_id.clone();
        Some(Due {
            generation: known.unwrap_or_default(),
            backup: Restore { snapshot_id, ..Restore::default() },
            timeout_minutes: None,
        })
    })
}

/// Whether the restore in place has begun by which an upgrade goes back.
pub fn has_begun(database: &Database) -> bool {
    let snapshot =
        upgrade::in_phase(database, Phase::GoingBack).and_then(|upgrade| upgrade.snapshot_id.as_ref());
    let record = recorded(database).filter(|record| record.no_way_back);
    snapshot.zip(record).is_some_and(|(snapshot, record)| record.backup.snapshot_id == *snapshot)
}

/// The snapshot that the Volume was created from, where the status, which was lost, does not say it.
pub fn restored_unrecorded<'a>(database: &Database, volume: &'a Volume) -> Option<&'a SnapshotId> {
    let is_known = database.status.as_ref().is_some_and(|status| status.restored.is_some());
    volume.spec.snapshot_id.as_ref().filter(|_| !is_known && database.metadata.deletion_timestamp.is_none())
}

/// The retention record of the data that the database had, as long as it may go back to that.
pub fn record_read(database: &Database) -> Option<&str> {
    underway(database).map(|record| record.former.persistent_volume_name.as_str())
}

/// Whether this Volume has the data that the database is to have: that of the backup, or again its own. A
/// Volume that is on its way out for another one has not.
pub fn is_wanted(record: &RestoredInPlace, volume: &Volume) -> bool {
    let FormerData { volume_uid, persistent_volume_name, .. } = &record.former;
    let is_going = volume.metadata.deletion_timestamp.is_some() && volume.spec.replaced;
    let is_former = volume.metadata.uid.as_ref() == Some(volume_uid)
        || volume.spec.adopt_retained.as_ref() == Some(persistent_volume_name);
    let is_of_backup = !is_former && volume.spec.snapshot_id.as_ref() == Some(&record.backup.snapshot_id);
    !is_going && if record.went_back.is_some() { is_former } else { is_of_backup }
}

/// Whether the data of this Volume is that of the backup, and no engine has served it.
pub fn is_unserved(database: &Database, volume: &Volume) -> bool {
    let record = underway(database).filter(|record| record.went_back.is_none());
    record.is_some_and(|record| is_wanted(record, volume))
}

/// Writes down what the data is of that the database is to have: what it was restored from, and the newest
/// version of the engine that was started on it, if that matters. No engine has served it.
pub fn goes_on_with(status: &mut DatabaseStatus, record: &RestoredInPlace) {
    let former = &record.former;
    let (restored, version) = if record.went_back.is_some() {
        (former.restored.clone(), former.engine_version.clone())
    } else {
        // Of other engines than QuestDB it does not matter.
        let version = record.backup.engine_version.clone().filter(|_| former.engine_version.is_some());
        (Some(record.backup.clone()), version)
    };
    status.restored = restored;
    status.engine_version = version.or_else(|| status.engine_version.take());
    status.served = former.served.clone().filter(|_| record.went_back.is_some());
    status.initialization = None;
}

/// By when the engine must accept connections with the data of the backup, counted from when it could be
/// started, or the volume be there, counted from when its Volume was created. A machine that is awaited in
/// between says nothing of the data. `None` where there is no way back.
pub fn deadline(record: &RestoredInPlace, volume: &Volume) -> Option<Timestamp> {
    let is_bound = conditions::is_true(volume.conditions(), ConditionType::Bound);
    let created = volume.metadata.creation_timestamp.as_ref().filter(|_| !is_bound);
    let since = record.startable_at.as_ref().or(created)?;
    Some(later(since.0, Duration::from_mins(u64::from(record.timeout_minutes?))))
}

/// Whether the engine is to start on the data of a backup. After a way back it is that of the moment before.
pub fn is_of_backup(database: &Database) -> bool {
    let is_forward = |record: &RestoredInPlace| !record.no_way_back && record.went_back.is_none();
    recorded(database).map_or_else(|| database.spec.restore.is_some(), is_forward)
}

/// What PostgreSQL is to know its password's origin by: a text that the data does not know has it take the
/// one of the Secret. The data of a backup, and after a way back the data that the database had, may have
/// another one.
pub fn credentials_mark(database: &Database) -> Option<String> {
    let record = recorded(database)?;
    let (uid, generation) = (database.uid().unwrap_or_default(), record.generation);
    if record.no_way_back {
        // Several may have the same generation.
        return Some(format!("{uid}-{generation}-{}", record.started_at.0.as_second()));
    }
    let back = if record.went_back.is_some() { "-back" } else { "" };
    Some(format!("{uid}-{generation}{back}"))
}

//! What the status of a Database says of a change of its engine behind a snapshot. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::in_place_record;
use super::inputs::{inputs_hash, short_hash};
use crate::api::database::{ConfigValue, Engine, Served, Upgrade};
use crate::api::{Database, SnapshotId, Volume};

/// How far an upgrade is that is underway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The engine before it is stopped, and a Backup of the stopped database is taken.
    BackingUp,
    /// The changed engine is to be started, or was.
    Trying,
    /// The database goes back to the engine and the data of before.
    GoingBack,
}

/// The last upgrade.
pub fn recorded(database: &Database) -> Option<&Upgrade> {
    database.status.as_ref()?.upgrade.as_deref()
}

/// The upgrade that has not come to rest, and how far it is.
pub fn underway(database: &Database) -> Option<(Phase, &Upgrade)> {
    let upgrade = recorded(database).filter(|upgrade| upgrade.is_underway())?;
    let phase = match (&upgrade.went_back, &upgrade.snapshot_id) {
        (Some(_), _) => Phase::GoingBack,
        (None, None) => Phase::BackingUp,
        (None, Some(_)) => Phase::Trying,
    };
    Some((phase, upgrade))
}

/// The upgrade that is in this phase.
pub fn in_phase(database: &Database, phase: Phase) -> Option<&Upgrade> {
    underway(database).filter(|(it, _)| *it == phase).map(|(_, upgrade)| upgrade)
}

/// The upgrade that the database went back from, as long as the spec requests it still.
fn left(database: &Database) -> Option<&Upgrade> {
    recorded(database).filter(|it| !it.is_underway() && it.went_back.is_some() && is_of(database, it))
}

/// Whether the upgrade that the database went back from is tried once more by itself.
pub fn is_tried_again(database: &Database) -> bool {
    left(database).and_then(|it| it.went_back.as_ref()).is_some_and(|back| back.in_doubt)
}

/// The upgrade that the database went back from, and that is not tried again by itself.
pub fn held(database: &Database) -> Option<&Upgrade> {
    left(database).filter(|_| !is_tried_again(database))
}

/// Whether this upgrade is to what the spec requests.
pub fn is_of(database: &Database, upgrade: &Upgrade) -> bool {
    upgrade.inputs_hash == inputs_hash(&database.spec)
}

/// Whether this upgrade is of the EBS volume that the Volume has. What is not known is no other one.
pub fn is_of_volume(upgrade: &Upgrade, volume: &Volume) -> bool {
    let has = volume.status.as_ref().and_then(|status| status.volume_id.as_ref());
    upgrade.volume_id.as_ref().zip(has).is_none_or(|(tried, has)| tried == has)
}

/// Whether another pod may have started a changed engine before this one: what this one lacks says nothing of
/// that.
pub fn has_predecessor(database: &Database, pod: &Pod) -> bool {
    let tried = in_phase(database, Phase::Trying).and_then(|upgrade| upgrade.tried.as_ref());
    tried.is_some_and(|tried| tried.later || pod.metadata.uid.as_ref() != Some(&tried.pod_uid))
}

/// The hash of what a pod was made from before this upgrade, with the resources of the spec.
pub fn inputs_of_former(database: &Database, upgrade: &Upgrade) -> String {
    let mut spec = database.spec.clone();
    spec.engine.clone_from(&upgrade.from.engine);
    spec.config.clone_from(&upgrade.from.config);
    inputs_hash(&spec)
}

/// The engine and the settings that are carried out in place of those of the spec, because of an upgrade that
/// is recorded.
pub fn carried_out(database: &Database) -> Option<(&Engine, &BTreeMap<String, ConfigValue>)> {
    let upgrade = match underway(database) {
        Some((Phase::Trying, _)) => None,
        Some((Phase::BackingUp | Phase::GoingBack, upgrade)) => Some(upgrade),
        None => held(database),
    }?;
    Some((&upgrade.from.engine, &upgrade.from.config))
}

/// What the database served as, where the spec requests another engine that is to be started only behind a
/// backup, and nothing has begun for it.
pub fn due(database: &Database) -> Option<&Served> {
    let served = database.status.as_ref()?.served.as_deref()?;
    let is_held = held(database).is_some()
        || served.went_back.as_ref().is_some_and(|back| back.engine == database.spec.engine);
    let is_free = database.spec.upgrade.is_some()
        && database.spec.running
        && database.spec.adopt.is_none()
        && database.metadata.deletion_timestamp.is_none()
        && underway(database).is_none()
        && in_place_record::underway(database).is_none();
    (is_free && !is_held && served.engine != database.spec.engine).then_some(served)
}

/// Whether the Backups of the Database are of interest.
pub fn needs_backups(database: &Database) -> bool {
    due(database).is_some() || underway(database).is_some()
}

/// Whether an upgrade may have to go back to this snapshot.
pub fn goes_back_to(database: &Database, snapshot: Option<&SnapshotId>) -> bool {
    let needed = underway(database).and_then(|(_, upgrade)| upgrade.snapshot_id.as_ref());
    needed.is_some() && needed == snapshot
}

/// Whether this Backup is the one that the engine is stopped for: it is taken once the volume is attached to
/// nothing.
pub fn is_stopped_for(database: &Database, backup: &str) -> bool {
    in_phase(database, Phase::BackingUp).is_some_and(|upgrade| upgrade.backup_name == backup)
}

/// Whether the database may go back to the data that it had: no client is let in until it does not any more.
pub fn is_closed(database: &Database) -> bool {
    underway(database).is_some() || in_place_record::underway(database).is_some()
}

/// The name of the Backup of the running database: the same one however often it is computed for one change.
pub fn name_of_running(database: &Database, served: &Served) -> String {
    let identity = [&database.uid().unwrap_or_default(), &served.pod_uid].map(String::as_str).join("/");
    let of_spec = inputs_hash(&database.spec);
    let hash = short_hash(&format!("{identity}/{of_spec}"));
    format!("{}-upgrade-{hash}-running", database.name_any())
}

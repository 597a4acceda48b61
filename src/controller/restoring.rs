//! Whether the snapshot of a Backup can be restored in a Database: by its tags alone, unless the Backup is
//! being deleted with it. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use kube::ResourceExt;

use super::layout;
use crate::api::backup::{Consistency, SnapshotPolicy};
use crate::api::database::{EngineType, PointInTime, Recovery, Restored, Storage};
use crate::api::keys::{
    CONSISTENCY_TAG, DATA_DIRECTORY_TAG, DATABASE_TAG, ENGINE_TAG, ENGINE_VERSION_TAG, FILE_SYSTEM_TAG,
    NAMESPACE_UID_TAG, WAL_ARCHIVE_TAG,
};
use crate::api::{Backup, Database, Size};
use crate::cloud::{Snapshot, SnapshotState};
use crate::engine::release;
use crate::time::whole_second;

/// Why a snapshot cannot be restored. The text says what a person can do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum RestoreRefusal {
    /// No Backup of this name is in the namespace.
    NoBackup(String),
    /// The Backup has failed, or its snapshot is gone.
    Unusable(String),
    /// The Backup is being deleted, and its snapshot with it.
    Ending(String),
    /// EC2 lists no such snapshot of a Backup of this namespace.
    NotOurs(String),
    /// It was taken in an earlier namespace of this name.
    EarlierNamespace(String),
    /// EC2 could not complete it.
    Failed(String),
    /// It is not certain that it is consistent.
    Unverified(String),
    /// Another engine wrote the data.
    Engine(String),
    /// A newer version wrote the data, or one of another major version.
    Version {
        /// What wrote the data.
        wrote: String,
        /// Only the same major version reads it.
        same_major: bool,
    },
    /// The volume was formatted with another file system.
    FileSystem(String),
    /// The volume was larger, in GiB.
    Larger(i32),
    /// The write-ahead log of the data was not archived.
    NotArchived(String),
    /// The archive is not read without spec.walArchive.
    NoArchive,
    /// The moment is not later than that of the snapshot.
    TooEarly {
        /// The moment.
        wanted: Timestamp,
        /// The snapshot's.
        taken_at: Timestamp,
    },
    /// The moment has not come.
    TooLate(Timestamp),
    /// The data is in another directory of the volume.
    Layout {
        /// The snapshot.
        snapshot: String,
        /// Where the data is, relative to the root of the volume.
        has: String,
        /// Where this Database would look for it.
        wants: String,
    },
}

/// What a Database would be restored from, if this snapshot fits it, recovered up to `until`. `namespace_uid`
/// is that of its namespace.
pub fn fits(
    snapshot: &Snapshot,
    database: &Database,
    until: Option<&PointInTime>,
    namespace_uid: Option<&str>,
) -> Result<Restored, RestoreRefusal> {
    let tag = |key: &str| snapshot.tags.get(key).map(String::as_str);
    let id = || snapshot.id.0.clone();
    let namespace = database.namespace().unwrap_or_default();
    // One answer for what does not exist and for what is another namespace's: a tenant learns nothing of
    // others.
    let of = tag(DATABASE_TAG).and_then(|of| of.split_once('/')).map(|(namespace, _)| namespace);
    if of != Some(namespace.as_str()) {
        return Err(RestoreRefusal::NotOurs(id()));
    }
    if tag(NAMESPACE_UID_TAG).is_some_and(|uid| Some(uid) != namespace_uid) {
        return Err(RestoreRefusal::EarlierNamespace(id()));
    }
    if snapshot.state == SnapshotState::Error {
        return Err(RestoreRefusal::Failed(id()));
    }
    let Some(consistency) = tag(CONSISTENCY_TAG).and_then(|tag| tag.parse::<Consistency>().ok()) else {
        return Err(RestoreRefusal::Unverified(id()));
    };
    let engine = &database.spec.engine;
    let wrote = tag(ENGINE_TAG).unwrap_or("an unknown engine");
    if wrote != engine.kind.as_str() {
        return Err(RestoreRefusal::Engine(wrote.to_owned()));
    }
    let version = tag(ENGINE_VERSION_TAG);
    version_fits(engine.kind, engine.version.as_deref().unwrap_or_default(), version, consistency)?;
    let Storage { size, file_system, auto_grow, .. } = &database.spec.storage;
    if let Some(made) = tag(FILE_SYSTEM_TAG).filter(|made| *made != file_system.as_str()) {
        return Err(RestoreRefusal::FileSystem(made.to_owned()));
    }
    // The volume may have grown by itself since this manifest was written.
    let most = auto_grow.as_ref().and_then(|policy| policy.max_size.gib()).max(size.gib());
    if let Some(had) = snapshot.size.filter(|had| most.is_some_and(|most| most < *had)) {
        return Err(RestoreRefusal::Larger(had));
    }
    // An engine that finds nothing where it looks begins with an empty database.
    let wants = layout::wanted(engine);
    if let Some(has) = tag(DATA_DIRECTORY_TAG).filter(|has| wants.as_deref() != Some(*has)) {
        let wants = wants.unwrap_or_else(|| layout::UNKNOWN.to_owned());
        return Err(RestoreRefusal::Layout { snapshot: id(), has: has.to_owned(), wants });
    }
    Ok(Restored {
        recovery: recovery(snapshot, database, until)?,
        snapshot_id: snapshot.id.clone(),
        size: snapshot.size.map(Size::from_gib),
        taken_at: snapshot.started_at.map(|at: Timestamp| Time(whole_second(at))),
        consistency,
        engine_version: version.map(str::to_owned),
    })
}

/// How the data of the snapshot is recovered to a later moment, if it is to be. PostgreSQL recovers no data
/// to a moment before it was consistent, which that of a snapshot is from its own moment on.
fn recovery(
    snapshot: &Snapshot,
    database: &Database,
    until: Option<&PointInTime>,
) -> Result<Option<Recovery>, RestoreRefusal> {
    let Some(until) = until else { return Ok(None) };
    let Some(destination) = snapshot.tags.get(WAL_ARCHIVE_TAG) else {
        return Err(RestoreRefusal::NotArchived(snapshot.id.0.clone()));
    };
    if database.spec.wal_archive.is_none() {
        return Err(RestoreRefusal::NoArchive);
    }
    if let (Some(MicroTime(wanted)), Some(taken_at)) = (&until.time, snapshot.started_at)
        && *wanted <= taken_at
    {
        return Err(RestoreRefusal::TooEarly { wanted: *wanted, taken_at });
    }
    let (destination, volume_id) = (destination.clone(), snapshot.volume.clone());
    Ok(Some(Recovery { destination, volume_id, until: until.clone() }))
}

/// Whether this Backup is being deleted with its snapshot, and does not wait for this Database, of which it
/// is not decided yet what it begins with. Both controllers judge by this alone: what one of them waits for,
/// the other one begins. The deletion waits for Databases that were there before it; a backup that is not
/// complete will never be.
pub fn is_ending(backup: &Backup, database: &Database) -> bool {
    let Some(deleted) = &backup.metadata.deletion_timestamp else { return false };
    let status = backup.status.as_ref();
    let is_whole = status.is_some_and(|it| it.completed_at.is_some() && it.deleted_at.is_none());
    let created = database.metadata.creation_timestamp.as_ref();
    let was_before = created.is_some_and(|created| created.0 < deleted.0);
    backup.spec.deletion_policy == SnapshotPolicy::Delete && !(is_whole && was_before)
}

/// Whether this version reads the data: never an older one. PostgreSQL reads the data of its own major
/// version only, and QuestDB recovers from a checkpoint of its own only (QuestDB documentation, "Backup and
/// restore").
pub fn version_fits(
    engine: EngineType,
    wanted: &str,
    wrote: Option<&str>,
    consistency: Consistency,
) -> Result<(), RestoreRefusal> {
    let same_major = match engine {
        EngineType::Postgresql => true,
        EngineType::Questdb => consistency == Consistency::EngineCheckpoint,
        EngineType::Custom => return Ok(()),
    };
    let refused = |wrote: &str| Err(RestoreRefusal::Version { wrote: wrote.to_owned(), same_major });
    let Some(wrote) = wrote else { return refused("an unknown version") };
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    if release::is_older(wanted, wrote) || (same_major && major(wanted) != major(wrote)) {
        return refused(wrote);
    }
    Ok(())
}

/// What a person does about a spec that does not fit.
const ANEW: &str = "delete this Database and create it with";

/// What a person does about data that only the template of before finds.
const AS_BEFORE: &str = "create an EBS volume from the snapshot, run it with the StatefulSet of before, and adopt \
    that (docs/adopt.md)";

/// A directory of a volume, for people.
fn shown(directory: &str) -> String {
    match directory {
        layout::WHOLE => "the root".to_owned(),
        layout::UNKNOWN => "another directory".to_owned(),
        directory => format!("the directory {directory}"),
    }
}

impl RestoreRefusal {
    /// Why, and the way out.
    pub fn message(&self) -> String {
        format!("{}: {}", self.why(), self.way_out())
    }

    /// Why the snapshot cannot be restored.
    pub fn why(&self) -> String {
        match self {
            Self::NoBackup(name) => format!("Backup {name} is not in this namespace"),
            Self::Unusable(name) => format!("Backup {name} has failed, or its snapshot is gone"),
            Self::Ending(name) => format!("Backup {name} is being deleted with its snapshot"),
            Self::NotOurs(id) => format!("EC2 lists no snapshot {id} of a Backup of this namespace"),
            Self::EarlierNamespace(id) => {
                format!("snapshot {id} was taken in an earlier namespace of this name, which was deleted")
            }
            Self::Failed(id) => format!("EC2 shows snapshot {id} in the state error"),
            Self::Unverified(id) => {
                format!("snapshot {id} may have begun without its engine's checkpoint, so it is not restored")
            }
            Self::Engine(wrote) => format!("the data was written by {wrote}"),
            Self::Version { wrote, same_major: false } => {
                format!("the data was written by version {wrote}, which an older one does not read")
            }
            Self::Version { wrote, same_major: true } => format!(
                "the data was written by version {wrote}, which needs that version or a later one of the same \
                major version"
            ),
            Self::FileSystem(made) => format!("the volume was formatted with {made}"),
            Self::Layout { snapshot, has, .. } if has == layout::UNKNOWN => format!(
                "snapshot {snapshot} is one of an adopted database, and where on the volume its data is, is not \
                known"
            ),
            Self::Layout { snapshot, has, wants } => format!(
                "snapshot {snapshot} is one of an adopted database, which has its data in {} of the volume, and \
                this Database would look for it in {}",
                shown(has),
                shown(wants)
            ),
            Self::Larger(had) => format!("the volume had {had} GiB"),
            Self::TooLate(wanted) => format!("the moment {wanted} has not come"),
            Self::NotArchived(id) => format!(
                "the database was not known to archive its write-ahead log when snapshot {id} was taken, so its \
                 data cannot be recovered to a later moment"
            ),
            Self::NoArchive => {
                "the archive of the backup is read with the credentials of spec.walArchive, which \
                the spec does not have"
                    .to_owned()
            }
            Self::TooEarly { wanted, taken_at } => format!(
                "the snapshot was taken at {taken_at}, and its data is not recovered to {wanted}, which is earlier"
            ),
        }
    }

    /// What a person does about it.
    fn way_out(&self) -> String {
        match self {
            Self::NoBackup(_) => format!("create it, or {ANEW} another spec.restore"),
            Self::Unusable(_) | Self::Ending(_) => format!("{ANEW} another spec.restore"),
            Self::NotOurs(_) => {
                format!("`freehold backups --from-ec2` lists those; {ANEW} one of them")
            }
            Self::EarlierNamespace(_) => format!(
                "to allow the restore, the platform team removes the tag {NAMESPACE_UID_TAG} from the snapshot"
            ),
            Self::Failed(_) | Self::Unverified(_) => format!("{ANEW} another"),
            Self::Engine(wrote) => format!("{ANEW} spec.engine.type: {wrote}"),
            Self::Version { wrote, same_major: false } => format!("{ANEW} {wrote} or a later version"),
            Self::Version { same_major: true, .. } => format!("{ANEW} one, and upgrade it afterwards"),
            Self::FileSystem(made) => format!("{ANEW} spec.storage.fileSystem: {made}"),
            Self::Layout { .. } => AS_BEFORE.to_owned(),
            Self::NotArchived(_) => format!("{ANEW} a later backup, or without pointInTime"),
            Self::NoArchive => format!("{ANEW} spec.walArchive"),
            Self::TooEarly { .. } => format!("{ANEW} an earlier backup, or a later moment"),
            Self::TooLate(_) => "name a moment that has passed".to_owned(),
            Self::Larger(had) => format!("set spec.storage.size to {had}Gi or more"),
        }
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "a json! reads best where it is used")]
mod tests;

//! What was kept of a deleted database: the record on its PersistentVolume, written and read, and who may
//! take it. Pure.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolume;
use kube::ResourceExt;
use serde::Serialize;

use crate::api::database::{Engine, EngineType, Storage};
use crate::api::keys::{
    self, ADOPTED_BY_ANNOTATION, CREDENTIALS_ANNOTATION, DATA_PATH_ANNOTATION, DATABASE_ANNOTATION,
    ENGINE_ANNOTATION, ENGINE_LABEL, ENGINE_VERSION_ANNOTATION, NAMESPACE_UID_ANNOTATION,
    RETAINED_AT_ANNOTATION, RETAINED_BECAUSE_ANNOTATION, SIZE_ANNOTATION, USER_ID_ANNOTATION,
    VOLUME_TYPE_ANNOTATION,
};
use crate::api::{Database, Size, Volume, VolumeId, names};
use crate::cloud::inventory::TaggedVolume;
use crate::cluster::persistent_volume;
use crate::engine::release;
use crate::time::whole_second;

/// The Database that takes a kept volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// Its name; it is in the record's namespace.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

impl Holder {
    /// The Database as a holder.
    pub fn of(database: &Database) -> Self {
        Self { name: database.name_any(), uid: database.uid().unwrap_or_default() }
    }

    /// As the annotation holds it.
    pub fn to_annotation(&self) -> String {
        format!("{}/{}", self.name, self.uid)
    }
}

/// A retained volume as its record describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Retained {
    /// The PersistentVolume that is the record.
    pub persistent_volume: String,
    /// The namespace that the database was in.
    pub namespace: String,
    /// The UID of that namespace, where the record has one.
    #[serde(rename = "namespaceUID")]
    pub namespace_uid: Option<String>,
    /// The database's name.
    pub database: String,
    /// The deleted Database's UID.
    #[serde(rename = "databaseUID")]
    pub database_uid: Option<String>,
    /// The name of the Volume that had it.
    pub volume: Option<String>,
    /// The UID of the Volume that the EBS volume's tags name.
    #[serde(rename = "volumeUID")]
    pub volume_uid: String,
    /// The EBS volume.
    #[serde(rename = "volumeID")]
    pub volume_id: VolumeId,
    /// Its size.
    pub size: Option<Size>,
    /// Its type, where the record has it.
    pub volume_type: Option<String>,
    /// Its zone.
    pub zone: Option<String>,
    /// Its file system.
    pub file_system: Option<String>,
    /// The engine that wrote the data.
    pub engine: Option<String>,
    /// The engine's version, or its image.
    pub engine_version: Option<String>,
    /// Where a custom engine had the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_path: Option<String>,
    /// The user that a custom engine ran as.
    #[serde(skip_serializing_if = "Option::is_none", rename = "userID")]
    pub user_id: Option<i64>,
    /// When it was kept.
    pub retained_at: Option<String>,
    /// Why it was kept, in words.
    pub because: Option<String>,
    /// The Secret with the credentials.
    pub credentials_secret: Option<String>,
    /// The Database that takes it.
    pub adopted_by: Option<Holder>,
    /// Nothing claims it any more.
    pub is_released: bool,
}

/// Reads a record; `None` when the PersistentVolume is none of Freehold's, or contradicts itself.
pub fn read(record: &PersistentVolume) -> Option<Retained> {
    let label = |key: &str| record.labels().get(key).cloned();
    let note = |key: &str| record.annotations().get(key).filter(|value| !value.is_empty()).cloned();
    if label(keys::RETAINED_LABEL).as_deref() != Some("true") {
        return None;
    }
    // The label decides, and not the name: that of a volume that was adopted in place is anything.
    let owner = label(keys::VOLUME_UID_LABEL).filter(|uid| !uid.is_empty())?;
    let whose = note(DATABASE_ANNOTATION)?;
    let (namespace, database) = whose.split_once('/')?;
    let spec = record.spec.as_ref()?;
    let volume_id = persistent_volume::ebs_volume(record)?;
    let claim = spec.claim_ref.as_ref().filter(|claim| claim.namespace.as_deref() == Some(namespace))?;
    let capacity = || spec.capacity.as_ref()?.get("storage").map(|quantity| Size(quantity.0.clone()));
    let adopted_by = note(ADOPTED_BY_ANNOTATION).map(|holder| {
        let (name, uid) = holder.split_once('/').unwrap_or((&holder, ""));
        Holder { name: name.to_owned(), uid: uid.to_owned() }
    });
    Some(Retained {
        persistent_volume: record.name_any(),
        namespace: namespace.to_owned(),
        namespace_uid: note(NAMESPACE_UID_ANNOTATION),
        database: database.to_owned(),
        database_uid: label(keys::DATABASE_UID_LABEL),
        volume: claim.name.clone(),
        volume_uid: owner,
        volume_id,
        size: note(SIZE_ANNOTATION).map(Size).or_else(capacity),
        volume_type: note(VOLUME_TYPE_ANNOTATION),
        zone: persistent_volume::zone(record),
        file_system: persistent_volume::file_system(record),
        engine: note(ENGINE_ANNOTATION).or_else(|| label(ENGINE_LABEL)),
        engine_version: note(ENGINE_VERSION_ANNOTATION),
        data_path: note(DATA_PATH_ANNOTATION),
        user_id: note(USER_ID_ANNOTATION).and_then(|user| user.parse().ok()),
        retained_at: note(RETAINED_AT_ANNOTATION),
        because: note(RETAINED_BECAUSE_ANNOTATION),
        credentials_secret: note(CREDENTIALS_ANNOTATION)
            .or_else(|| claim.name.as_deref().map(names::retained_secret)),
        adopted_by,
        is_released: record.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Released"),
    })
}

/// What EC2 shows of a volume when it is retained.
#[derive(Clone, Debug)]
pub struct Disk {
    /// Its size.
    pub size: Size,
    /// Its type.
    pub volume_type: String,
}

/// What makes a PersistentVolume the record of what was kept: its annotations. `owner` is the Database, where
/// it can still be read.
pub fn marks(
    volume: &str,
    engine: Option<&String>,
    owner: Option<&Database>,
    disk: &Disk,
    because: &str,
    namespace_uid: Option<&String>,
    now: Timestamp,
) -> BTreeMap<String, String> {
    let spec = owner.map(Database::engine_of_data);
    let image = || Some(spec?.custom.as_ref()?.image.clone());
    let version = owner.and_then(Database::data_version).or_else(image);
    let custom = spec.and_then(|engine| engine.custom.as_ref());
    let data_path = custom.map(|custom| custom.data_path.clone());
    let user_id = custom.map(|custom| custom.user_id.to_string());
    let engine = spec.map(|engine| engine.kind.as_str().to_owned()).or_else(|| engine.cloned());
    let marks = [
        (RETAINED_AT_ANNOTATION, Some(whole_second(now).to_string())),
        (RETAINED_BECAUSE_ANNOTATION, Some(because.to_owned())),
        (SIZE_ANNOTATION, Some(disk.size.0.clone())),
        (VOLUME_TYPE_ANNOTATION, Some(disk.volume_type.clone())),
        (ENGINE_ANNOTATION, engine),
        (ENGINE_VERSION_ANNOTATION, version),
        (DATA_PATH_ANNOTATION, data_path),
        (USER_ID_ANNOTATION, user_id),
        (CREDENTIALS_ANNOTATION, Some(names::retained_secret(volume))),
        (NAMESPACE_UID_ANNOTATION, namespace_uid.cloned()),
    ];
    marks.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// The record that this Database asks for, if it may have it; else why not, and what a person can do.
pub fn may_adopt(
    name: &str,
    record: Option<&PersistentVolume>,
    database: &Database,
    namespace_uid: Option<&str>,
) -> Result<Retained, String> {
    let namespace = database.namespace().unwrap_or_default();
    // One sentence for what does not exist and for what is another namespace's: a tenant learns nothing of
    // others.
    let kept = record.and_then(read).filter(|kept| kept.namespace == namespace).ok_or_else(|| {
        format!(
            "PersistentVolume {name} is no record of a volume that was kept in namespace {namespace}: \
             `freehold retained -n {namespace}` lists those; delete this Database and create it with the \
             right name, or without spec.storage.adoptRetained to start anew"
        )
    })?;
    if !is_of(&kept, namespace_uid) {
        return Err(format!(
            "PersistentVolume {name} records a volume of an earlier namespace {namespace}, which was deleted: \
             this namespace has its name alone. To allow the adoption, the platform team removes the \
             annotation {NAMESPACE_UID_ANNOTATION} from the PersistentVolume"
        ));
    }
    fits(&kept, database)
        .map_err(|why| format!("the volume that PersistentVolume {name} records cannot be taken: {why}"))?;
    Ok(kept)
}

/// The UIDs that the tags of this Volume's EBS volume may name: its own, and while it adopts a retained one
/// that of the Volume before.
pub fn claims(volume: &Volume) -> BTreeSet<String> {
    let former = volume.spec.adopt_retained.as_deref().and_then(names::volume_uid_of);
    volume.uid().into_iter().chain(former.map(str::to_owned)).collect()
}

/// Those of these EBS volumes that no Volume has any more: they were retained. `claimed` are the claims of
/// all Volumes.
pub fn retained(volumes: Vec<TaggedVolume>, claimed: &BTreeSet<String>) -> Vec<TaggedVolume> {
    volumes.into_iter().filter(|volume| !claimed.contains(&volume.volume_uid)).collect()
}

/// Whether the volume was retained in the namespace of this UID, not only in one of its name.
pub fn is_of(kept: &Retained, namespace_uid: Option<&str>) -> bool {
    kept.namespace_uid.as_deref().is_none_or(|uid| Some(uid) == namespace_uid)
}

/// What a person does about a spec that does not fit.
const ANEW: &str = "delete this Database and create it with";

/// Whether this version of the engine reads the data, and finds it.
fn version_fits(kept: &Retained, engine: &Engine) -> Result<(), String> {
    let wrote = kept.engine_version.as_deref();
    let wanted = engine.version.as_deref().unwrap_or_default();
    match engine.kind {
        EngineType::Postgresql => {
            let major = |version: &str| version.split('.').next().map(str::to_owned);
            match wrote.and_then(major) {
                None => Err(format!(
                    "it does not say which version of PostgreSQL wrote it: if you know, annotate the \
                     PersistentVolume with {ENGINE_VERSION_ANNOTATION}"
                )),
                Some(wrote) if Some(&wrote) != major(wanted).as_ref() => Err(format!(
                    "its data was written by PostgreSQL {wrote}, which no other major version can read: \
                        {ANEW} a version {wrote}.x"
                )),
                Some(_) => Ok(()),
            }
        }
        EngineType::Questdb => match wrote.filter(|wrote| release::is_older(wanted, wrote)) {
            Some(wrote) => Err(format!(
                "its data was written by QuestDB {wrote}, which an older version does not read: {ANEW} \
                 {wrote} or a later version"
            )),
            None => Ok(()),
        },
        EngineType::Custom => {
            let Some(custom) = &engine.custom else { return Ok(()) };
            // The kubelet changes the group of the files and not their owner, for any image.
            if let Some(made) = kept.user_id.filter(|made| *made != custom.user_id) {
                return Err(format!(
                    "its files belong to the user {made}, not to {}: {ANEW} spec.engine.custom.userId: {made}",
                    custom.user_id
                ));
            }
            let had = kept.data_path.as_ref().filter(|had| **had != custom.data_path);
            match had.filter(|_| wrote == Some(custom.image.as_str())) {
                Some(had) => Err(format!(
                    "the image {} had its data in {had}: {ANEW} spec.engine.custom.dataPath: {had}",
                    custom.image
                )),
                None => Ok(()),
            }
        }
    }
}

/// Whether the data can be used by a Database of this spec.
fn fits(kept: &Retained, database: &Database) -> Result<(), String> {
    let engine = &database.spec.engine;
    if !kept.is_released {
        return Err("it is not Released: something claims it".to_owned());
    }
    let wrote = kept.engine.as_deref().unwrap_or("an unknown engine");
    if wrote != engine.kind.as_str() {
        return Err(format!(
            "its data was written by {wrote}, not by {}: {ANEW} that engine",
            engine.kind.as_str()
        ));
    }
    version_fits(kept, engine)?;
    let Storage { size, file_system, volume_type, .. } = &database.spec.storage;
    if kept.file_system.as_deref() != Some(file_system.as_str()) {
        let made = kept.file_system.as_deref().unwrap_or("an unknown file system");
        return Err(format!("it was formatted with {made}: {ANEW} spec.storage.fileSystem: {made}"));
    }
    if let Some((has, wants)) = kept.size.as_ref().and_then(Size::gib).zip(size.gib())
        && wants < has
    {
        return Err(format!(
            "it has {has} GiB, and EBS volumes only grow: set spec.storage.size to {has}Gi or \
            more"
        ));
    }
    // A manifest without the line means gp3: the volume would be modified before the data is even read, for
    // hours, and with one of EC2's few modifications a day.
    if let Some(has) = kept.volume_type.as_ref().filter(|has| *has != volume_type) {
        return Err(format!(
            "it is of the type {has}, not {volume_type}: set spec.storage.type to {has}, with the iops that \
             this type needs; the type can change once the database is ready"
        ));
    }
    let Some(zone) = &kept.zone else { return Err("it does not say which zone it is in".to_owned()) };
    if !database.spec.zones.is_empty() && !database.spec.zones.contains(zone) {
        return Err(format!("it is in {zone}, which spec.zones does not allow: add {zone} to spec.zones"));
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "a json! reads best where it is used")]
mod tests;

//! What a snapshot has in it, as tags: by them alone it can be restored. Pure.

use std::collections::BTreeMap;

use crate::api::Database;
use crate::api::backup::Consistency;
use crate::api::database::{EngineType, FileSystem};
use crate::api::keys::{CONSISTENCY_TAG, ENGINE_TAG, ENGINE_VERSION_TAG, FILE_SYSTEM_TAG, NAMESPACE_UID_TAG};

/// The longest value of a tag (EC2 user guide, "Tag restrictions").
const LONGEST_TAG: usize = 256;

/// The data of a Database, as a restore must know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The engine.
    pub engine: EngineType,
    /// Its version; the image of a custom engine.
    pub version: Option<String>,
    /// The file system.
    pub file_system: String,
    /// The UID of the namespace.
    pub namespace_uid: Option<String>,
}

impl Contents {
    /// Of this Database.
    pub fn of(database: &Database, file_system: FileSystem, namespace_uid: Option<String>) -> Self {
        let engine = &database.spec.engine;
        let version = match engine.kind {
            EngineType::Questdb | EngineType::Postgresql => database.data_version(),
            EngineType::Custom => engine.custom.as_ref().map(|custom| custom.image.clone()),
        };
        Self { engine: engine.kind, version, file_system: file_system.as_str().to_owned(), namespace_uid }
    }

    /// Whether the data of this Database is still that of a backup with a checkpoint, from which its engine
    /// has not recovered yet: it has never served.
    pub fn is_unrecovered(database: &Database) -> bool {
        database.status.as_ref().is_some_and(|status| {
            let restored = status.restored.as_ref().map(|restored| restored.consistency);
            restored == Some(Consistency::EngineCheckpoint) && status.first_ready_at.is_none()
        })
    }

    /// The tags, with what the snapshot is a snapshot of. A value that EC2 would refuse is left out.
    pub fn tags(&self, consistency: &str) -> BTreeMap<String, String> {
        let version = self.version.clone().filter(|version| version.len() <= LONGEST_TAG);
        let tags = [
            (ENGINE_TAG, Some(self.engine.as_str().to_owned())),
            (ENGINE_VERSION_TAG, version),
            (FILE_SYSTEM_TAG, Some(self.file_system.clone())),
            (NAMESPACE_UID_TAG, self.namespace_uid.clone()),
            (CONSISTENCY_TAG, Some(consistency.to_owned())),
        ];
        tags.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }
}

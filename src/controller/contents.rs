//! What a snapshot has in it, as tags: by them alone it can be restored. Pure.

use std::collections::BTreeMap;

use super::layout;
use crate::api::backup::Consistency;
use crate::api::database::{EngineType, WalArchiveState};
use crate::api::keys::{
    CONSISTENCY_TAG, DATA_DIRECTORY_TAG, ENGINE_TAG, ENGINE_VERSION_TAG, FILE_SYSTEM_TAG, NAMESPACE_UID_TAG,
    WAL_ARCHIVE_TAG,
};
use crate::api::{Database, NodeClass, Volume, VolumeId};
use crate::cloud::identity;
use crate::controller::database::in_place::is_unserved;

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
    /// The directory on the volume, if it is not certainly where a Database of this engine has it.
    pub data_directory: Option<String>,
    /// Where its write-ahead log was being archived.
    pub wal_archive: Option<String>,
    /// The UID of the namespace.
    pub namespace_uid: Option<String>,
}

impl Contents {
    /// Of this Database, on this Volume.
    pub fn of(database: &Database, volume: &Volume, namespace_uid: Option<String>) -> Self {
        let ebs = volume.status.as_ref().and_then(|status| status.volume_id.as_ref());
        let engine = database.engine_of_data();
        let version = match engine.kind {
            EngineType::Questdb | EngineType::Postgresql => database.data_version(),
            EngineType::Custom => engine.custom.as_ref().map(|custom| custom.image.clone()),
        };
        Self {
            engine: engine.kind,
            version,
            file_system: volume.spec.file_system.as_str().to_owned(),
            data_directory: layout::found(database),
            wal_archive: ebs.and_then(|ebs| archived_to(database, ebs)),
            namespace_uid,
        }
    }

    /// Whether the data of this Volume of the Database is still that of a backup with a checkpoint, from
    /// which its engine has not recovered yet: it has never served.
    pub fn is_unrecovered(database: &Database, volume: &Volume) -> bool {
        database.status.as_ref().is_some_and(|status| {
            let restored = status.restored.as_ref().map(|restored| restored.consistency);
            let is_unserved = status.first_ready_at.is_none() || is_unserved(database, volume);
            restored == Some(Consistency::EngineCheckpoint) && is_unserved
        })
    }

    /// The tags, with what the snapshot is a snapshot of. A value that EC2 would refuse is left out.
    pub fn tags(&self, consistency: &str) -> BTreeMap<String, String> {
        let version = self.version.clone().filter(|version| version.len() <= LONGEST_TAG);
        let fits = |directory: String| {
            if directory.len() <= LONGEST_TAG { directory } else { layout::UNKNOWN.to_owned() }
        };
        let tags = [
            (ENGINE_TAG, Some(self.engine.as_str().to_owned())),
            (ENGINE_VERSION_TAG, version),
            (FILE_SYSTEM_TAG, Some(self.file_system.clone())),
            (DATA_DIRECTORY_TAG, self.data_directory.clone().map(fits)),
            (WAL_ARCHIVE_TAG, self.wal_archive.clone()),
            (NAMESPACE_UID_TAG, self.namespace_uid.clone()),
            (CONSISTENCY_TAG, Some(consistency.to_owned())),
        ];
        tags.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }
}

/// Where the engine of this Database archives its write-ahead log, without the folder of this volume, if it
/// was seen to: from then on it keeps every part of its log until that is archived.
pub fn archived_to(database: &Database, volume: &VolumeId) -> Option<String> {
    let known = database.status.as_ref()?.wal_archive.as_ref()?;
    let is_kept = matches!(
        known.state,
        WalArchiveState::Archiving | WalArchiveState::Starting | WalArchiveState::Failing
    );
    (is_kept && known.volume_id == *volume).then(|| known.destination.clone())
}

/// The tags of its NodeClass that a snapshot of this Volume carries: those that the EBS volume was created
/// with, whatever the class says now; of one that Freehold has not created, those of the class.
pub fn class_tags(volume: &Volume, class: Option<&NodeClass>) -> BTreeMap<String, String> {
    let creation = volume.status.as_ref().and_then(|status| status.creation.as_ref());
    let of_class = || {
        let tags = class.iter().flat_map(|class| &class.spec.tags);
        tags.map(|(key, value)| (key.clone(), value.0.clone())).collect()
    };
    identity::snapshot_tags(&creation.map_or_else(of_class, |creation| creation.tags.clone()))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_snapshot_has_the_tags_that_its_volume_was_created_with_or_those_of_the_class() {
        let class: NodeClass = serde_json::from_value(json!({
            "apiVersion": "freehold.dev/v1alpha1", "kind": "NodeClass", "metadata": {"name": "default"},
            "spec": {
                "architecture": "amd64", "imageID": "ami-1", "subnets": [], "userData": "boot",
                "instanceTypes": ["*"], "tags": {"team": "now", "kubernetes.io/cluster/one": "owned"},
            },
        }))
        .unwrap();
        let volume = |status: Value| -> Volume {
            serde_json::from_value(json!({
                "apiVersion": "freehold.dev/v1alpha1", "kind": "Volume", "metadata": {"name": "orders"},
                "spec": {
                    "nodeClassName": "default", "size": "100Gi", "type": "gp3", "fileSystem": "xfs",
                    "zone": "us-east-1a", "deletionPolicy": "Retain",
                },
                "status": status,
            }))
            .unwrap()
        };
        let created = volume(json!({"creation": {
            "attempt": 1, "startedAt": "2026-11-25T19:34:16Z", "clientToken": "token", "zone": "us-east-1a",
            "size": 100, "type": "gp3",
            "tags": {"team": "then", "Name": "orders", "freehold.dev/cluster-id": "cluster"},
        }}));
        let adopted = volume(json!({"volumeID": "vol-1"}));
        let team = |team: &str| BTreeMap::from([("team".to_owned(), team.to_owned())]);
        assert_eq!(class_tags(&created, Some(&class)), team("then"));
        assert_eq!(class_tags(&created, None), team("then"), "the class may be gone");
        assert_eq!(class_tags(&adopted, Some(&class)), team("now"));
        assert_eq!(class_tags(&adopted, None), BTreeMap::new());
    }

    #[test]
    fn a_directory_that_fits_into_no_tag_is_not_known() {
        let contents = |directory: Option<String>| Contents {
            engine: EngineType::Custom,
            version: None,
            file_system: "xfs".to_owned(),
            data_directory: directory,
            wal_archive: None,
            namespace_uid: None,
        };
        let tag = |directory| contents(directory).tags("CrashConsistent").get(DATA_DIRECTORY_TAG).cloned();
        assert_eq!(tag(None), None);
        assert_eq!(tag(Some("pgdata".to_owned())).as_deref(), Some("pgdata"));
        assert_eq!(tag(Some("a".repeat(257))).as_deref(), Some(layout::UNKNOWN));
    }
}

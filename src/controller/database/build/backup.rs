//! Builds the Backup that a change of the engine is taken behind.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::api::backup::{BackupSpec, SnapshotPolicy};
use crate::api::keys::BEFORE_UPGRADE_LABEL;
use crate::api::names::Names;
use crate::api::{Backup, Database};

/// The Backup of this name. It outlives its Database; who deletes it deletes its snapshot.
pub fn backup(database: &Database, names: &Names, name: &str) -> Backup {
    let database_name = database.metadata.name.clone().unwrap_or_default();
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(names.namespace.clone()),
        labels: Some(BTreeMap::from([(BEFORE_UPGRADE_LABEL.to_owned(), database_name.clone())])),
        ..ObjectMeta::default()
    };
    let spec = BackupSpec { database_name, deletion_policy: SnapshotPolicy::Delete };
    Backup { metadata, spec, status: None }
}

//! Builds the ConfigMap: the engine's files of settings.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;

use super::{inputs_hash, owned};
use crate::api::Database;
use crate::api::keys::INPUTS_HASH_ANNOTATION;
use crate::api::names::Names;
use crate::engine::Profile;

/// The ConfigMap; `None` when the engine takes no files.
pub fn config_map(database: &Database, names: &Names, profile: &Profile) -> Option<ConfigMap> {
    let directory = profile.config.as_ref()?;
    let mut metadata = owned(names, &names.config_map);
    metadata.annotations =
        Some(BTreeMap::from([(INPUTS_HASH_ANNOTATION.to_owned(), inputs_hash(&database.spec))]));
    Some(ConfigMap { metadata, data: Some(directory.files.clone()), ..ConfigMap::default() })
}

//! Builds the Kubernetes objects of a database: pure functions of the Database, its names and its engine's
//! profile.

mod adopted;
mod application_user;
mod backup;
mod compare;
mod config_map;
mod disruption_budget;
mod fingerprint;
mod memory;
mod network_policy;
mod node;
mod noted;
mod pod_parts;
mod recovery;
mod released;
mod secret;
mod service;
mod service_account;
mod stateful_set;
mod template;
mod tls;
mod unknown;
mod volume;
mod wal_archive;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;

use crate::api::Database;
use crate::api::names::Names;

pub use super::inputs::{changed, config_hash, inputs_hash};
pub use adopted::{
    adopted_node, adopted_set, adopted_volume, inputs_to_run, of_version, served_as, served_before,
};
pub use application_user::application_user;
pub use backup::backup;
pub use compare::holds;
pub use config_map::config_map;
pub use disruption_budget::disruption_budget;
pub use fingerprint::{of_config_map, of_stateful_set};
pub use memory::{
    asked_of, is_same, least_memory, memory_is_of_machine, memory_of, memory_of_set, memory_on, with_memory,
};
pub use network_policy::{archive_port, network_policy};
pub use node::{node, node_spec};
pub use noted::noted;
pub use recovery::recovers;
pub use released::{released, released_as_found};
pub use secret::{
    CredentialsError, check_credentials, credentials, entries, next_generation, next_password, of_generation,
    password_generation, promoted, retained, secret_type, taken_over, value, with_next, with_next_in_force,
};
pub use service::{host, is_closed_service, service, with_selector};
pub use service_account::{service_account, service_account_patch};
pub use stateful_set::{DATA, in_priority_class, stateful_set, with_image_of};
pub use template::changed_fields;
pub use tls::{of_connections as tls_of_connections, secret_of as tls_secret_of};
pub use unknown::with_unknown;
pub use volume::{deletion_policy, volume, volume_in_place, volume_spec};
pub use wal_archive::{archive_of, is_of_volume, with_wal_archive};

/// The metadata of an object that goes with its Database.
fn owned(names: &Names, name: &str) -> ObjectMeta {
    ObjectMeta { owner_references: Some(vec![owner_reference(names)]), ..unowned(names, name) }
}

/// The metadata of an object that may outlive its Database.
fn unowned(names: &Names, name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(names.namespace.clone()),
        labels: Some(names.labels.clone()),
        ..ObjectMeta::default()
    }
}

/// The reference from a child to its Database: it goes with it, and the Database's controller is woken when
/// it changes.
pub fn owner_reference(names: &Names) -> OwnerReference {
    OwnerReference {
        api_version: Database::api_version(&()).into_owned(),
        kind: Database::kind(&()).into_owned(),
        name: names.database.clone(),
        uid: names.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "a json! reads best where it is used")]
mod tests;

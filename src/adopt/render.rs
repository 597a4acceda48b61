//! Renders the Database that adopts what was found. Pure.

use kube::ResourceExt;
use kube::api::ObjectMeta;
use serde_norway::{Mapping, Value};

use super::choices::{instance_types, secret, service};
use super::engine::engine;
use super::found::Found;
use super::wanted::Wanted;
use crate::api::database::{Access, Adopt, DatabaseSpec, DeletionPolicy, FileSystem, Storage};
use crate::api::{Database, Size};

/// The Database; `None` as long as something of it is not known, which a blocker of the checks says.
pub fn database(found: &Found, wanted: &Wanted) -> Option<Database> {
    let volume = found.volume.as_ref()?;
    let adopt = Adopt {
        stateful_set_name: found.stateful_set.name_any(),
        claim_name: found.data()?.name.clone(),
        volume_id: found.volume_id()?,
        instance_id: found.instance_id()?,
        service_name: service(found, wanted).ok()?,
        credentials_secret_name: secret(found, wanted).ok()?,
        container_name: found.container_name(),
    };
    found.instance.as_ref()?;
    let volume_type = volume.volume_type.as_str();
    let storage = Storage {
        size: Size::from_gib(volume.size),
        volume_type: volume_type.to_owned(),
        // EC2 shows the IOPS of a gp2 volume, which follow from its size and cannot be requested.
        iops: volume.iops.filter(|_| matches!(volume_type, "gp3" | "io1" | "io2")),
        throughput: volume.throughput.filter(|_| volume_type == "gp3"),
        file_system: file_system(found)?,
        auto_grow: None,
        adopt_retained: None,
        start_empty: false,
        new_credentials: false,
    };
    let spec = DatabaseSpec {
        engine: engine(found, wanted).ok()?,
        node_class_name: wanted.node_class.clone(),
        instance_types: instance_types(found, wanted),
        zones: Vec::new(),
        storage,
        config: std::collections::BTreeMap::new(),
        access: Access::default(),
        tls: None,
        wal_archive: None,
        application_user: None,
        resources: None,
        running: true,
        restore: None,
        restore_in_place: None,
        upgrade: None,
        adopt: Some(adopt),
        release: false,
        deletion_protection: false,
        deletion_policy: DeletionPolicy::Retain,
    };
    let metadata = ObjectMeta {
        name: Some(wanted.database().to_owned()),
        namespace: found.stateful_set.namespace(),
        ..ObjectMeta::default()
    };
    Some(Database { metadata, spec, status: None })
}

/// The file system, if Freehold knows it.
pub fn file_system(found: &Found) -> Option<FileSystem> {
    match found.file_system()?.as_str() {
        "xfs" => Some(FileSystem::Xfs),
        "ext4" => Some(FileSystem::Ext4),
        _ => None,
    }
}

/// The Database as a file for Git: without what is empty or the default of every Database.
pub fn yaml(database: &Database) -> Result<String, serde_norway::Error> {
    let mut value = serde_norway::to_value(database)?;
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_mapping_mut) {
        let is_empty = |value: &Value| {
            value.as_sequence().is_some_and(Vec::is_empty)
                || value.as_mapping().is_some_and(Mapping::is_empty)
        };
        let is_default = |key: &Value| matches!(key.as_str(), Some("running" | "deletionProtection"));
        spec.retain(|key, value| !is_empty(value) && !is_default(key));
    }
    serde_norway::to_string(&value)
}

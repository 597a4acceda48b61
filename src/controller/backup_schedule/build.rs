//! Builds the Database that a Backup is restored in to verify it. Pure.

use std::collections::BTreeMap;

use data_encoding::BASE32_NOPAD;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use kube::{Resource, ResourceExt};
use sha2::{Digest, Sha256};

use crate::api::backup::BackupSource;
use crate::api::database::{
    Access, AccessPeer, CustomEngine, DeletionPolicy, Engine, EngineType, FileSystem, Restore, Storage,
};
use crate::api::keys::VERIFICATION_LABEL;
use crate::api::verification::{Verification, Verify};
use crate::api::{Backup, BackupSchedule, Database, DatabaseSpec};

/// So much of the name of the BackupSchedule is in that of the Database, which has at most 40 characters.
const LONGEST_PART: usize = 24;

/// So many characters distinguish the Databases of all times of all BackupSchedules.
const HASH: usize = 8;

/// The name of the Database of this time: the same one however often it is computed, and another for each
/// time.
pub fn database_name(schedule: &BackupSchedule, time: Timestamp) -> String {
    let identity = format!("{}/{}", schedule.uid().unwrap_or_default(), time.as_second());
    let mut hash = BASE32_NOPAD.encode(&Sha256::digest(identity.as_bytes())).to_lowercase();
    hash.truncate(HASH);
    let part: String = schedule.name_any().replace('.', "-").chars().take(LONGEST_PART).collect();
    format!("verify-{}-{hash}", part.trim_end_matches('-'))
}

/// The Database that this Backup is restored in: on the engine that wrote the data, otherwise as `of`, the
/// Database that is backed up. `None` where that has another engine by now, or no version is known.
pub fn database(
    schedule: &BackupSchedule,
    verify: Option<&Verify>,
    running: &Verification,
    backup: &Backup,
    of: &Database,
) -> Option<Database> {
    let status = backup.status.as_ref()?;
    let source = status.source.as_ref()?;
    let instance_type = verify.and_then(|verify| verify.instance_type.clone());
    let node_class = verify.and_then(|verify| verify.node_class_name.clone());
    let size = status.size.clone().unwrap_or_else(|| of.spec.storage.size.clone());
    let is_ext4 = source.file_system == FileSystem::Ext4.as_str();
    let spec = DatabaseSpec {
        engine: engine(source, &of.spec.engine)?,
        node_class_name: node_class.unwrap_or_else(|| of.spec.node_class_name.clone()),
        instance_types: instance_type.map_or_else(|| of.spec.instance_types.clone(), |it| vec![it]),
        zones: of.spec.zones.clone(),
        storage: Storage {
            size,
            file_system: if is_ext4 { FileSystem::Ext4 } else { FileSystem::Xfs },
            // A snapshot may be larger than its largest size by now, which admission would refuse.
            auto_grow: None,
            adopt_retained: None,
            start_empty: false,
            new_credentials: false,
            ..of.spec.storage.clone()
        },
        // What no engine has begun with may keep one from starting.
        config: match of.status.as_ref().and_then(|status| status.config.as_ref()) {
            Some(config) => config.in_force.clone(),
            None => of.spec.config.clone(),
        },
        access: no_clients(schedule),
        // No client is to trust it; only an image of one's own may not start without.
        tls: of.spec.tls.clone().filter(|_| of.spec.engine.kind == EngineType::Custom),
        wal_archive: None,
        // No application connects.
        application_user: None,
        // They may not fit another type.
        resources: None,
        running: true,
        restore_in_place: None,
        upgrade: None,
        restore: Some(Restore { backup_name: Some(backup.name_any()), ..Restore::default() }),
        adopt: None,
        release: false,
        deletion_protection: false,
        deletion_policy: DeletionPolicy::Delete,
    };
    let metadata = ObjectMeta {
        name: Some(running.database_name.clone()),
        namespace: schedule.namespace(),
        labels: Some(BTreeMap::from([(VERIFICATION_LABEL.to_owned(), schedule.name_any())])),
        owner_references: Some(vec![owner(schedule)]),
        ..ObjectMeta::default()
    };
    Some(Database { metadata, spec, status: None })
}

/// The engine as it wrote the data.
fn engine(source: &BackupSource, now: &Engine) -> Option<Engine> {
    if now.kind != source.engine {
        return None;
    }
    match source.engine {
        EngineType::Questdb | EngineType::Postgresql => {
            Some(Engine { kind: source.engine, version: Some(source.engine_version.clone()?), custom: None })
        }
        EngineType::Custom => {
            let custom = now.custom.clone()?;
            let image = source.image.clone().unwrap_or_else(|| custom.image.clone());
            let custom = CustomEngine { image, ..custom };
            Some(Engine { kind: EngineType::Custom, version: None, custom: Some(custom) })
        }
    }
}

/// Pods of a label that no pod has: the data is another database's, and Freehold alone connects to it.
fn no_clients(schedule: &BackupSchedule) -> Access {
    let labels = BTreeMap::from([(VERIFICATION_LABEL.to_owned(), schedule.name_any())]);
    let pods = LabelSelector { match_labels: Some(labels), match_expressions: None };
    let peer = AccessPeer { namespace_selector: None, pod_selector: Some(pods) };
    Access { from: Some(vec![peer]), cidrs: Vec::new(), password_generation: None }
}

/// When the BackupSchedule is deleted, Kubernetes deletes the Database.
fn owner(schedule: &BackupSchedule) -> OwnerReference {
    OwnerReference {
        api_version: BackupSchedule::api_version(&()).into_owned(),
        kind: BackupSchedule::kind(&()).into_owned(),
        name: schedule.name_any(),
        uid: schedule.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: None,
    }
}

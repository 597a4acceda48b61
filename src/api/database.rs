//! `Database`: the one thing that people create.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumIter, IntoStaticStr};

pub use super::database_access::{Access, AccessPeer};
pub use super::database_adoption::{Adopt, Adoption, ServedAs, StartFailure, WentBack};
pub use super::database_application_user::ApplicationUser;
pub use super::database_auto_grow::{AutoGrow, AutoGrowState, AutoGrowStatus, Unmeasured};
pub use super::database_config::{
    ConfigChange, ConfigState, ConfigStatus, ConfigStep, ConfigValue, RejectedConfig, ReloadedPod,
};
pub use super::database_engine::{CustomCredentials, CustomEngine, Engine, EngineType};
pub use super::database_resources::{ResourceQuantity, Resources};
pub use super::database_restore::{
    FormerData, Initialization, PointInTime, Recovery, Restore, RestoreInPlace, RestoreWentBack, Restored,
    RestoredInPlace,
};
pub use super::database_served::{EngineNotStarted, Served};
pub use super::database_status::{
    Applied, AppliedStatefulSet, DatabaseStatus, Endpoint, EngineRun, EngineStart, HistoryEntry, NotStarting,
    Occurrence, Release, Replacement,
};
pub use super::database_storage::{FileSystem, Storage, VOLUME_TYPES, largest_size};
pub use super::database_tls::{Tls, TlsStatus};
pub use super::database_upgrade::{FormerEngine, TriedPod, Upgrade, UpgradePolicy, UpgradeWentBack};
pub use super::database_wal_archive::{WalArchive, WalArchiveState, WalArchiveStatus};

/// What one database must be.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "freehold.dev",
    version = "v1alpha1",
    kind = "Database",
    plural = "databases",
    singular = "database",
    shortname = "db",
    category = "freehold",
    namespaced,
    status = "DatabaseStatus",
    derive = "PartialEq",
    doc = "A database on a machine of its own: one EC2 instance, one EBS volume, one StatefulSet pinned to \
        that instance. Wait for the condition Ready with observedGeneration equal to metadata.generation.",
    printcolumn(
        name = "Ready", type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether this generation is running and answering."
    ),
    printcolumn(
        name = "Available", type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Available\")].status",
        description = "Whether clients can use it now, of whichever generation."
    ),
    printcolumn(
        name = "Reason", type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "Why it is, or what is awaited."
    ),
    printcolumn(
        name = "Engine", type_ = "string",
        json_path = ".spec.engine.type",
        description = "The database engine."
    ),
    printcolumn(
        name = "Version", type_ = "string",
        json_path = ".spec.engine.version",
        description = "The engine's version."
    ),
    printcolumn(
        name = "Size", type_ = "string",
        json_path = ".spec.storage.size",
        description = "The wanted size of the volume."
    ),
    printcolumn(
        name = "Type", type_ = "string",
        json_path = ".status.instanceType",
        description = "The instance type in use."
    ),
    printcolumn(
        name = "Zone", type_ = "string",
        json_path = ".status.zone",
        description = "The zone of the volume."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.size() <= 40 && \
        self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')")
        .message("metadata.name must start with a letter, hold only a-z, 0-9 and '-', and have at most 40 \
            characters: the names of the Service, the StatefulSet and the Nodes are derived from it"),
    validation = Rule::new("!has(oldSelf.status) || !has(oldSelf.status.zone) || self.spec.zones == \
        oldSelf.spec.zones || self.spec.zones.size() == 0 || oldSelf.status.zone in self.spec.zones")
        .message("spec.zones must be empty or hold the zone of the database (status.zone): an EBS volume \
            cannot leave its zone; add the zone again, or create a new Database and copy the data"),
    validation = Rule::new("!has(oldSelf.status) || !has(oldSelf.status.firstReadyAt) || has(self.spec.adopt) \
        || !has(oldSelf.spec.engine.custom) || !has(self.spec.engine.custom) || \
        self.spec.engine.custom.userId == oldSelf.spec.engine.custom.userId")
        .message("spec.engine.custom.userId cannot change once the database was ready (status.firstReadyAt): \
            the files on the volume belong to it; set it back"),
    validation = Rule::new("!has(oldSelf.spec.storage.adoptRetained) || has(self.spec.storage.adoptRetained) \
        || (has(oldSelf.status) && has(oldSelf.status.volumeName))")
        .message("spec.storage.adoptRetained cannot be removed before the volume is adopted \
            (status.volumeName): delete this Database and create it without the line"),
    validation = Rule::new("has(self.spec.adopt) == has(oldSelf.spec.adopt) && (!has(self.spec.adopt) || \
        self.spec.adopt == oldSelf.spec.adopt)")
        .message("spec.adopt can be set only when the Database is created, and cannot change: delete this \
            Database (what was not adopted is released) and create it anew"),
    validation = Rule::new("!has(self.spec.adopt) || !has(self.spec.storage.adoptRetained)")
        .message("spec.adopt and spec.storage.adoptRetained exclude each other: the first adopts a \
            database that runs, the second restores a volume that was retained"),
    validation = Rule::new("has(self.spec.restore) == has(oldSelf.spec.restore) && \
        (!has(self.spec.restore) || self.spec.restore == oldSelf.spec.restore)")
        .message("spec.restore can be set only when the Database is created, and cannot change: delete this \
            Database and create it anew"),
    validation = Rule::new("!has(self.spec.restore) || (!has(self.spec.adopt) && \
        !has(self.spec.storage.adoptRetained))")
        .message("spec.restore excludes spec.adopt and spec.storage.adoptRetained: the data is that of a \
            backup, of a database that runs, or of a retained volume"),
    validation = Rule::new("!has(self.spec.restoreInPlace) || !has(self.spec.adopt)")
        .message("spec.restoreInPlace excludes spec.adopt: the claim of an adopted database is its user's; \
            restore the backup in a new Database (spec.restore)"),
    validation = Rule::new("!has(self.spec.upgrade) || !has(self.spec.adopt)")
        .message("spec.upgrade excludes spec.adopt: the claim of an adopted database is its user's, and its \
            data cannot be replaced; take a Backup before its engine is changed"),
    validation = Rule::new("!has(self.spec.adopt) || !has(self.spec.config) || self.spec.config.size() == 0")
        .message("spec.config must be empty with spec.adopt: an adopted database keeps its settings where \
            they are, in the files and variables of its StatefulSet"),
    validation = Rule::new("!has(self.spec.access) || !has(self.spec.access.passwordGeneration) || \
        (!has(self.spec.adopt) && self.spec.engine.type != 'custom')")
        .message("spec.access.passwordGeneration must be absent with spec.adopt and with spec.engine.type: \
            custom: the Secret of an adopted database is its user's, and Freehold cannot give a custom \
            engine another password"),
    validation = Rule::new("!has(self.spec.applicationUser) || (self.spec.engine.type == 'postgresql' && \
        !has(self.spec.adopt))")
        .message("spec.applicationUser is for spec.engine.type: postgresql, and not with spec.adopt: create a \
            DatabaseUser for an adopted database; for other engines docs/users.md says what there is"),
    validation = Rule::new("!has(oldSelf.spec.applicationUser) || !has(oldSelf.status) || \
        !has(oldSelf.status.binding) || \
        oldSelf.status.binding.name != self.metadata.name + '-application-user' || \
        (has(self.spec.applicationUser) && \
        self.spec.applicationUser.username == oldSelf.spec.applicationUser.username)")
        .message("spec.applicationUser cannot be removed, and its username cannot change, once the application \
            can connect (status.binding): set its role to Read, or create a DatabaseUser beside it"),
    validation = Rule::new("!has(self.spec.tls) || self.spec.engine.type != 'questdb'")
        .message("spec.tls must be absent with spec.engine.type: questdb: its open source edition has no TLS; \
            docs/tls.md puts a proxy before it"),
    validation = Rule::new("!has(self.spec.tls) || !has(self.spec.adopt)")
        .message("spec.tls must be absent with spec.adopt: an adopted database keeps its certificate where it \
            is, in the files and settings of its StatefulSet"),
    validation = Rule::new("!has(self.spec.tls) || !self.spec.tls.required || self.spec.engine.type != \
        'custom'")
        .message("spec.tls.required must be false with spec.engine.type: custom: Freehold does not know how \
            an image refuses connections without TLS"),
    validation = Rule::new("!has(self.spec.walArchive) || (self.spec.engine.type == 'postgresql' && \
        !has(self.spec.adopt))")
        .message("spec.walArchive is for spec.engine.type: postgresql, and not with spec.adopt: an adopted \
            database archives as its own settings say"),
    validation = Rule::new("!has(self.spec.restore) || !has(self.spec.restore.pointInTime) || \
        has(self.spec.walArchive) || (has(self.status) && has(self.status.firstReadyAt))")
        .message("spec.restore.pointInTime needs spec.walArchive: with its endpointURL, its region and its \
            credentials the archive of the backup is read"),
    validation = Rule::new("!has(self.spec.restoreInPlace) || !has(self.spec.restoreInPlace.pointInTime) || \
        has(self.spec.walArchive)")
        .message("spec.restoreInPlace.pointInTime needs spec.walArchive, by which the archive of the backup is \
            read: set it, or remove spec.restoreInPlace"),
)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseSpec {
    /// The database engine and its version.
    #[x_kube(validation = Rule::new("self.type == oldSelf.type")
        .message("spec.engine.type cannot change: another engine cannot read the data; create a new \
            Database"))]
    #[x_kube(validation = Rule::new("self.type != 'postgresql' || !has(self.version) || \
        !has(oldSelf.version) || self.version.split('.')[0] == oldSelf.version.split('.')[0]")
        .message("spec.engine.version cannot change to another major version of PostgreSQL: it cannot read \
            the data, and upgrades between majors are not offered yet; set the major version back, or create \
            a new Database and copy the data"))]
    #[x_kube(validation = Rule::new("!has(self.custom) || !has(oldSelf.custom) || \
        self.custom.port == oldSelf.custom.port")
        .message("spec.engine.custom.port cannot change: the Secret with the credentials names it, and is never \
            written again; set the port back, or create a new Database and copy the data"))]
    pub engine: Engine,

    /// The NodeClass, written by the platform team, that says how machines are created. A changed class is
    /// used by the next machine. Default: `default`.
    #[serde(default = "default_node_class_name")]
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')")
        .message("spec.nodeClassName must be the name of a NodeClass: a-z, 0-9, '-' and '.', with a letter or \
            a digit first and last"))]
    pub node_class_name: String,

    /// EC2 instance types in order of preference: the first that has capacity is taken. A running database is
    /// moved to another machine only when its type is no longer in this list; reordering the list moves
    /// nothing. Default: r7i.large, r6i.large, m7i.large.
    #[serde(default = "default_instance_types")]
    #[schemars(length(min = 1, max = 20), inner(length(max = 32)))]
    #[x_kube(validation = Rule::new("self.all(t, t.matches('^[a-z0-9-]+[.][a-z0-9-]+$'))")
        .message("spec.instanceTypes: each must be an EC2 instance type such as r7i.large"))]
    #[x_kube(validation = Rule::new("self.all(t, self.exists_one(u, u == t))")
        .message("spec.instanceTypes: each type may be listed once"))]
    pub instance_types: Vec<String>,

    /// The zones that the database may be placed in; empty means every zone that the NodeClass has a subnet
    /// in. It is placed once, where there is capacity (status.zone), and stays there: an EBS volume cannot
    /// leave its zone.
    #[serde(default)]
    #[schemars(length(max = 10), inner(length(min = 1, max = 32)))]
    #[x_kube(validation = Rule::new("self.all(z, self.exists_one(y, y == z))")
        .message("spec.zones: each zone may be listed once"))]
    pub zones: Vec<String>,

    /// The volume that holds the data.
    pub storage: Storage,

    /// Settings of the engine, as its own documentation names them. Settings that the operator owns
    /// (credentials, ports, paths) are refused. What PostgreSQL lets each session have for itself
    /// restarts nothing; anything else restarts the database once. status.config says what is in force.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 100))]
    #[x_kube(validation = Rule::new("self.all(k, k.size() <= 128 && k.matches('^[A-Za-z][A-Za-z0-9_.]*$'))")
        .message("spec.config: a key holds letters, digits, '.' and '_', starts with a letter and has at \
            most 128 characters"))]
    #[x_kube(validation = Rule::new("self.all(k, !self[k].matches('[\\n\\r\\x00]'))")
        .message("spec.config: a value is one line of text, without line breaks"))]
    #[x_kube(validation = Rule::new("!self.exists(k, k.matches('(?i)password'))")
        .message("spec.config must not hold passwords: they are generated; see status.credentialsSecretName"))]
    pub config: BTreeMap<String, ConfigValue>,

    /// Who may connect. Default: every pod of the Database's own namespace.
    #[serde(default)]
    pub access: Access,

    /// The user that the application connects as, which is no superuser: Freehold creates a DatabaseUser for
    /// it (`<database>-application`), the database is not Ready before the engine has let it in, and
    /// status.binding names its Secret. PostgreSQL only. It can be added later, and not removed once
    /// status.binding names it. Default: none, and status.binding names the Secret of the administrator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application_user: Option<ApplicationUser>,

    /// The certificate of the engine: clients may then connect over TLS, or must. Setting it or removing it
    /// restarts the database. Default: no TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,

    /// Where PostgreSQL archives its write-ahead log: a backup of it can then be restored to any moment since
    /// (spec.restore.pointInTime). The image must have Barman's barman-cloud-wal-archive, and the official
    /// one has not: see docs/point-in-time.md. Setting or removing it restarts the database. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wal_archive: Option<WalArchive>,

    /// What the engine's container requests. The machine is the database's own, so the default requests most
    /// of its memory, and sets no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,

    /// False pauses the database: the machine is released, the volume is kept. True again resumes it.
    /// Default: true.
    #[serde(default = "default_running")]
    pub running: bool,

    /// The backup whose data this database begins with. Only when the Database is created. Engine, file
    /// system and size must fit; the version is the backup's, or a later one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<Restore>,

    /// Replaces the data of this database, which is stopped for it, by that of a backup: on a new EBS volume,
    /// while the one with the data that it had is retained. The database goes back to that by itself if the
    /// engine does not serve in time, or if this field is removed before it does. Without data there is
    /// nothing to replace: with a Database that is created it does nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore_in_place: Option<RestoreInPlace>,

    /// Puts each change of spec.engine behind a snapshot: the engine is stopped, a Backup of the stopped
    /// database is taken, and the changed engine is started. Where that does not accept connections in time,
    /// or is taken back before it does, the database goes back by itself to the engine, the settings and the
    /// data that it had: nothing that a client was acknowledged is lost. Default: a changed engine is started
    /// on the data as it is, and only an image that cannot be started leads back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<UpgradePolicy>,

    /// A database that runs already, and that Freehold adopts as it runs. Only when the Database is
    /// created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt: Option<Adopt>,

    /// True releases the database when this Database is deleted: pod, instance and volume go on as they are,
    /// without what Freehold has put on them, whatever the deletionPolicy says. What was adopted becomes what
    /// it was before, as long as its pod is the one that was found; any other database goes on as it runs
    /// now, with its StatefulSet, Service, ConfigMap, Secret, ServiceAccount, NetworkPolicy and claim. A
    /// database that is created, moved or repaired is released once that is over, and one that is paused is
    /// not. `freehold release` does it. The chart's admission policies let only users with the verb `release`
    /// on databases.freehold.dev set it. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub release: bool,

    /// True refuses the deletion of this Database: set it to false first. Until then a Database that is being
    /// deleted all the same goes on running, and its volume is retained whatever the deletionPolicy says.
    /// The deletion of its namespace is not refused; it retains every volume. Default: false.
    #[serde(default)]
    pub deletion_protection: bool,

    /// What happens to the volume when this Database is deleted. When the namespace or the resource
    /// definitions are deleted instead, every policy acts as Retain. Default: Retain.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
}

impl Database {
    /// What its status says; nothing before its controller's first pass.
    pub fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }

    /// The version that decides which versions can read the data: the newest that was started on it, else
    /// the one of its engine.
    pub fn data_version(&self) -> Option<String> {
        let started = self.status.as_ref().and_then(|status| status.engine_version.clone());
        started.or_else(|| self.engine_of_data().version.clone())
    }

    /// The engine that the data is of: the one that served, until another one was seen started, or that of
    /// the spec. Of an upgrade that is underway the one before until its backup is taken, and the changed one
    /// where the database goes back from that.
    pub fn engine_of_data(&self) -> &Engine {
        let status = self.status.as_ref();
        let upgrade = status.and_then(|status| status.upgrade.as_deref()).filter(|it| it.is_underway());
        match upgrade {
            Some(upgrade) if upgrade.snapshot_id.is_none() => return &upgrade.from.engine,
            Some(upgrade) if upgrade.went_back.is_some() => return &upgrade.to,
            Some(_) | None => {}
        }
        let served = status.and_then(|status| {
            let served = status.served.as_deref()?;
            let is_last = status.run.as_ref().is_some_and(|run| run.pod_uid == served.pod_uid);
            let is_back = || served.went_back.as_ref().is_some_and(|back| back.engine == self.spec.engine);
            (is_last || is_back()).then_some(&served.engine)
        });
        served.unwrap_or(&self.spec.engine)
    }
}

/// What happens to the EBS volume when its Database is deleted.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    JsonSchema,
    EnumIter,
    IntoStaticStr
)]
pub enum DeletionPolicy {
    /// The volume is retained, and its PersistentVolume stays as its retention record.
    #[default]
    Retain,
    /// A final snapshot is taken; the volume is deleted once the snapshot is complete. `freehold retained
    /// --from-ec2` lists the snapshot; no Database can be created from it yet.
    Snapshot,
    /// The volume is deleted.
    Delete,
}

impl DeletionPolicy {
    /// The name as it is written in a Database.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

fn default_node_class_name() -> String {
    "default".to_owned()
}

fn default_instance_types() -> Vec<String> {
    ["r7i.large", "r6i.large", "m7i.large"].map(str::to_owned).to_vec()
}

fn default_running() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator;

    use super::*;

    /// The names that `as_str` gives, beside those that a Database has.
    fn names<E: IntoEnumIterator + Serialize + Into<&'static str>>() -> Vec<(serde_json::Value, &'static str)>
    {
        E::iter().map(|it| (serde_json::to_value(&it).unwrap(), it.into())).collect()
    }

    #[test]
    fn a_name_in_a_message_is_the_name_in_the_spec() {
        for (written, named) in
            [names::<EngineType>(), names::<FileSystem>(), names::<DeletionPolicy>()].concat()
        {
            assert_eq!(written, named);
        }
        assert_eq!(EngineType::Postgresql.as_str(), "postgresql");
        assert_eq!(FileSystem::Ext4.as_str(), "ext4");
        assert_eq!(DeletionPolicy::Retain.as_str(), "Retain");
    }
}

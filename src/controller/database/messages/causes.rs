//! The sentences for why a spec or Secret is refused, a machine or pod replaced, or a Node deleted. Pure.

use crate::api::database::VOLUME_TYPES;
use crate::api::keys::{DATABASE_UID_LABEL, RETAINED_LABEL};
use crate::controller::database::cause::LONGEST_NAME;
use crate::controller::database::cause::{
    AdoptionRefusal, Alteration, ClassRefusal, InvalidSpec, Move, NoRoom, NodeDeletion, ReplaceCause,
    RestartCause, SecretFault, TlsRefusal, WalArchiveRefusal,
};
use crate::controller::messages::FIRST_SYNC;

/// The message of another object's condition, as the end of a sentence.
pub fn or_unknown(message: Option<&str>) -> String {
    message.unwrap_or("its controller has not reported a status yet").to_owned()
}

impl TlsRefusal {
    fn message(self) -> &'static str {
        match self {
            Self::Questdb => {
                "spec.tls must be absent with QuestDB, whose open source edition has no TLS: remove it; \
                 docs/tls.md puts a proxy before the database"
            }
            Self::Adopted => {
                "spec.tls must be absent with spec.adopt: an adopted database keeps its certificate where it is. \
                 Remove spec.tls"
            }
            Self::CustomRequired => {
                "spec.tls.required must be false with a custom engine: Freehold does not know how its image \
                 refuses connections without TLS. Set it to false"
            }
        }
    }
}

impl WalArchiveRefusal {
    fn message(self) -> &'static str {
        match self {
            Self::Engine => "spec.walArchive is for PostgreSQL only: remove it",
            Self::Adopted => {
                "spec.walArchive must be absent with spec.adopt: an adopted database archives as its own \
                 settings say. Remove spec.walArchive"
            }
            Self::Form => {
                "spec.walArchive.destination must be a bucket with a path, such as s3://backups/postgresql, and \
                 endpointURL a URL without a path whose port is at most 65535. Correct it"
            }
            Self::Recovering => {
                "the data is still to be recovered to the moment that pointInTime says, and its archive is read \
                 with spec.walArchive: set that again"
            }
            Self::WalLevel => {
                "spec.config sets wal_level to minimal, with which PostgreSQL does not start with \
                 spec.walArchive: remove wal_level, or spec.walArchive"
            }
        }
    }
}

impl InvalidSpec {
    /// What is wrong, naming the field and the way out.
    pub fn message(&self) -> String {
        match self {
            Self::Name(name) => format!(
                "metadata.name {name:?} cannot be used: create the Database with a name of a-z, 0-9 and '-' \
                 that starts with a letter and has at most {LONGEST_NAME} characters"
            ),
            Self::Engine(error) => error.to_string(),
            Self::DataDirectory { wanted, made } => format!(
                "spec.engine.version needs the data in {wanted}, but the database has its data in {made}: \
                 another major version of PostgreSQL cannot read it. Set the major version back, or create a \
                 new Database and copy the data"
            ),
            Self::DataPath { wanted, made } => format!(
                "spec.engine.custom.dataPath cannot change from {made} to {wanted} with the same image: the \
                 image has its data in {made}, and what it writes anywhere else than on the volume is lost \
                 with its container. Set dataPath back; another image may have another path"
            ),
            Self::Tls(refusal) => refusal.message().to_owned(),
            Self::WalArchive(refusal) => refusal.message().to_owned(),
            Self::UserId { wanted, made } => format!(
                "spec.engine.custom.userId cannot change from {made} to {wanted}: the files on the volume \
                 belong to {made}, and Kubernetes would change the group of each of them before the engine \
                 starts. Set userId back"
            ),
            Self::AdoptedImage { image, version } => format!(
                "spec.engine.version cannot change: image {image} of the adopted database does not name {version} \
                 in its tag, so its image of another version is not known. Set the version back"
            ),
            Self::SizeForm(size) => format!(
                "spec.storage.size {size} must be a whole number of GiB or TiB, \
                for example 100Gi or 2Ti"
            ),
            Self::AutoGrowMaximum(size) => format!(
                "spec.storage.autoGrow.maxSize {size} must be a whole number of GiB or TiB, \
                for example 500Gi or 2Ti"
            ),
            Self::ThroughputNotAllowed => {
                "spec.storage.throughput is only for the type gp3: remove it or set spec.storage.type to \
                    gp3"
                .to_owned()
            }
            Self::IopsNotAllowed(kind) => {
                format!(
                    "spec.storage.iops is not for the type {kind}: remove it or set spec.storage.type to \
                    gp3"
                )
            }
            Self::IopsMissing(kind) => format!("spec.storage.iops is required for the type {kind}"),
            Self::Shrink { size, made } => {
                format!(
                    "spec.storage.size {size} is less than the volume's {made}: EBS volumes only grow; \
                    set the size back"
                )
            }
            Self::OlderEngine { version, started } => format!(
                "spec.engine.version cannot go back to {version}: QuestDB {started} was started on the data, \
                 and an older version does not read what a newer one has changed; set {started} or a later \
                 version, or create a new Database from a snapshot that is older than that start"
            ),
            Self::RestoredVersion { version, wrote, same_major } => {
                let same = if *same_major { ", of the same major version" } else { "" };
                format!(
                    "spec.engine.version cannot be {version}: version {wrote} wrote the data that the database \
                     is restored from, and no engine has served it yet; set {wrote} or a later version{same}"
                )
            }
            Self::VolumeType(volume_type) => {
                format!("spec.storage.type is {volume_type}: use one of {}", VOLUME_TYPES.join(", "))
            }
            Self::FileSystem(made) => {
                format!(
                    "spec.storage.fileSystem cannot change: the volume was formatted with {made}; set \
                    the file system back"
                )
            }
            Self::NoInstanceTypes => "spec.instanceTypes is empty: name at least one EC2 instance type, for \
                example r7i.large"
                .to_owned(),
            Self::ZoneExcluded(zone) => format!(
                "spec.zones does not hold {zone}, where the volume is: an EBS volume cannot leave its zone; \
                    add {zone} to the list again"
            ),
            Self::AccessSelector => "spec.access.from has a selector that Kubernetes does not accept: the \
                operators are In and NotIn with values, Exists and DoesNotExist without; keys and values are \
                those of labels"
                .to_owned(),
            Self::AccessCidr(cidr) => format!(
                "spec.access.cidrs holds {cidr:?}: write an address with the length of its prefix, such as \
                 10.20.0.0/16"
            ),
            Self::Quantity { field, name, quantity } => {
                format!(
                    "spec.resources.{field}.{name} is {quantity:?}: it must be a quantity in quotes, for \
                    example \"2\" or \"4Gi\""
                )
            }
        }
    }
}

impl ClassRefusal {
    /// What is not permitted, what is, and the way out.
    pub fn message(&self) -> String {
        match self {
            Self::NoClass { class } => format!(
                "NodeClass {class} does not exist: create it, or name another one in spec.nodeClassName"
            ),
            Self::CustomDisabled { class } => format!(
                "NodeClass {class} does not permit the engine custom: use another engine or NodeClass. A \
                 database that runs goes on running"
            ),
            Self::Namespace { class, namespace } => format!(
                "NodeClass {class} does not admit Databases of namespace {namespace} (its \
                 spec.namespaceSelector): name another NodeClass. A database that runs goes on running"
            ),
            Self::Databases { class, most, orphaned } => format!(
                "NodeClass {class} permits {most} Databases in a namespace, and as many were created before \
                 this one{}: delete one of them, or name another NodeClass",
                match orphaned {
                    0 => String::new(),
                    orphaned => format!(
                        ", of which {orphaned} left orphaned Nodes or Volumes behind (the platform team can \
                         delete these)"
                    ),
                }
            ),
            Self::TotalStorage { class, most, databases, retained, retained_volumes, orphaned, more } => {
                let orphaned = match orphaned {
                    0 => String::new(),
                    orphaned => format!(", {orphaned}Gi of orphaned Volumes"),
                };
                format!(
                    "NodeClass {class} permits {most} of storage in a namespace (its \
                     spec.limits.totalStorage). This namespace has {databases}Gi of Databases{orphaned} and \
                     {retained}Gi of {retained_volumes} retained volumes, and spec.storage requests {more}Gi \
                     more: request less, restore a retained volume (spec.storage.adoptRetained; `freehold \
                     retained` lists them), or ask the platform team to delete retained or orphaned volumes. \
                     A database that runs goes on running"
                )
            }
            Self::NotCounted { class } => format!(
                "NodeClass {class} limits the storage of a namespace, and the EBS volumes are not counted \
                 yet: {FIRST_SYNC}"
            ),
            Self::NotListed { class, what, wanted, allowed } => format!(
                "NodeClass {class} does not permit the {what} {wanted}: use {}. A database that runs goes on \
                 running",
                allowed.join(" or ")
            ),
            Self::Above { class, field, wanted, most } => format!(
                "NodeClass {class} permits {field} up to {most} (its spec.limits), and spec.storage requests \
                 {wanted}: set it to {most} or less. A database that runs goes on running"
            ),
        }
    }
}

impl SecretFault {
    /// What is wrong, and the way out.
    pub fn message(&self) -> String {
        match self {
            Self::Forbidden { answer } => format!(
                "the operator is not allowed to read it ({answer}); grant \
                the permission again"
            ),
            Self::Content(error) => format!("{error}; restore its former content"),
            Self::Deleted => "it was deleted; restore it, with its labels".to_owned(),
        }
    }
}

impl AdoptionRefusal {
    /// Why the volume cannot be adopted, and the way out.
    pub fn message(&self) -> String {
        match self {
            Self::Record(why) => why.clone(),
            Self::HeldByOther { database, record } => {
                format!("Database {database} adopts the volume that PersistentVolume {record} records")
            }
            Self::SecretForbidden { secret, namespace, answer } => format!(
                "the operator is not allowed to read Secret {secret} in namespace {namespace} ({answer}); \
                    grant the permission again"
            ),
            Self::SecretMissing { secret, namespace, database_uid } => format!(
                "Secret {secret}, which holds the retained credentials of the data, is not in namespace \
                 {namespace}: restore it, with username, password and the labels {RETAINED_LABEL}=true and \
                 {DATABASE_UID_LABEL}={database_uid}; or, if it is lost, set spec.storage.newCredentials: true"
            ),
            Self::SecretUnlabelled { secret, namespace } => format!(
                "Secret {secret} in namespace {namespace} lacks the labels of the credentials that were \
                    retained with this volume: restore the labels"
            ),
            Self::SecretContent { secret, fault } => {
                format!("Secret {secret} cannot be used: {fault}; restore its former content")
            }
        }
    }
}

impl ReplaceCause {
    /// The cause, for the conditions, the events and the status.
    pub fn message(&self) -> String {
        match self {
            Self::Lost { message, .. } => or_unknown(message.as_deref()),
            Self::KubernetesNodeDeleted { message }
            | Self::EventScheduled { message }
            | Self::Cordoned { message } => message.clone(),
            Self::NodeDeleted { node } => format!("Node {node} is being deleted"),
            Self::TypeNotWanted { instance_type } => format!(
                "its type {instance_type} is no longer in \
                spec.instanceTypes"
            ),
            Self::Misplaced { machine, disk } => {
                format!("the machine is in {machine}, and the disk in {disk}")
            }
        }
    }
}

impl NodeDeletion {
    /// The cause, for the event.
    pub fn message(&self) -> String {
        match self {
            Self::DatabaseDeleted => "the Database is being deleted".to_owned(),
            Self::DatabaseReleased => "its Database is being deleted and releases its database".to_owned(),
            Self::DatabasePaused => "the Database is paused".to_owned(),
            Self::PodRemains => "its pod does not end, and the volume is to be replaced".to_owned(),
            Self::MovedTo(node) => format!("the database has moved to Node {node}"),
            Self::NotNeeded(node) => format!(
                "no replacement is needed any more: the database stays on Node \
                {node}"
            ),
            Self::Unfit(cause) => cause.message(),
        }
    }
}

impl NoRoom {
    /// What is lacking, and the way out.
    pub fn message(&self) -> String {
        let Self { resource, allocatable } = self;
        format!(
            "its Kubernetes node has {allocatable} of {resource} for all pods, and spec.resources requests more; \
             request less, or name larger types in spec.instanceTypes"
        )
    }
}

impl RestartCause {
    /// The cause, for the conditions, the event and the history.
    pub fn message(&self) -> String {
        match self {
            Self::Image { from, to } => format!("the image changes from {from} to {to}"),
            Self::NoRoom => "no machine has room for the memory that the pod requests by default".to_owned(),
            Self::NotStarting => "the engine keeps ending; a new pod mounts its volume again".to_owned(),
            Self::VolumeModified => {
                "the engine ended before its volume was modified; a new pod starts it at once".to_owned()
            }
            Self::Resources => "spec.resources changed".to_owned(),
            Self::Settings => "the engine's settings changed".to_owned(),
            Self::Template => "the pod template changed".to_owned(),
            Self::Password => {
                "the password is rotated (spec.access.passwordGeneration), and the engine reads it at its start"
                    .to_owned()
            }
            Self::WentBack => {
                "the pod did not start as the spec requests, and goes back to what it ran as before"
                    .to_owned()
            }
            Self::AlteredFiles => {
                "the engine was started while its ConfigMap was changed outside Freehold".to_owned()
            }
            Self::AlteredTemplate => {
                "the pod was started from a template that was changed outside Freehold".to_owned()
            }
            Self::Moved { pod, from, to, cause } => {
                let cause = cause.as_deref().unwrap_or("the database has another machine");
                format!("pod {pod} moves from Kubernetes node {from} to {to}: {cause}")
            }
        }
    }
}

impl Alteration {
    /// What was changed, what follows, and the way out.
    pub fn message(&self) -> String {
        match self {
            Self::Repeated { object, until } => format!(
                "{object} was changed outside Freehold again after it was restored; it is restored again at \
                 {until}. The metadata.managedFields of {object} name the client that changes it: stop that \
                 client, or have it leave {object} out",
                object = object.describe()
            ),
            Self::SpecRefused { object } => format!(
                "{} was changed outside Freehold; it is restored once the spec of this Database is valid and \
                 permitted",
                object.describe()
            ),
            Self::Pod { pod, cause } => {
                format!("pod {pod} does not run what Freehold applied, and is replaced: {}", cause.message())
            }
        }
    }
}

impl Move {
    /// From where to where and why, for the event and the history.
    pub fn message(&self) -> String {
        format!("from Node {} to Node {}: {}", self.from, self.to, self.cause)
    }
}

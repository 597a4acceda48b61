//! Why the plan of a Database refuses a spec or a Secret, replaces a machine or a pod, or deletes a Node, as
//! data. Pure.

use jiff::Timestamp;

use super::build::CredentialsError;
pub use super::invalid_spec::{InvalidSpec, TlsRefusal, WalArchiveRefusal};
use super::object_name::ObjectName;
use crate::api::{Reason, Size};

/// The longest name: 52 characters are left of 63 for what is derived from it.
pub const LONGEST_NAME: usize = 40;

/// The reason of a Node's condition Lost: repeated in the Database's conditions, and never compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostReason(pub Reason);

/// What a NodeClass does not permit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum ClassRefusal {
    /// The class does not exist.
    NoClass {
        /// Its name.
        class: String,
    },
    /// No image of a tenant's own.
    CustomDisabled {
        /// The class.
        class: String,
    },
    /// The class does not admit the namespace.
    Namespace {
        /// The class.
        class: String,
        /// The namespace.
        namespace: String,
    },
    /// Enough Databases of the namespace were created before this one.
    Databases {
        /// The class.
        class: String,
        /// How many may be.
        most: i32,
        /// How many of those are deleted, and have an orphaned Node or Volume.
        orphaned: usize,
    },
    /// The storage of the namespace would be more than the most. Sizes in GiB.
    TotalStorage {
        /// The class.
        class: String,
        /// The most.
        most: Size,
        /// What the Volumes of Databases have, and what older Databases request besides.
        databases: i64,
        /// What retained volumes have.
        retained: i64,
        /// How many these are.
        retained_volumes: usize,
        /// What orphaned Volumes have.
        orphaned: i64,
        /// What the spec requests besides.
        more: i64,
    },
    /// The storage of the namespace is not known before the first full EC2 inventory sync.
    NotCounted {
        /// The class.
        class: String,
    },
    /// Another engine, image or volume type than those that are listed.
    NotListed {
        /// The class.
        class: String,
        /// `engine`, `image` or `volume type`.
        what: &'static str,
        /// What the spec requests.
        wanted: String,
        /// What is listed: images are patterns.
        allowed: Vec<String>,
    },
    /// More of the volume than the most.
    Above {
        /// The class.
        class: String,
        /// The field of the class' limits.
        field: &'static str,
        /// What the spec requests.
        wanted: String,
        /// The most.
        most: String,
    },
}

impl ClassRefusal {
    /// Why, for the conditions.
    pub fn reason(&self) -> Reason {
        match self {
            Self::NoClass { .. } => Reason::NodeClassNotFound,
            Self::CustomDisabled { .. }
            | Self::Namespace { .. }
            | Self::Databases { .. }
            | Self::TotalStorage { .. }
            | Self::NotListed { .. }
            | Self::Above { .. } => Reason::NotPermitted,
            Self::NotCounted { .. } => Reason::AwaitingInventory,
        }
    }

    /// Whether it stays so until a person does something.
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::NotCounted { .. })
    }
}

/// Why a Secret of credentials cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretFault {
    /// The API server does not let the operator read it.
    Forbidden {
        /// What the API server answered.
        answer: String,
    },
    /// Its content is damaged.
    Content(CredentialsError),
    /// It is gone, and was there before.
    Deleted,
}

/// Why the retained volume that a spec names cannot be adopted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum AdoptionRefusal {
    /// The retention record does not exist, or does not fit this Database.
    Record(String),
    /// Another Database adopts it.
    HeldByOther {
        /// The other Database.
        database: String,
        /// The PersistentVolume that is the retention record.
        record: String,
    },
    /// The Secret with the credentials of the data cannot be read.
    SecretForbidden {
        /// The Secret.
        secret: String,
        /// Its namespace.
        namespace: String,
        /// What the API server answered.
        answer: String,
    },
    /// The Secret with the credentials of the data does not exist.
    SecretMissing {
        /// The Secret.
        secret: String,
        /// Its namespace.
        namespace: String,
        /// The UID of the Database that had the data.
        database_uid: String,
    },
    /// The Secret with the credentials of the data has other labels.
    SecretUnlabelled {
        /// The Secret.
        secret: String,
        /// Its namespace.
        namespace: String,
    },
    /// The Secret with the credentials of the data is damaged.
    SecretContent {
        /// The Secret.
        secret: String,
        /// What is wrong.
        fault: CredentialsError,
    },
}

/// Why a machine is replaced, or cannot serve.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum ReplaceCause {
    /// The machine was declared lost.
    Lost {
        /// The reason of the Node's condition Lost, for display.
        reason: LostReason,
        /// The message of that condition.
        message: Option<String>,
    },
    /// The machine's Kubernetes node is being deleted, which cannot be undone.
    KubernetesNodeDeleted {
        /// What the Node controller says of it.
        message: String,
    },
    /// EC2 has scheduled an event that interrupts the machine.
    EventScheduled {
        /// What the Node controller says of it.
        message: String,
    },
    /// The machine's Kubernetes node was cordoned outside Freehold.
    Cordoned {
        /// What the Node controller says of it.
        message: String,
    },
    /// The Node is being deleted.
    NodeDeleted {
        /// The Node.
        node: String,
    },
    /// The machine's type has left `spec.instanceTypes`.
    TypeNotWanted {
        /// The machine's type.
        instance_type: String,
    },
    /// The machine is in another zone than the disk.
    Misplaced {
        /// The machine's zone.
        machine: String,
        /// The zone of the disk.
        disk: String,
    },
}

impl ReplaceCause {
    /// Whether the replacement could also be done later, for example in a maintenance window.
    pub fn is_voluntary(&self) -> bool {
        match self {
            Self::TypeNotWanted { .. } | Self::EventScheduled { .. } | Self::Cordoned { .. } => true,
            Self::Lost { .. }
            | Self::KubernetesNodeDeleted { .. }
            | Self::NodeDeleted { .. }
            | Self::Misplaced { .. } => false,
        }
    }

    /// Whether it comes from outside, so that it may come again and again: neither an edit of the spec nor
    /// the deletion of a Node has requested it.
    pub fn may_recur(&self) -> bool {
        match self {
            Self::Lost { .. }
            | Self::KubernetesNodeDeleted { .. }
            | Self::EventScheduled { .. }
            | Self::Cordoned { .. } => true,
            Self::NodeDeleted { .. } | Self::TypeNotWanted { .. } | Self::Misplaced { .. } => false,
        }
    }

    /// The reason of the Node's condition Lost, for display, when that is the cause.
    pub fn lost_reason(&self) -> Option<Reason> {
        match self {
            Self::Lost { reason: LostReason(reason), .. } => Some(*reason),
            Self::KubernetesNodeDeleted { .. }
            | Self::EventScheduled { .. }
            | Self::Cordoned { .. }
            | Self::NodeDeleted { .. }
            | Self::TypeNotWanted { .. }
            | Self::Misplaced { .. } => None,
        }
    }
}

/// Why a Node is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum NodeDeletion {
    /// Its Database is being deleted.
    DatabaseDeleted,
    /// Its Database is being deleted and releases its database.
    DatabaseReleased,
    /// Its Database is paused.
    DatabasePaused,
    /// Its pod does not end, and the volume is to be replaced.
    PodRemains,
    /// The database has moved to this other Node.
    MovedTo(String),
    /// The database stays on this other Node.
    NotNeeded(String),
    /// The machine cannot serve.
    Unfit(ReplaceCause),
}

/// More than a machine has for all pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoRoom {
    /// The resource.
    pub resource: String,
    /// What the Kubernetes node has of it.
    pub allocatable: String,
}

/// Why a pod is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum RestartCause {
    /// The image changes.
    Image {
        /// The image of the pod.
        from: String,
        /// The image of the template.
        to: String,
    },
    /// `spec.resources` changed.
    Resources,
    /// The engine's settings changed.
    Settings,
    /// The template changed, and pod and template cannot be compared.
    Template,
    /// The administrator's password is rotated, and the engine reads it at its start only.
    Password,
    /// An adopted database did not start as its spec requests, and goes back to what it ran as before.
    WentBack,
    /// The engine keeps ending: a new pod mounts its volume again.
    NotStarting,
    /// The engine ended before its volume was modified, and Kubernetes has not started it again since.
    VolumeModified,
    /// The pod finds no machine with room for the memory that it requests by default.
    NoRoom,
    /// The pod was started from a template that was changed outside Freehold.
    AlteredTemplate,
    /// The engine was started while the ConfigMap was changed outside Freehold.
    AlteredFiles,
    /// The database has another machine.
    Moved {
        /// The pod.
        pod: String,
        /// The Kubernetes node that it is on.
        from: String,
        /// The Kubernetes node that the database runs on.
        to: String,
        /// The recorded cause of the replacement, if there is a record.
        cause: Option<String>,
    },
}

impl RestartCause {
    /// Whether the restart could also be done later. A move is decided before: by the cause of its
    /// replacement.
    pub fn is_voluntary(&self) -> bool {
        match self {
            Self::Image { .. } | Self::Resources | Self::Settings | Self::Template | Self::Password => true,
            // What runs is not what was declared, or does not run.
            Self::WentBack
            | Self::NotStarting
            | Self::VolumeModified
            | Self::NoRoom
            | Self::AlteredTemplate
            | Self::AlteredFiles
            | Self::Moved { .. } => false,
        }
    }
}

/// Something of a Database that was changed outside Freehold and is not as it should be, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum Alteration {
    /// It was restored before, and was changed again: it is restored at this time.
    Repeated {
        /// The object.
        object: ObjectName,
        /// When it is restored.
        until: Timestamp,
    },
    /// The spec cannot be carried out as it is, or is not permitted: there is nothing to restore it to.
    SpecRefused {
        /// The object.
        object: ObjectName,
    },
    /// The pod was started from what was altered.
    Pod {
        /// The pod.
        pod: String,
        /// From what.
        cause: RestartCause,
    },
}

/// A move of the database from one Node to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The Node that it leaves.
    pub from: String,
    /// The Node that it moves to.
    pub to: String,
    /// The recorded cause of the replacement.
    pub cause: String,
}

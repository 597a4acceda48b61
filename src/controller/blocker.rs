//! Why something destructive must not be done now, as data: `safety` answers with it. Pure.

use jiff::Timestamp;

use crate::api::node::ReplacementCause;
use crate::api::{InstanceId, Reason, SnapshotId, VolumeId};
use crate::cloud::VolumeState;

/// Why something destructive must not be done now.
#[derive(Clone, Debug, PartialEq, Eq, strum::EnumCount, strum::IntoStaticStr)]
pub enum Blocker {
    /// These pods still run on the machine.
    PodsRemain(Vec<String>),
    /// The EBS CSI driver has not detached what these VolumeAttachments name.
    NotDetached(Vec<String>),
    /// EC2 shows these EBS volumes attached.
    StillAttached(Vec<VolumeId>),
    /// A database runs on the machine, and its move is awaited.
    DatabaseRuns {
        /// The Kubernetes node.
        core_node: String,
        /// Until when; `None` as long as it takes.
        until: Option<Timestamp>,
    },
    /// The Nodes of some watched namespace have not been listed since the operator started.
    FleetPartial,
    /// As many databases as may be are being repaired.
    RepairsAtLimit {
        /// How many are.
        underway: usize,
        /// How many may be.
        limit: usize,
    },
    /// As many databases of the namespace as may be are being repaired.
    NamespaceRepairsAtLimit {
        /// How many are.
        underway: usize,
        /// How many may be.
        limit: usize,
    },
    /// As many machines that serve as may be are being replaced for what was done to them outside Freehold.
    ReplacementsAtLimit {
        /// Why this one must be.
        cause: ReplacementCause,
        /// Its own Kubernetes node.
        core_node: String,
        /// How many others are.
        underway: usize,
        /// How many may be.
        limit: usize,
    },
    /// The last full EC2 inventory sync is too long ago for a repair.
    InventoryOld,
    /// No kubelet of any database's machine reports to this API server.
    NoKubeletReports,
    /// EC2 refuses to list the zone of the machine.
    ZoneRefused,
    /// So many machines of the zone look lost that the zone itself may be down.
    ZoneDown {
        /// The machines of the zone that have joined.
        joined: usize,
        /// Those of them that look lost.
        lost: usize,
    },
    /// The zone looked down, and its machines may come back until then.
    ZoneRecovering(Timestamp),
    /// A second instance of a Node is left alone.
    Duplicate(InstanceId, DuplicateKept),
    /// The EBS volume does not carry a tag of its Volume.
    TagMissing {
        /// The EBS volume.
        id: VolumeId,
        /// The tag.
        key: String,
        /// Its value.
        value: String,
    },
    /// The snapshot does not carry a tag of its Backup.
    SnapshotTagMissing {
        /// The snapshot.
        id: SnapshotId,
        /// The tag.
        key: String,
        /// Its value.
        value: String,
    },
    /// The EBS volume is not available.
    NotAvailable(VolumeId, VolumeState),
    /// The EBS volume was adopted and is released.
    Released(VolumeId),
    /// The pod of this name is stopping.
    PodStopping(String),
    /// The pod of this name still runs.
    PodRuns(String),
    /// The StatefulSet of this name is not seen to be stopped.
    StatefulSetRuns(String),
    /// Nothing moves from the machine of a lost Node that is not fenced.
    NotFenced {
        /// The Node.
        node: String,
        /// The reason that the Node reports.
        reason: Reason,
        /// What the Node reports.
        message: Option<String>,
    },
    /// The controller of the StatefulSet of this name has not seen its change.
    ChangeNotSeen(String),
}

/// Why a second instance of a Node is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DuplicateKept {
    /// Its client token is not one of this Node's.
    ForeignToken,
    /// A database may run on it.
    Database,
    /// A data volume is attached to it.
    DataVolume,
}

impl Blocker {
    /// For the conditions.
    pub fn reason(&self) -> Reason {
        match self {
            Self::PodsRemain(_) => Reason::AwaitingDrain,
            Self::NotDetached(_) | Self::StillAttached(_) | Self::NotAvailable(..) => Reason::AwaitingDetach,
            Self::DatabaseRuns { .. } => Reason::AwaitingMove,
            Self::FleetPartial
            | Self::RepairsAtLimit { .. }
            | Self::NamespaceRepairsAtLimit { .. }
            | Self::ReplacementsAtLimit { .. }
            | Self::InventoryOld
            | Self::NoKubeletReports
            | Self::ZoneRefused
            | Self::ZoneDown { .. }
            | Self::ZoneRecovering(_) => Reason::RepairPostponed,
            Self::Duplicate(..) => Reason::DuplicateInstance,
            Self::TagMissing { .. } | Self::Released(_) => Reason::AwaitingVolumeDeletion,
            Self::SnapshotTagMissing { .. } => Reason::Deleting,
            Self::PodStopping(_) | Self::PodRuns(_) | Self::StatefulSetRuns(_) => Reason::AwaitingStop,
            Self::NotFenced { reason, .. } => *reason,
            Self::ChangeNotSeen(_) => Reason::RestartPending,
        }
    }
}

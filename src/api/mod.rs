//! What people write and read: the custom resources of `freehold.dev/v1alpha1`. Types only: no client, no cloud, no clock.

pub mod condition;
pub mod database;
mod database_status;
pub mod event;
pub mod ids;
pub mod names;
pub mod node;
pub mod node_class;
pub mod size;
pub mod volume;

pub use condition::{ConditionType, Reason};
pub use database::{Database, DatabaseSpec, DatabaseStatus, DeletionPolicy};
pub use event::EventReason;
pub use ids::{ClientToken, InstanceId, SnapshotId, VolumeId};
pub use node::{Node, NodeSpec, NodeStatus};
pub use node_class::{NodeClass, NodeClassSpec};
pub use size::Size;
pub use volume::{Volume, VolumeSpec, VolumeStatus};

/// The API group of every kind of Freehold's.
pub const GROUP: &str = "freehold.dev";

/// Put on a core `v1/Node` by its kubelet's registration; what the operator's watch of core Nodes selects.
pub const DEDICATED_LABEL: &str = "freehold.dev/dedicated";

/// The taint key (effect `NoExecute`) that keeps every other pod off a dedicated machine.
pub const DEDICATED_TAINT: &str = "freehold.dev/dedicated";

/// The taint (effect `NoExecute`) that tells Kubernetes that a machine is stopped for certain (Kubernetes docs, "Non-graceful node
/// shutdown handling").
pub const OUT_OF_SERVICE_TAINT: &str = "node.kubernetes.io/out-of-service";

/// Names the one core Node that a database's pod may run on; the value is the Database's UID. A kubelet cannot set a label with
/// this prefix for itself (`NodeRestriction` admission).
pub const DATABASE_NODE_LABEL: &str = "freehold.dev.node-restriction.kubernetes.io/database";

/// The finalizer that Freehold's controllers put on their own objects and on the core Nodes of their instances.
pub const FINALIZER: &str = "freehold.dev/finalizer";

/// The name of the EBS CSI driver, which attaches, mounts and grows what Freehold creates.
pub const EBS_CSI_DRIVER: &str = "ebs.csi.aws.com";

//! How far a Database that is being deleted has come, for what must be read of it. Pure.

use super::child::Child;
use crate::api::{Database, Node, Volume};

/// How far a Database has come on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It stays, or what becomes of it is decided by more than its deletion.
    NotLeaving,
    /// Nodes are left: the engine is stopped, and its machine ended. No Secret is needed.
    Machine,
    /// Its Nodes are gone, and so is the machine on which a pod could run; the Volume is left.
    Disk,
    /// Neither is left: with the credentials and the last objects it ends.
    Last,
}

/// Whether the Database is deleted, and nothing keeps or releases what it has.
pub(super) fn is_plain(database: &Database) -> bool {
    let spec = &database.spec;
    let releases = spec.release || database.status.as_ref().is_some_and(|status| status.release.is_some());
    let is_deleted = database.metadata.deletion_timestamp.is_some();
    is_deleted && spec.adopt.is_none() && !releases && !spec.deletion_protection
}

/// How far it has come.
pub(super) fn stage(database: &Database, nodes: &[Node], volume: &Child<Volume>) -> Stage {
    let releases =
        nodes.iter().any(|node| node.spec.release) || volume.ours().is_some_and(|volume| volume.spec.release);
    match (nodes.is_empty(), volume) {
        _ if releases || !is_plain(database) => Stage::NotLeaving,
        (false, _) => Stage::Machine,
        (true, Child::Ours(_)) => Stage::Disk,
        (true, Child::Absent | Child::Foreign) => Stage::Last,
    }
}

impl Stage {
    /// Whether what it decides rests on Secrets.
    pub(super) fn needs_secrets(self) -> bool {
        matches!(self, Self::NotLeaving | Self::Last)
    }

    /// Whether what it decides rests on the absence of the pod: where there is no machine, there is none.
    pub(super) fn needs_pod(self) -> bool {
        matches!(self, Self::NotLeaving | Self::Machine)
    }

    /// Whether it ends, or what it does rests on what the Kubernetes nodes say.
    pub(super) fn needs_core_nodes(self) -> bool {
        matches!(self, Self::NotLeaving | Self::Last)
    }
}

//! The kinds of resource that the inventory keeps in sync. A further kind is a file here, and its lines in this one.

pub(super) mod instance;
mod snapshot;
mod volume;

use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::Instant;

use self::instance::Instances;
use self::volume::Volumes;
use super::Inventory;
use super::store::{AnyStore, Store};
use crate::cloud::identity::Kind;
use crate::cloud::{CloudError, Snapshot};
use crate::settings::Timing;

/// What is known of each kind.
#[derive(Default)]
pub(super) struct Known {
    pub instances: Instances,
    pub volumes: Volumes,
    pub snapshots: Store<Snapshot>,
}

/// How one kind is kept in sync.
pub(super) struct Synced {
    /// The pause between two syncs while nothing is awaited; `None`: then there are none.
    pub idle: fn(&Timing) -> Option<Duration>,
    /// Where its resources are kept.
    pub store: fn(&mut Known) -> &mut dyn AnyStore,
    /// Forgets what was known only for an interest that may have ended.
    pub interest_changed: fn(&mut Known),
    /// One full sync, and the look-ups that belong to it. The time is when it began.
    pub sync: for<'a> fn(&'a Inventory, Instant) -> BoxFuture<'a, Result<(), CloudError>>,
}

/// The table of kinds.
pub(super) fn of(kind: Kind) -> &'static Synced {
    match kind {
        Kind::Node => &instance::SYNCED,
        Kind::Volume => &volume::SYNCED,
        Kind::Snapshot => &snapshot::SYNCED,
    }
}

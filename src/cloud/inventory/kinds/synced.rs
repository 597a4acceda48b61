//! How one kind of resource is kept in sync: a row of the table of kinds.

use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::Instant;

use crate::cloud::CloudError;
use crate::cloud::inventory::Inventory;
use crate::settings::Timing;

/// How one kind is kept in sync.
pub(in crate::cloud::inventory) struct Synced {
    /// The pause between two syncs while nothing is awaited; `None`: then there are none.
    pub idle: fn(&Timing) -> Option<Duration>,
    /// One full sync, and the look-ups that belong to it. The time is when it began.
    pub sync: for<'a> fn(&'a Inventory, Instant) -> BoxFuture<'a, Result<(), CloudError>>,
}

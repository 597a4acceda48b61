//! The kinds of resource that the inventory keeps in sync. A further kind is a file here, and its lines in
//! this one.

mod backup;
pub(super) mod instance;
mod snapshot;
mod synced;
mod volume;

use self::synced::Synced;
use crate::cloud::identity::Kind;

/// The table of kinds.
pub(super) fn of(kind: Kind) -> &'static Synced {
    match kind {
        Kind::Node => &instance::SYNCED,
        Kind::Volume => &volume::SYNCED,
        Kind::Snapshot => &snapshot::SYNCED,
        Kind::Backup => &backup::SYNCED,
    }
}

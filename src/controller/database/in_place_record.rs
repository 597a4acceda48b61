//! What the status of a Database says of its last restore in place. Pure.

use crate::api::Database;
use crate::api::database::RestoredInPlace;

/// The last restore in place.
pub fn recorded(database: &Database) -> Option<&RestoredInPlace> {
    database.status.as_ref()?.restored_in_place.as_deref()
}

/// The restore in place that was begun and has not ended.
pub fn underway(database: &Database) -> Option<&RestoredInPlace> {
    recorded(database).filter(|record| record.is_underway())
}

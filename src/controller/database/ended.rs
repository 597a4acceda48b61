//! The events of what a Database has come to the end of: a restore in place, an upgrade. Pure.

use super::messages;
use crate::api::{DatabaseStatus, EventReason};
use crate::cluster::events::Happened;

/// The engine serves with the data of a backup, which it did not before.
pub(super) fn restored_in_place(old: &DatabaseStatus, new: &DatabaseStatus) -> Option<Happened> {
    let record = new.restored_in_place.as_ref().filter(|it| !it.is_underway() && it.went_back.is_none())?;
    let was_underway = old.restored_in_place.as_ref().is_some_and(|it| it.is_underway());
    let note = messages::events::restored_in_place(record);
    was_underway.then(|| Happened::normal(EventReason::RestoredInPlace, note))
}

/// The changed engine serves, which it did not before.
pub(super) fn upgraded(old: &DatabaseStatus, new: &DatabaseStatus) -> Option<Happened> {
    let record = new.upgrade.as_ref().filter(|it| !it.is_underway() && it.went_back.is_none())?;
    let was_underway = old.upgrade.as_ref().is_some_and(|it| it.is_underway());
    was_underway.then(|| Happened::normal(EventReason::Upgraded, messages::upgrade::done(record)))
}

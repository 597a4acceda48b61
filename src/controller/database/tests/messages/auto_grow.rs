//! The sentences of a volume that grows by itself.

use super::*;
use crate::api::database::AutoGrowState;

/// What the event says.
pub(super) fn sentences() -> impl Iterator<Item = (&'static str, String)> {
    let limited = [AutoGrowState::AtMaximum, AutoGrowState::NotPermitted];
    let note = |state| events::storage_limit(state).map(|note| ("events::storage_limit", t(note)));
    limited.into_iter().filter_map(note)
}

//! The sentences of a volume that grows by itself.

use super::*;
use crate::api::database::{AutoGrowState, AutoGrowStatus, Unmeasured};

/// What the events say.
pub(super) fn sentences() -> Vec<(&'static str, String)> {
    let unmeasured = |why| (AutoGrowState::Unmeasured, Some(why));
    let states = [
        (AutoGrowState::AtMaximum, None),
        (AutoGrowState::NotPermitted, None),
        unmeasured(Unmeasured::Unreachable),
        unmeasured(Unmeasured::NoAccount),
        unmeasured(Unmeasured::Forbidden),
    ];
    let note = |(state, unmeasured)| {
        let shown = AutoGrowStatus { state, unmeasured, size: None, grown_at: None };
        ("events::not_growing", t(events::not_growing(&shown).unwrap().1))
    };
    states.into_iter().map(note).collect()
}

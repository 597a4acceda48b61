//! How the live ConfigMap and StatefulSet of a Database compare with what Freehold applied last. Pure.

use crate::api::database::Applied;
use crate::controller::database::build;
use crate::controller::database::observe::Observed;
use crate::controller::database::observe::child::Child;

/// How a live object compares with what was applied last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::controller::database) enum Finding {
    /// It is the same, or there is none of ours.
    Same,
    /// What was applied is not known: the operator ended while it wrote, or the status is older than this
    /// record.
    Unknown,
    /// It differs.
    Altered,
}

/// How both compare, for what asks more than once: a fingerprint is made of the whole object.
#[derive(Clone, Copy, Debug)]
pub(in crate::controller::database) struct Findings {
    pub(super) config_map: Finding,
    pub(super) stateful_set: Finding,
}

impl Findings {
    pub(in crate::controller::database) fn of(observed: &Observed) -> Self {
        Self { config_map: config_map(observed), stateful_set: stateful_set(observed) }
    }
}

/// How the ConfigMap compares. Freehold makes none immutable, so that one is altered whatever is known.
pub(super) fn config_map(observed: &Observed) -> Finding {
    let Child::Ours(live) = &observed.config_map else { return Finding::Same };
    if live.immutable == Some(true) {
        return Finding::Altered;
    }
    let recorded = applied_before(observed).and_then(|applied| applied.config_map.as_ref());
    compared(recorded, |recorded| *recorded == build::of_config_map(live))
}

/// How the StatefulSet compares. The same generation shows that no client has changed its spec, whatever a
/// newer API server adds to what it shows.
pub(super) fn stateful_set(observed: &Observed) -> Finding {
    let Child::Ours(live) = &observed.stateful_set else { return Finding::Same };
    let recorded = applied_before(observed).and_then(|applied| applied.stateful_set.as_ref());
    compared(recorded, |recorded| {
        let is_untouched = Some(&recorded.uid) == live.metadata.uid.as_ref()
            && Some(recorded.generation) == live.metadata.generation;
        is_untouched || recorded.spec == build::of_stateful_set(live)
    })
}

fn compared<T>(recorded: Option<&T>, is_same: impl Fn(&T) -> bool) -> Finding {
    match recorded {
        None => Finding::Unknown,
        Some(recorded) if is_same(recorded) => Finding::Same,
        Some(_) => Finding::Altered,
    }
}

pub(super) fn applied_before(observed: &Observed) -> Option<&Applied> {
    observed.database.status.as_ref()?.applied.as_ref()
}

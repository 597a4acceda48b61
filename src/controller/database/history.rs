//! What interrupted a database or was done to it, with its cause: reported as events, and the last ten kept
//! in the status. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::messages::events;
use super::observe::Observed;
use super::pod;
use crate::api::DatabaseStatus;
use crate::api::database::{EngineRun, HistoryEntry, Occurrence};
use crate::time::whole_second;

/// How many entries are kept.
const KEPT: usize = 10;

/// What is seen to have happened since the last pass.
pub(super) fn occurred(observed: &Observed) -> Option<(Occurrence, String)> {
    let status = observed.database.status.as_ref()?;
    let before = status.run.as_ref()?;
    let is_paused = status
        .history
        .iter()
        .rfind(|entry| !is_alteration(entry.what))
        .is_some_and(|entry| entry.what == Occurrence::Paused);
    if observed.database.metadata.deletion_timestamp.is_some() {
        return None;
    }
    match (observed.database.spec.running, is_paused) {
        (false, false) => Some((Occurrence::Paused, events::PAUSED.to_owned())),
        (true, true) => Some((Occurrence::Resumed, events::RESUMED.to_owned())),
        (false, true) => None,
        (true, false) => interrupted(observed, before, &status.history),
    }
}

/// Whether it is a change from outside, which interrupts nothing.
fn is_alteration(what: Occurrence) -> bool {
    matches!(what, Occurrence::ConfigMapAltered | Occurrence::StatefulSetAltered)
}

/// Whether this very entry was written since the engine's current run began: what it announces is being done.
pub(super) fn is_announced(status: &DatabaseStatus, what: Occurrence, cause: &str) -> bool {
    let since = status.run.as_ref().map(|run| run.since.0);
    status.history.last().is_some_and(|last| {
        last.what == what && last.cause == cause && since.is_some_and(|since| last.at.0 >= since)
    })
}

/// What ended the run that was known before, if nothing that was done explains it.
fn interrupted(
    observed: &Observed,
    before: &EngineRun,
    history: &[HistoryEntry],
) -> Option<(Occurrence, String)> {
    let run = pod::run(observed.pod.as_ref()?, observed.engine())?;
    if run.pod_uid == before.pod_uid {
        let ended = || pod::last_end(observed.pod.as_ref()?, observed.engine());
        let cause = || ended().map_or_else(|| events::END_UNKNOWN.to_owned(), |ended| ended.message());
        return (run.restarts > before.restarts).then(|| (Occurrence::EngineRestarted, cause()));
    }
    let explains =
        |what: Occurrence| matches!(what, Occurrence::Restarted | Occurrence::Moved | Occurrence::Paused);
    let is_explained = history.iter().any(|entry| explains(entry.what) && entry.at.0 >= before.since.0);
    (!is_explained).then(|| (Occurrence::PodReplaced, events::POD_DELETED.to_owned()))
}

/// The run to keep in the status: the one that is seen, else the last one.
pub(super) fn run(observed: &Observed, now: Timestamp) -> Option<EngineRun> {
    let before = observed.database.status.as_ref().and_then(|status| status.run.clone());
    let seen = observed.pod.as_ref().and_then(|pod| pod::run(pod, observed.engine()));
    let Some(seen) = seen else { return before };
    let same = |before: &EngineRun| (before.pod_uid == seen.pod_uid).then(|| before.since.clone());
    let since = before.as_ref().and_then(same).unwrap_or_else(|| Time(whole_second(now)));
    Some(EngineRun { pod_uid: seen.pod_uid, restarts: seen.restarts, since })
}

/// The history with what occurred; the same several times in a row is one entry.
pub(super) fn extended(
    history: &[HistoryEntry],
    occurred: Option<&(Occurrence, String)>,
    now: Timestamp,
) -> Vec<HistoryEntry> {
    let mut history = history.to_vec();
    if let Some((what, cause)) = occurred {
        let at = Time(whole_second(now));
        match history.last_mut().filter(|last| last.what == *what && last.cause == *cause) {
            Some(last) => (last.at, last.count) = (at, last.count + 1),
            None => history.push(HistoryEntry { at, what: *what, cause: cause.clone(), count: 1 }),
        }
    }
    history.split_off(history.len().saturating_sub(KEPT))
}

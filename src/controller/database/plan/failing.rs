//! When an engine that keeps ending gets a new pod. Pure.
//!
//! Kubernetes starts the container again in the same pod, on the same mount: a file system that has shut
//! itself down is never mounted again that way. The mount ends with the pod.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;

use super::drift;
use crate::api::database::Occurrence;
use crate::controller::database::cause::RestartCause;
use crate::controller::database::observe::Observed;
use crate::controller::database::pod::{EngineWait, Failure, engine_wait};
use crate::time::later;

/// How long a pod may fail: the kubelet has started its container some six times by then, with pauses that
/// grow to five minutes.
const FIRST: Duration = Duration::from_secs(600);

/// After how many doublings the time grows no more: some ten hours.
const MOST_DOUBLINGS: u32 = 6;

/// For how long a new pod that has changed nothing makes the next one wait longer.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(24);

/// Why this pod, of the template that is there, is replaced now; `None` where it runs, where a new one would
/// not help, or as long as it is not due. An adopted database has its own way back (`going_back.rs`).
pub(super) fn due(observed: &Observed, pod: &Pod, now: Timestamp) -> Option<RestartCause> {
    let wait = engine_wait(Some(pod), observed.engine());
    let Some(EngineWait::Failing { failure: Failure::CrashLoop { .. }, .. }) = wait else { return None };
    let since =
        pod.metadata.creation_timestamp.as_ref().filter(|_| observed.database.spec.adopt.is_none())?;
    let times = times(observed, now).min(MOST_DOUBLINGS);
    let is_due = now >= later(since.0, FIRST.saturating_mul(1 << times));
    (is_due && drift::template_settled(observed, now).is_ok()).then_some(RestartCause::NotStarting)
}

/// How often that was done of late.
fn times(observed: &Observed, now: Timestamp) -> u32 {
    let history = observed.database.status.iter().flat_map(|status| &status.history);
    let cause = RestartCause::NotStarting.message();
    let is_it = |what: Occurrence, text: &str| what == Occurrence::Restarted && text == cause;
    history
        .filter(|entry| is_it(entry.what, &entry.cause) && now.duration_since(entry.at.0) < REMEMBERED)
        .map(|entry| u32::try_from(entry.count).unwrap_or(1))
        .sum()
}

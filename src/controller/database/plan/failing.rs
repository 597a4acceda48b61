//! When an engine that keeps ending gets a new pod. Pure.
//!
//! Kubernetes starts the container again in the same pod, on the same mount: a file system that has shut
//! itself down is never mounted again that way. The mount ends with the pod.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::drift;
use crate::api::ConditionType;
use crate::api::database::NotStarting;
use crate::controller::conditions;
use crate::controller::database::cause::RestartCause;
use crate::controller::database::observe::Observed;
use crate::controller::database::pod::{EngineWait, Failure, engine_wait, last_ended_at};
use crate::time::{later, whole_second};

/// How long a pod may fail: the kubelet has started its container some six times by then, with pauses that
/// grow to five minutes.
const FIRST: Duration = Duration::from_secs(600);

/// After how many doublings the time grows no more: some ten hours.
const MOST_DOUBLINGS: u32 = 6;

/// For how long a new pod that has changed nothing makes the next one wait longer.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(24);

/// What replaces this pod, of the template that is there: the record of it, if it counts, and why. `None`
/// where it runs, where a new one would not help, or as long as it is not due. An adopted database has its
/// own way back (`going_back.rs`).
pub(super) fn due(
    observed: &Observed,
    pod: &Pod,
    now: Timestamp,
) -> Option<(Option<NotStarting>, RestartCause)> {
    let wait = engine_wait(Some(pod), observed.engine());
    let Some(EngineWait::Failing { failure: Failure::CrashLoop { .. }, .. }) = wait else { return None };
    let since =
        pod.metadata.creation_timestamp.as_ref().filter(|_| observed.database.spec.adopt.is_none())?;
    let is_settled = drift::template_settled(observed, now).is_ok();
    if is_settled && ended_before_modification(observed, pod) {
        return Some((None, RestartCause::VolumeModified));
    }
    let record = record(observed, pod, now);
    let before = u32::try_from(record.pods - 1).unwrap_or(0).min(MOST_DOUBLINGS);
    let is_due = now >= later(since.0, FIRST.saturating_mul(1 << before));
    (is_due && is_settled).then_some((Some(record), RestartCause::NotStarting))
}

/// Whether the volume became as specified after the engine last ended: what ended it may have been a full
/// file system, which has grown since, and the kubelet waits up to five minutes before it starts it again.
/// Once: the engine of the new pod ends later, if it does.
fn ended_before_modification(observed: &Observed, pod: &Pod) -> bool {
    let modified = observed
        .volume
        .ours()
        .and_then(|volume| conditions::find(volume.conditions(), ConditionType::Modified))
        .filter(|modified| modified.status == "True");
    let ended = last_ended_at(pod, observed.engine());
    modified.zip(ended).is_some_and(|(modified, ended)| ended < modified.last_transition_time.0)
}

/// The record with this pod: it is counted once.
fn record(observed: &Observed, pod: &Pod, now: Timestamp) -> NotStarting {
    let pod_uid = pod.uid().unwrap_or_default();
    let known = observed.database.status.as_ref().and_then(|status| status.not_starting.as_ref());
    let before = known.filter(|known| now.duration_since(known.at.0) < REMEMBERED);
    match before {
        Some(same) if same.pod_uid == pod_uid => same.clone(),
        other => {
            let pods = other.map_or(0, |other| other.pods).saturating_add(1);
            NotStarting { pods, pod_uid, at: Time(whole_second(now)) }
        }
    }
}

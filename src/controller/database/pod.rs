//! What a pod's status says of the engine. Pure.

use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::ResourceExt;

use super::build::CONTAINER;
use crate::api::keys::INPUTS_HASH_ANNOTATION;

/// How far the engine is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineState {
    /// There is no pod, or it is not started yet: what is awaited.
    AwaitingPod(String),
    /// Its container does not start or does not stay up: what Kubernetes says.
    Failing(String),
    /// It runs and does not answer its probe yet.
    Starting(String),
    /// It answers.
    Ready,
    /// It is being stopped.
    Stopping(String),
}

/// Reasons of a waiting container that are part of every start.
const NORMAL_WAITS: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// How many lines of an engine's last words are repeated.
const LAST_LINES: usize = 3;

/// How many characters of them.
const LONGEST_MESSAGE: usize = 500;

/// Reads the pod's status.
pub fn engine_state(pod: Option<&Pod>) -> EngineState {
    let Some(pod) = pod else {
        return EngineState::AwaitingPod("the StatefulSet has not made the pod yet".to_owned());
    };
    let name = pod.name_any();
    if pod.metadata.deletion_timestamp.is_some() {
        return EngineState::Stopping(format!("pod {name} is stopping"));
    }
    let Some(status) = &pod.status else {
        return EngineState::AwaitingPod(format!("pod {name} is not scheduled yet"));
    };
    let container = engine_status(pod);
    if let Some(problem) = container.and_then(problem) {
        return EngineState::Failing(problem);
    }
    let condition = |kind: &str| status.conditions.iter().flatten().find(|condition| condition.type_ == kind);
    if condition("Ready").is_some_and(|condition| condition.status == "True") {
        return EngineState::Ready;
    }
    if let Some(scheduled) = condition("PodScheduled").filter(|condition| condition.status == "False") {
        let message = scheduled.message.as_deref().unwrap_or("the scheduler has not said why");
        return EngineState::AwaitingPod(format!("pod {name} cannot be scheduled: {message}"));
    }
    if status.phase.as_deref() == Some("Failed") {
        let message = status.message.as_deref().or(status.reason.as_deref()).unwrap_or("Kubernetes has not said why");
        return EngineState::Failing(format!("pod {name} has failed: {message}"));
    }
    if container.and_then(|container| container.state.as_ref()).is_some_and(|state| state.running.is_some()) {
        let ended = container.and_then(|container| container.last_state.as_ref()).and_then(ending).unwrap_or_default();
        return EngineState::Starting(format!("the engine in pod {name} runs and does not answer its probe yet{ended}"));
    }
    EngineState::AwaitingPod(format!("pod {name} is being started"))
}

/// The node that the pod was put on.
pub fn machine(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}

/// Whether the engine's container was ever started in this pod: its volume was mounted then.
pub fn has_started(pod: &Pod) -> bool {
    let Some(container) = engine_status(pod) else { return false };
    let state = container.state.as_ref();
    container.restart_count > 0 || state.is_some_and(|state| state.running.is_some() || state.terminated.is_some())
}

/// A run of the engine, as a pod shows it.
pub struct Run {
    /// The pod's UID.
    pub pod_uid: String,
    /// How often its container was started again.
    pub restarts: i32,
}

/// The run that the pod shows; `None` before its container was ever started.
pub fn run(pod: &Pod) -> Option<Run> {
    let restarts = engine_status(pod).filter(|_| has_started(pod))?.restart_count;
    Some(Run { pod_uid: pod.uid()?, restarts })
}

/// How the last run of the engine's container ended.
pub fn last_end(pod: &Pod) -> Option<String> {
    engine_status(pod)?.last_state.as_ref()?.terminated.as_ref().map(ended)
}

fn engine_status(pod: &Pod) -> Option<&ContainerStatus> {
    pod.status.as_ref()?.container_statuses.iter().flatten().find(|container| container.name == CONTAINER)
}

/// What is awaited of an attachment that is not made yet: since when, and what the driver says.
pub fn attaching(attachment: &VolumeAttachment) -> Option<String> {
    let status = attachment.status.as_ref();
    if status.is_some_and(|status| status.attached) {
        return None;
    }
    let since = attachment.metadata.creation_timestamp.as_ref().map(|since| format!(" since {}", since.0)).unwrap_or_default();
    let said = status.and_then(|status| status.attach_error.as_ref()).and_then(|error| error.message.as_deref());
    let said = said.map(|said| format!(": {}", without_request_id(said))).unwrap_or_default();
    Some(format!("the volume is being attached to {}{since}{said}", attachment.spec.node_name))
}

/// AWS' words without the id of the call, which differs each time the driver tries again: a status must not.
fn without_request_id(said: &str) -> String {
    let Some((before, after)) = said.split_once("RequestID: ") else { return said.to_owned() };
    let rest = after.split_once(", ").map_or("", |(_, rest)| rest);
    format!("{before}{rest}")
}

/// Why the container does not start or does not stay up.
fn problem(container: &ContainerStatus) -> Option<String> {
    let state = container.state.as_ref()?;
    let waiting = state.waiting.as_ref()?;
    let reason = waiting.reason.as_deref().filter(|reason| !NORMAL_WAITS.contains(reason))?;
    // Kubernetes' text for this reason holds the growing pause; how the last run ended says more.
    if reason == "CrashLoopBackOff" {
        let ended = container.last_state.as_ref().and_then(ending).unwrap_or_default();
        return Some(format!("CrashLoopBackOff: the engine does not stay up{ended}; its log says why"));
    }
    Some(waiting.message.as_ref().map_or_else(|| reason.to_owned(), |message| format!("{reason}: {message}")))
}

fn ending(state: &ContainerState) -> Option<String> {
    Some(format!(" (last: {})", ended(state.terminated.as_ref()?)))
}

fn ended(terminated: &ContainerStateTerminated) -> String {
    let reason = terminated.reason.as_deref().unwrap_or("Error");
    let said = terminated.message.as_deref().and_then(last_words).map(|said| format!(": {said}")).unwrap_or_default();
    format!("{reason}, exit code {}{said}", terminated.exit_code)
}

/// What the engine left for this place, else the end of its log: the last line says that it ended, and those before it why.
fn last_words(message: &str) -> Option<String> {
    let lines: Vec<&str> = message.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let said = lines.get(lines.len().saturating_sub(LAST_LINES)..).unwrap_or_default().join(" | ");
    let longer = said.chars().count().saturating_sub(LONGEST_MESSAGE);
    Some(said.chars().skip(longer).collect()).filter(|said: &String| !said.is_empty())
}

/// The hash of the inputs that the pod was made from.
pub fn inputs_of(pod: &Pod) -> Option<&str> {
    pod.annotations().get(INPUTS_HASH_ANNOTATION).map(String::as_str)
}

/// The image and the resources of the pod's engine, to say what changes.
pub fn engine_container(pod: &Pod) -> Option<&k8s_openapi::api::core::v1::Container> {
    pod.spec.as_ref()?.containers.iter().find(|container| container.name == CONTAINER)
}

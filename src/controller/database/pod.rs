//! What a pod's status says of the engine. Pure.

use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod};
use kube::ResourceExt;

use super::build::{CONTAINER, INPUTS_HASH};

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

/// How much of what an engine left behind is repeated.
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
    let container = status.container_statuses.iter().flatten().find(|container| container.name == CONTAINER);
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
        return EngineState::Starting(format!("the engine in pod {name} runs and does not answer its probe yet"));
    }
    EngineState::AwaitingPod(format!("pod {name} is being started"))
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
    let terminated = state.terminated.as_ref()?;
    let reason = terminated.reason.as_deref().unwrap_or("Error");
    // What the engine left for this place; its log is not repeated here.
    let message = terminated.message.as_deref().map(str::trim).filter(|message| !message.is_empty());
    let said = message.map(|message| format!(": {}", message.chars().take(LONGEST_MESSAGE).collect::<String>())).unwrap_or_default();
    Some(format!(" (last: {reason}, exit code {}{said})", terminated.exit_code))
}

/// The hash of the inputs that the pod was made from.
pub fn inputs_of(pod: &Pod) -> Option<&str> {
    pod.annotations().get(INPUTS_HASH).map(String::as_str)
}

/// The image and the resources of the pod's engine, to say what changes.
pub fn engine_container(pod: &Pod) -> Option<&k8s_openapi::api::core::v1::Container> {
    pod.spec.as_ref()?.containers.iter().find(|container| container.name == CONTAINER)
}

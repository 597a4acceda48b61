//! What a pod's status says of the engine. Pure.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerState, ContainerStatus, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::ResourceExt;

use crate::api::Reason;
use crate::api::keys::INPUTS_HASH_ANNOTATION;
use crate::controller::engine_container::engine_of;

/// Why the engine does not accept connections yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum EngineWait {
    /// There is no pod.
    NoPod,
    /// The scheduler has not seen the pod.
    NotScheduled {
        /// The pod.
        pod: String,
    },
    /// The scheduler finds no Kubernetes node for the pod.
    Unschedulable {
        /// The pod.
        pod: String,
        /// What the scheduler says.
        message: Option<String>,
    },
    /// The pod's container is being started.
    ContainerStarting {
        /// The pod.
        pod: String,
    },
    /// The pod's container does not start, does not keep running, or the pod failed.
    Failing {
        /// The pod.
        pod: String,
        /// What Kubernetes shows.
        failure: Failure,
    },
    /// The engine runs, and its probe does not succeed yet.
    ProbeFailing {
        /// The pod.
        pod: String,
        /// How the last run ended.
        last: Option<Ending>,
    },
    /// The pod is stopping.
    Stopping {
        /// The pod.
        pod: String,
    },
}

impl EngineWait {
    /// Why, for the conditions.
    pub fn reason(&self) -> Reason {
        match self {
            Self::NoPod
            | Self::NotScheduled { .. }
            | Self::Unschedulable { .. }
            | Self::ContainerStarting { .. }
            | Self::Stopping { .. } => Reason::AwaitingPod,
            Self::Failing { .. } => Reason::EngineFailing,
            Self::ProbeFailing { .. } => Reason::EngineStarting,
        }
    }
}

/// How an engine fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The container ends again and again.
    CrashLoop {
        /// How the last run ended.
        last: Option<Ending>,
    },
    /// The container does not start.
    Container {
        /// Kubernetes' reason.
        reason: String,
        /// Kubernetes' message.
        message: Option<String>,
    },
    /// The pod failed as a whole.
    Pod {
        /// Kubernetes' message, or its reason.
        message: Option<String>,
    },
}

/// Why the kubelet has no image to start (Kubernetes, `pkg/kubelet/images/types.go`).
const WITHOUT_IMAGE: [&str; 7] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "ImageInspectError",
    "InvalidImageName",
    "RegistryUnavailable",
    "SignatureValidationFailed",
];

impl Failure {
    /// Whether the kubelet has no image to start.
    pub fn is_without_image(&self) -> bool {
        matches!(self, Self::Container { reason, .. } if WITHOUT_IMAGE.contains(&reason.as_str()))
    }
}

/// How a run of the engine's container ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Kubernetes' reason, if it gives one.
    pub reason: Option<String>,
    /// The exit code of the process.
    pub exit_code: i32,
    /// The last lines of the engine's log.
    pub log: Option<String>,
}

/// An attachment of the volume that is not made yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attaching {
    /// The Kubernetes node to attach it to.
    pub core_node: String,
    /// Since when Kubernetes wants it.
    pub since: Option<Timestamp>,
    /// What the CSI driver says.
    pub error: Option<String>,
}

/// Reasons of a waiting container that are part of every start.
const NORMAL_WAITS: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// How many of the last lines of an engine's log are repeated.
const LAST_LINES: usize = 3;

/// How many characters of them.
const LONGEST_MESSAGE: usize = 500;

/// Reads the pod's status; `None` when the engine accepts connections.
/// `engine` is the name of its container, if the spec gives it one, as everywhere in this file.
pub fn engine_wait(pod: Option<&Pod>, engine: Option<&str>) -> Option<EngineWait> {
    let Some(pod) = pod else { return Some(EngineWait::NoPod) };
    let name = pod.name_any();
    if pod.metadata.deletion_timestamp.is_some() {
        return Some(EngineWait::Stopping { pod: name });
    }
    let Some(status) = &pod.status else { return Some(EngineWait::NotScheduled { pod: name }) };
    let container = engine_status(pod, engine);
    if let Some(failure) = container.and_then(failure).or_else(|| failure_before(pod, engine)) {
        return Some(EngineWait::Failing { pod: name, failure });
    }
    let condition = |kind: &str| status.conditions.iter().flatten().find(|condition| condition.type_ == kind);
    if condition("Ready").is_some_and(|condition| condition.status == "True") {
        return None;
    }
    if let Some(scheduled) = condition("PodScheduled").filter(|condition| condition.status == "False") {
        return Some(EngineWait::Unschedulable { pod: name, message: scheduled.message.clone() });
    }
    if status.phase.as_deref() == Some("Failed") {
        let message = status.message.clone().or_else(|| status.reason.clone());
        return Some(EngineWait::Failing { pod: name, failure: Failure::Pod { message } });
    }
    if container.and_then(|container| container.state.as_ref()).is_some_and(|state| state.running.is_some()) {
        let last = container.and_then(|container| container.last_state.as_ref()).and_then(ending);
        return Some(EngineWait::ProbeFailing { pod: name, last });
    }
    Some(EngineWait::ContainerStarting { pod: name })
}

/// The node that the pod was put on.
pub fn machine(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}

/// Whether the engine's container was ever started in this pod: its volume was mounted then.
pub fn has_started(pod: &Pod, engine: Option<&str>) -> bool {
    let Some(container) = engine_status(pod, engine) else { return false };
    let state = container.state.as_ref();
    // One that ended and waits to be started again has the run before it as its last state.
    container.restart_count > 0
        || container.last_state.as_ref().is_some_and(|last| last.terminated.is_some())
        || state.is_some_and(|state| state.running.is_some() || state.terminated.is_some())
}

/// Whether the engine's container runs in this pod, whether it accepts connections or not.
pub fn is_running(pod: &Pod, engine: Option<&str>) -> bool {
    engine_status(pod, engine).and_then(|it| it.state.as_ref()).is_some_and(|state| state.running.is_some())
}

/// A run of the engine, as a pod shows it.
pub struct Run {
    /// The pod's UID.
    pub pod_uid: String,
    /// How often its container was started again.
    pub restarts: i32,
}

/// The run that the pod shows; `None` before its container was ever started.
pub fn run(pod: &Pod, engine: Option<&str>) -> Option<Run> {
    let restarts = engine_status(pod, engine).filter(|_| has_started(pod, engine))?.restart_count;
    Some(Run { pod_uid: pod.uid()?, restarts })
}

/// How the last run of the engine's container ended.
pub fn last_end(pod: &Pod, engine: Option<&str>) -> Option<Ending> {
    engine_status(pod, engine)?.last_state.as_ref().and_then(ending)
}

/// When the last run of the engine's container ended.
pub fn last_ended_at(pod: &Pod, engine: Option<&str>) -> Option<Timestamp> {
    let last = engine_status(pod, engine)?.last_state.as_ref()?.terminated.as_ref()?;
    last.finished_at.as_ref().map(|at| at.0)
}

fn engine_status<'a>(pod: &'a Pod, engine: Option<&str>) -> Option<&'a ContainerStatus> {
    let name = &engine_container(pod, engine)?.name;
    pod.status.as_ref()?.container_statuses.iter().flatten().find(|container| container.name == *name)
}

/// The attachment that is not made yet; `None` when it is.
pub fn attaching(attachment: &VolumeAttachment) -> Option<Attaching> {
    let status = attachment.status.as_ref();
    if status.is_some_and(|status| status.attached) {
        return None;
    }
    let error =
        status.and_then(|status| status.attach_error.as_ref()).and_then(|error| error.message.as_deref());
    Some(Attaching {
        core_node: attachment.spec.node_name.clone(),
        since: attachment.metadata.creation_timestamp.as_ref().map(|since| since.0),
        error: error.map(without_request_id),
    })
}

/// The error of AWS without the id of the call, which differs each time the driver tries again: a status must
/// not.
fn without_request_id(said: &str) -> String {
    let Some((before, after)) = said.split_once("RequestID: ") else { return said.to_owned() };
    let rest = after.split_once(", ").map_or("", |(_, rest)| rest);
    format!("{before}{rest}")
}

/// Why the container does not start or does not keep running.
fn failure(container: &ContainerStatus) -> Option<Failure> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref().filter(|reason| !NORMAL_WAITS.contains(reason))?;
    // Kubernetes' text for this reason holds the growing pause; how the last run ended says more.
    if reason == "CrashLoopBackOff" {
        return Some(Failure::CrashLoop { last: container.last_state.as_ref().and_then(ending) });
    }
    Some(Failure::Container { reason: reason.to_owned(), message: waiting.message.clone() })
}

/// That the kubelet has no image for a container which runs before the engine and from its image: it is the
/// first to need it.
fn failure_before(pod: &Pod, engine: Option<&str>) -> Option<Failure> {
    let image = engine_container(pod, engine)?.image.as_ref()?;
    let before = pod.spec.as_ref()?.init_containers.iter().flatten();
    let of_image: Vec<&str> =
        before.filter(|it| it.image.as_ref() == Some(image)).map(|it| it.name.as_str()).collect();
    let statuses = pod.status.as_ref()?.init_container_statuses.iter().flatten();
    let mut failures = statuses.filter(|it| of_image.contains(&it.name.as_str())).filter_map(failure);
    failures.next().filter(Failure::is_without_image)
}

fn ending(state: &ContainerState) -> Option<Ending> {
    let terminated = state.terminated.as_ref()?;
    let log = terminated.message.as_deref().and_then(last_lines);
    Some(Ending { reason: terminated.reason.clone(), exit_code: terminated.exit_code, log })
}

/// The end of the termination message, which is the end of the log: the last line says that the engine ended,
/// and those before it why.
fn last_lines(message: &str) -> Option<String> {
    let lines: Vec<&str> = message.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let said = lines.get(lines.len().saturating_sub(LAST_LINES)..).unwrap_or_default().join(" | ");
    let longer = said.chars().count().saturating_sub(LONGEST_MESSAGE);
    Some(said.chars().skip(longer).collect()).filter(|said: &String| !said.is_empty())
}

/// The hash of the inputs that the pod was made from.
pub fn inputs_of(pod: &Pod) -> Option<&str> {
    pod.annotations().get(INPUTS_HASH_ANNOTATION).map(String::as_str)
}

/// The container of the pod's engine.
pub fn engine_container<'a>(pod: &'a Pod, engine: Option<&str>) -> Option<&'a Container> {
    engine_of(&pod.spec.as_ref()?.containers, engine)
}

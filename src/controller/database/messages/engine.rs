//! The sentences for what a pod shows of the engine. Pure.

use crate::controller::database::pod::{Attaching, Ending, EngineWait, Failure};

impl EngineWait {
    /// Why the engine does not accept connections.
    pub fn message(&self) -> String {
        match self {
            Self::NoPod => {
                "the StatefulSet has not created the pod yet: kubectl describe statefulset shows its \
                events, such as the answer of an admission policy"
                    .to_owned()
            }
            Self::NotScheduled { pod } => format!("pod {pod} is not scheduled yet"),
            Self::Unschedulable { pod, message } => {
                let message = message.as_deref().unwrap_or("the scheduler has not reported why");
                format!("pod {pod} cannot be scheduled: {message}")
            }
            Self::ContainerStarting { pod } => format!("pod {pod} is being started"),
            Self::Failing { pod, failure } => failure.message(pod),
            Self::ProbeFailing { pod, last } => {
                format!(
                    "the engine in pod {pod} is running, but its probe does not succeed yet{}",
                    last_exit(last.as_ref())
                )
            }
            Self::Stopping { pod } => format!("pod {pod} is stopping"),
        }
    }
}

impl Failure {
    fn message(&self, pod: &str) -> String {
        match self {
            Self::CrashLoop { last } => format!(
                "CrashLoopBackOff: the engine keeps crashing{}; see its log",
                last_exit(last.as_ref())
            ),
            Self::Container { reason, message: Some(message) } => format!("{reason}: {message}"),
            Self::Container { reason, message: None } => reason.clone(),
            Self::Pod { message } => {
                format!(
                    "pod {pod} has failed: {}",
                    message.as_deref().unwrap_or("Kubernetes has not reported why")
                )
            }
        }
    }
}

impl Ending {
    /// How the run ended, for the history and the event.
    pub fn message(&self) -> String {
        let reason = self.reason.as_deref().unwrap_or("Error");
        let log = self.log.as_ref().map(|log| format!(": {log}")).unwrap_or_default();
        format!("{reason}, exit code {}{log}", self.exit_code)
    }
}

fn last_exit(last: Option<&Ending>) -> String {
    last.map(|last| format!(" (last exit: {})", last.message())).unwrap_or_default()
}

impl Attaching {
    /// Where the volume is being attached, since when, and what the CSI driver says.
    pub fn message(&self) -> String {
        let since = self.since.map(|since| format!(" since {since}")).unwrap_or_default();
        let error = self.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        format!("the volume is being attached to {}{since}{error}", self.core_node)
    }
}

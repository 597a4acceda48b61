//! What the parts of the plan of the Database controller share: questions about what was observed. Pure.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use serde_json::Value;

use crate::api::{ConditionType, Node, Reason};
use crate::cluster::status::difference;
use crate::controller::conditions;
use crate::controller::database::observe::Observed;
use crate::controller::database::pod::{EngineState, attaching, engine_state};
use crate::controller::waiting::Waiting;

/// The zone of the next machine, if it is decided.
pub(in crate::controller::database) fn next_zone(observed: &Observed) -> Option<String> {
    disk_zone(observed).or_else(|| recorded_zone(observed))
}

/// Where the disk is. It cannot leave, so it decides against any record: one that was restored from a backup of the cluster may lie.
pub(in crate::controller::database) fn disk_zone(observed: &Observed) -> Option<String> {
    observed.volume.ours().map(|volume| volume.spec.zone.clone())
}

pub(in crate::controller::database) fn recorded_zone(observed: &Observed) -> Option<String> {
    observed.database.status.as_ref().and_then(|status| status.zone.clone())
}

/// What is awaited of a machine, in its own words.
pub(in crate::controller::database) fn node_awaited(node: &Node) -> Option<Waiting> {
    let is_current = node.status.as_ref().is_some_and(|status| status.observed_generation == node.metadata.generation);
    awaited(&format!("Node {}", node.name_any()), node.conditions(), is_current, Reason::AwaitingNode)
}

/// What is awaited of a child, in its own words; `None` when it is ready as its newest spec says.
pub(in crate::controller::database) fn awaited(
    what: &str,
    conditions: &[Condition],
    is_current: bool,
    otherwise: Reason,
) -> Option<Waiting> {
    if let Some(stalled) = conditions::find(conditions, ConditionType::Stalled).filter(|stalled| stalled.status == "True") {
        let reason = Reason::named(&stalled.reason).unwrap_or(otherwise);
        return Some(Waiting::stalled(reason, format!("{what}: {}", stalled.message)));
    }
    match conditions::find(conditions, ConditionType::Ready) {
        Some(ready) if ready.status == "True" && is_current => None,
        Some(ready) if ready.status == "True" => Some(Waiting::on(otherwise, format!("{what}: its change is being looked at"))),
        Some(ready) => Some(Waiting::on(Reason::named(&ready.reason).unwrap_or(otherwise), format!("{what}: {}", ready.message))),
        None => Some(Waiting::on(otherwise, format!("{what} is new"))),
    }
}

/// What a condition says, as the end of a sentence.
pub(in crate::controller::database) fn said(conditions: &[Condition], kind: ConditionType) -> String {
    conditions::find(conditions, kind).map_or_else(|| "nothing is known of it yet".to_owned(), |condition| condition.message.clone())
}

/// The engine's state as a thing that is waited for.
pub(in crate::controller::database) fn engine_waiting(observed: &Observed) -> Option<Waiting> {
    if let Some(message) = observed.attachment.as_ref().and_then(attaching) {
        return Some(Waiting::on(Reason::AwaitingAttach, message));
    }
    match engine_state(observed.pod.as_ref()) {
        EngineState::Ready => None,
        EngineState::AwaitingPod(message) | EngineState::Stopping(message) => Some(Waiting::on(Reason::AwaitingPod, message)),
        EngineState::Starting(message) => Some(Waiting::on(Reason::EngineStarting, message)),
        EngineState::Failing(message) => Some(Waiting::on(Reason::EngineFailing, message)),
    }
}

/// The JSON merge patch of a spec; `None` when nothing differs.
pub(super) fn patch<S: serde::Serialize>(live: &S, wanted: &S) -> Option<Value> {
    difference(&serde_json::to_value(live).ok()?, &serde_json::to_value(wanted).ok()?)
}

/// How long until the next look at something that wakes nobody.
pub(super) fn slowly(observed: &Observed) -> Duration {
    observed.timing.recheck.saturating_mul(12)
}

pub(super) fn is_named(node: &Node, core_node: &str) -> bool {
    node.status.as_ref().and_then(|status| status.core_node_name.as_deref()) == Some(core_node)
}

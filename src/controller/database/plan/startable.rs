//! Since when an engine that is tried could be started: its time is counted from then. Pure.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::going_back::ready_to_start;
use super::machines::{self, is_initialized, is_lost};
use crate::api::ConditionType;
use crate::controller::conditions;
use crate::controller::database::observe::Observed;
use crate::time::whole_second;

/// Since when it could be; `known` is what was known of that. While there is no machine, nothing is tried.
/// Only a pod that is wanted says when it could start.
pub(super) fn startable_since(
    observed: &Observed,
    known: Option<Time>,
    is_wanted: impl Fn(&Pod) -> bool,
    now: Timestamp,
) -> Option<Time> {
    let has_machine = machines::of(observed).is_some_and(|machines| {
        is_initialized(machines.host) && !is_lost(machines.host) && observed.database.spec.running
    });
    let is_bound = observed
        .volume
        .ours()
        .is_some_and(|volume| conditions::is_true(volume.conditions(), ConditionType::Bound));
    if !has_machine {
        return None;
    }
    if known.is_some() || !is_bound {
        return known;
    }
    let since = |pod: &Pod| if is_wanted(pod) { ready_to_start(pod) } else { None };
    let startable = observed.pod.as_ref().map_or(Some(now), since);
    startable.map(|at| Time(whole_second(at)))
}

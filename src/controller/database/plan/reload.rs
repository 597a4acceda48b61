//! The part of the plan that has the engine take other settings while it runs. Pure.
//!
//! The files of settings and the template are written as for a restart. Then the engine is asked, each time
//! anew, until its answer decides: it takes the change, rejects it, or takes it at a start only. Without an
//! answer within a few minutes it is restarted, as it is where it cannot be asked.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::action::{Action, Plan};
use super::facts::{engine_waiting, inputs_by, inputs_of_pod, is_outdated, wanted_inputs};
use super::leaving::is_leaving;
use super::{permission, rotation};
use crate::api::DatabaseSpec;
use crate::api::database::{ConfigState, ConfigStatus, RejectedSetting, ReloadedPod};
use crate::api::keys::INPUTS_HASH_ANNOTATION;
use crate::controller::database::config_record::Load;
use crate::controller::database::messages::reload as sentences;
use crate::controller::database::observe::Observed;
use crate::controller::database::wait::{DatabaseWait, ReloadWait};
use crate::controller::database::{build, config_record};
use crate::engine::client::Access;
use crate::engine::reload::{Answer, Change, MOST_REJECTED, Verdict, changed, rejected};
use crate::engine::{Profile, Reload};
use crate::time::later;

/// For how many requeue intervals a change is awaited: three minutes by default. A kubelet updates a mounted
/// ConfigMap after its sync period and the delay of its cache, a minute each (Kubernetes documentation,
/// "Mounted ConfigMaps are updated automatically").
const PATIENCE: u32 = 36;

/// The change that the pod's engine may take while it runs: nothing else differs between what the pod was
/// made from and what is wanted.
fn change(observed: &Observed) -> Option<Change> {
    let spec = &observed.database.spec;
    let is_asked = observed.profile.as_ref().is_ok_and(|profile| profile.reload == Reload::Asked);
    if !is_asked || !spec.running || spec.adopt.is_some() || is_leaving(observed) {
        return None;
    }
    let from = config_record::in_force(&observed.database);
    let before = DatabaseSpec { config: from.clone(), ..spec.clone() };
    if inputs_of_pod(observed, observed.pod.as_ref()?)? != build::inputs_hash(&before) {
        return None;
    }
    let change = Change::new(spec.engine.kind, from, spec.config.clone(), loading(observed));
    (!change.keys.is_empty()).then_some(change)
}

/// The keys whose values the pod's engine may have loaded.
fn loading(observed: &Observed) -> &[String] {
    let loading = config_record::of(&observed.database).and_then(|config| config.loading.as_ref());
    let loading = loading.filter(|loading| is_of(observed, &loading.pod_uid));
    loading.map(|loading| loading.keys.as_slice()).unwrap_or_default()
}

/// Whether this is the UID of the pod.
fn is_of(observed: &Observed, uid: &str) -> bool {
    observed.pod.as_ref().and_then(|pod| pod.metadata.uid.as_deref()) == Some(uid)
}

/// Whether the pod runs with other settings than those wanted, or may do so.
pub(super) fn is_outstanding(observed: &Observed, pod: &Pod) -> bool {
    inputs_of_pod(observed, pod) != Some(wanted_inputs(observed)) || !loading(observed).is_empty()
}

/// Whether an engine is to say what it makes of a change of its settings, now or soon.
pub(in crate::controller::database) fn is_due(observed: &Observed) -> bool {
    change(observed).is_some()
}

/// Whether the engine can be asked now, as far as is known.
pub(super) fn is_possible(observed: &Observed) -> bool {
    is_due(observed) && can_be_asked(observed)
}

/// What the engine is asked in this pass, and how it is reached; none while the change is not written, or the
/// engine cannot be asked.
pub(in crate::controller::database) fn question(observed: &Observed) -> Option<(Access, Change)> {
    let change = change(observed)?;
    let (profile, pod) = (observed.profile.as_ref().ok()?, observed.pod.as_ref()?);
    let live = observed.stateful_set.ours()?;
    let inputs = observed.config_map.ours()?.annotations().get(INPUTS_HASH_ANNOTATION);
    let is_written = !is_outdated(observed, live) && inputs == Some(&wanted_inputs(observed));
    let is_asked = is_written && can_be_asked(observed) && !rotation::may_have_next(observed);
    let access = rotation::access(profile, &rotation::usable(observed)?.0, pod);
    access.filter(|_| is_asked).map(|access| (access, change))
}

/// Whether the engine serves, and stays where it is.
fn can_be_asked(observed: &Observed) -> bool {
    engine_waiting(observed).is_none()
        && !rotation::is_moved(observed)
        && permission::engine(observed).is_none()
}

/// What a change comes to.
enum Step {
    Wait(ReloadWait),
    Load(Answer),
    Reject(Vec<RejectedSetting>),
}

/// What follows for the change; none if there is none, or the engine is restarted for it.
fn step(observed: &Observed, now: Timestamp) -> Option<Step> {
    let change = change(observed).filter(|_| can_be_asked(observed))?;
    let is_over = |times: u32| {
        let hash = build::config_hash(&change.to);
        let config = config_record::of(&observed.database);
        let is_of_spec = |config: &&ConfigStatus| config.hash == hash || observed.rejected.is_some();
        let begun = config.filter(is_of_spec).map_or(now, |config| config.since.0);
        let loading = config.and_then(|config| config.loading.as_ref()).map(|loading| loading.since.0);
        now >= later(begun.max(loading.unwrap_or(begun)), patience(observed).saturating_mul(times))
    };
    match &observed.settings {
        None | Some(Err(_)) if is_over(1) => None,
        None => Some(Step::Wait(ReloadWait::Asking)),
        Some(Err(why)) => Some(Step::Wait(ReloadWait::Unanswered(why.clone()))),
        Some(Ok(answer)) => match &answer.verdict {
            Verdict::AtStart => None,
            Verdict::NotSeen if is_over(1) => None,
            Verdict::NotSeen => Some(Step::Wait(ReloadWait::FileAwaited)),
            Verdict::Rejected(why) => Some(Step::Reject(why.clone())),
            Verdict::Taken { is_seen: true } if is_over(2) => None,
            // Nothing but its log says why: a start might fail for it, unless it has run with it before.
            Verdict::Taken { is_seen: false } if is_over(1) => {
                (change.from != change.to).then(|| Step::Reject(not_taken(&change)))
            }
            Verdict::Taken { .. } => Some(Step::Load(answer.clone())),
        },
    }
}

fn patience(observed: &Observed) -> Duration {
    observed.timing.requeue_interval.saturating_mul(PATIENCE)
}

fn not_taken(change: &Change) -> Vec<RejectedSetting> {
    let value = |key: &str| change.to.get(key).map(|value| value.0.clone()).unwrap_or_default();
    let keys = change.keys.iter().take(MOST_REJECTED);
    keys.map(|key| rejected(key, &value(key), sentences::NOT_TAKEN)).collect()
}

/// The pod is of other settings than those wanted: what is awaited of its engine, or none if it is restarted.
pub(super) fn plan(
    observed: &Observed,
    profile: &Profile,
    live: &StatefulSet,
    pod: &Pod,
    actions: &mut Vec<Action>,
    now: Timestamp,
) -> Option<DatabaseWait> {
    let change = change(observed)?;
    // Which of two passwords the engine has is found out first.
    if rotation::may_have_next(observed) {
        return rotation::plan(observed, profile, live, pod, actions).map(DatabaseWait::Rotation);
    }
    let wait = match step(observed, now)? {
        Step::Wait(wait) => wait,
        Step::Load(answer) => {
            let (access, change) = question(observed)?;
            let pod =
                ReloadedPod { pod_uid: pod.uid().unwrap_or_default(), inputs_hash: wanted_inputs(observed) };
            let is_rejected = observed.rejected.is_some();
            let load = Load { access, change, answer, pod, is_rejected };
            actions.push(Action::ReloadSettings(Box::new(load)));
            ReloadWait::Loading
        }
        Step::Reject(why) => {
            let before = config_record::of(&observed.database);
            let record = config_record::rejected(before, &change, why.clone(), now);
            actions.push(Action::RejectSettings(Box::new(record)));
            ReloadWait::Rejected(why)
        }
    };
    Some(DatabaseWait::Reload(wait))
}

/// The plan, which says that settings are rejected unless it waits for more than that.
pub(super) fn with_rejection(mut plan: Plan, observed: &Observed) -> Plan {
    if observed.rejected.is_some() && !is_leaving(observed) {
        let config = config_record::of(&observed.database);
        let why = config.map(|config| config.rejected.clone()).unwrap_or_default();
        plan.waiting.get_or_insert(DatabaseWait::Reload(ReloadWait::Rejected(why)));
    }
    plan
}

/// Which settings the engine runs with, after a pass: `before` is the record as its writes left it.
pub(in crate::controller::database) fn shown(
    observed: &Observed,
    before: Option<ConfigStatus>,
    now: Timestamp,
) -> Option<ConfigStatus> {
    let spec = &observed.database.spec;
    let asked = observed.rejected.as_ref().unwrap_or(&spec.config);
    if spec.adopt.is_some() || is_leaving(observed) || (before.is_none() && asked.is_empty()) {
        return before;
    }
    let hash = build::config_hash(asked);
    // What is known of a pod that is gone says nothing of the next one.
    let before = before.map(|config| ConfigStatus {
        loading: config.loading.filter(|it| is_of(observed, &it.pod_uid)),
        reloaded: config.reloaded.filter(|it| is_of(observed, &it.pod_uid)),
        ..config
    });
    let is_same = before.as_ref().is_some_and(|config| config.hash == hash);
    if is_same && before.as_ref().is_some_and(|config| config.state == ConfigState::Rejected) {
        return before;
    }
    let inputs = observed.pod.as_ref().and_then(|pod| inputs_by(before.as_ref(), observed, pod));
    let runs = engine_waiting(observed).is_none() && inputs == Some(wanted_inputs(observed));
    let known = || before.as_ref().map(|config| config.in_force.clone()).unwrap_or_default();
    let in_force = if runs { spec.config.clone() } else { known() };
    let pending = changed(&in_force, asked);
    let loading = before.as_ref().and_then(|config| config.loading.clone());
    let state = match step(observed, now) {
        _ if pending.is_empty() && loading.is_none() => ConfigState::InForce,
        Some(_) => ConfigState::Reloading,
        None => ConfigState::PendingRestart,
    };
    let reloaded = before.as_ref().and_then(|config| config.reloaded.clone());
    let overridden = before.as_ref().filter(|_| is_same && reloaded.is_some());
    Some(ConfigStatus {
        state,
        since: config_record::since(before.as_ref(), &hash, now),
        hash,
        in_force,
        pending,
        rejected: Vec::new(),
        overridden: overridden.map(|config| config.overridden.clone()).unwrap_or_default(),
        loading,
        reloaded,
    })
}

//! The part of the plan that has the engine take other settings while it runs. Pure.
//!
//! The engine is asked before anything is written. It rejects the change, which is then not carried out; or
//! takes it, and loads its file once the kubelet has updated that; or it is restarted, as it is where it
//! cannot be asked or says nothing for some minutes. How far that is stands in `status.config.change`.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::action::{Action, Load, Plan};
use super::facts::{engine_waiting, inputs_of_pod, is_outdated, wanted_inputs};
use super::leaving::is_leaving;
use super::{permission, rotation};
use crate::api::DatabaseSpec;
use crate::api::database::{
    ConfigChange, ConfigState, ConfigStatus, ConfigStep, ConfigValue, EngineType, RejectedConfig, ReloadedPod,
};
use crate::api::keys::INPUTS_HASH_ANNOTATION;
use crate::controller::database::build::{self, changed};
use crate::controller::database::observe::Observed;
use crate::controller::database::wait::{DatabaseWait, ReloadWait};
use crate::engine::client::Access;
use crate::engine::reload::{Change, Verdict};
use crate::engine::{self, Profile};
use crate::time::{later, whole_second};

/// For how long an answer is awaited, and then the file. A kubelet updates a mounted ConfigMap after its sync
/// period and the delay of its cache, a minute each (Kubernetes documentation, "Mounted ConfigMaps are
/// updated automatically").
const STEP_LIMIT: Duration = Duration::from_secs(180);

/// The file of settings in the ConfigMap.
const FILE: &str = "postgresql.conf";

/// The world of a Database whose settings the engine has rejected: it is carried out with those in force.
pub(in crate::controller::database) fn in_effect(observed: &Observed) -> Option<Observed> {
    let config = record(observed)?;
    let spec = &observed.database.spec;
    let profile = observed.profile.as_ref().ok().filter(|_| is_rejected(observed, config))?;
    let in_force = engine::profile(&spec.engine, &config.in_force).ok()?;
    let mut world = observed.clone();
    world.database.spec.config.clone_from(&config.in_force);
    world.profile = Ok(Profile {
        config: in_force.config,
        termination_grace: in_force.termination_grace,
        ..profile.clone()
    });
    Some(world)
}

/// What is carried out of a spec: without what the engine has rejected, too (`in_effect.rs`).
pub(in crate::controller::database) fn carried_out(observed: &Observed) -> Option<Observed> {
    let carried_out = super::in_effect::of(observed);
    in_effect(carried_out.as_ref().unwrap_or(observed)).or(carried_out)
}

/// Whether the engine has rejected the settings of this very spec. An earlier version of Freehold knows of no
/// rejection, and may have started the engine with them since.
fn is_rejected(observed: &Observed, config: &ConfigStatus) -> bool {
    let hash = build::config_hash(&observed.database.spec.config);
    config.rejected.as_ref().is_some_and(|rejected| rejected.hash == hash) && !is_written(observed)
}

/// What is awaited where the engine has rejected the settings, and those in force are no valid ones any more,
/// as for a newer version: nothing of both is carried out, and the engine goes on with what it has.
pub(super) fn refused(observed: &Observed) -> Option<DatabaseWait> {
    let config = record(observed).filter(|config| is_rejected(observed, config))?;
    let rejected = config.rejected.as_ref()?;
    Some(DatabaseWait::Reload(ReloadWait::Rejected(rejected.message.clone())))
}

/// Whether the template is of the inputs that are wanted.
fn is_written(observed: &Observed) -> bool {
    observed.stateful_set.ours().is_some_and(|live| !is_outdated(observed, live))
}

/// The plan, which says that settings are rejected unless it waits for more than that.
pub(super) fn with_rejection(mut plan: Plan, world: &Observed) -> Plan {
    let rejected = record(world).and_then(|config| config.rejected.as_ref());
    if let Some(rejected) = rejected.filter(|_| !is_leaving(world)) {
        let wait = ReloadWait::Rejected(rejected.message.clone());
        plan.waiting.get_or_insert(DatabaseWait::Reload(wait));
    }
    plan
}

fn record(observed: &Observed) -> Option<&ConfigStatus> {
    observed.database.status.as_ref()?.config.as_ref()
}

/// Whether this is the UID of the pod.
fn is_of(observed: &Observed, uid: &str) -> bool {
    observed.pod.as_ref().and_then(|pod| pod.metadata.uid.as_deref()) == Some(uid)
}

/// What is known of a change of the pod's engine, to these settings or to those of an earlier edit.
fn known(observed: &Observed) -> Option<&ConfigChange> {
    record(observed)?.change.as_ref().filter(|change| is_of(observed, &change.pod_uid))
}

/// How far the change to the settings that are wanted is.
fn begun(observed: &Observed) -> Option<&ConfigChange> {
    known(observed).filter(|change| change.inputs_hash == wanted_inputs(observed))
}

/// The keys that the pod's engine may have loaded, and was not seen to run with.
fn loaded(observed: &Observed) -> &[String] {
    known(observed).map(|change| change.loaded.as_slice()).unwrap_or_default()
}

/// Whether the pod's engine has other settings than those wanted, or may have.
pub(super) fn is_outstanding(observed: &Observed, pod: &Pod) -> bool {
    inputs_of_pod(observed, pod) != Some(wanted_inputs(observed)) || !loaded(observed).is_empty()
}

/// The change that a PostgreSQL may take while it runs: nothing else differs between what the pod was made
/// from and what is wanted, and it is about to stay where it is, with the password that is known.
fn change(observed: &Observed) -> Option<Change> {
    let spec = &observed.database.spec;
    let is_left =
        !spec.running || spec.adopt.is_some() || is_leaving(observed) || rotation::is_moved(observed);
    if spec.engine.kind != EngineType::Postgresql
        || is_left
        || permission::engine(observed).is_some()
        || rotation::may_have_next(observed)
        || refused(observed).is_some()
    {
        return None;
    }
    // Without a record there is none where one would be kept, either: the definitions are older.
    let in_force = record(observed)?.in_force.clone();
    let mut keys = changed(&in_force, &spec.config);
    keys.extend_from_slice(loaded(observed));
    // Before anything is rendered: each pass of a database at rest ends here.
    if keys.is_empty() || !is_rendered(observed, &in_force) {
        return None;
    }
    let value = |key: String| {
        let value = spec.config.get(&key).map(|value| value.0.clone());
        (key, value)
    };
    let before = build::inputs_hash(&DatabaseSpec { config: in_force, ..spec.clone() });
    let is_of_settings = inputs_of_pod(observed, observed.pod.as_ref()?)? == before;
    is_of_settings.then(|| keys.into_iter().map(value).collect())
}

/// Whether the live files are what this operator renders for these settings, but for the keys that the engine
/// may have loaded since. Those of another version may fit its own template only: they change with the pod.
fn is_rendered(observed: &Observed, in_force: &BTreeMap<String, ConfigValue>) -> bool {
    let rendered = engine::profile(&observed.database.spec.engine, in_force).ok().and_then(|it| it.config);
    let live = observed.config_map.ours().and_then(|live| live.data.as_ref());
    let (Some(rendered), Some(live)) = (rendered, live) else { return false };
    let is_kept = |line: &&str| {
        line.split_once(' ').is_none_or(|(key, _)| !loaded(observed).iter().any(|loaded| loaded == key))
    };
    let texts = |files: &BTreeMap<String, String>| -> BTreeMap<String, Vec<String>> {
        let lines = |(name, text): (&String, &String)| {
            let all = text.lines().filter(|line| name != FILE || is_kept(line));
            (name.clone(), all.map(str::to_owned).collect())
        };
        files.iter().map(lines).collect()
    };
    texts(&rendered.files) == texts(live)
}

/// Whether the engine is to be asked or to load something now, or soon.
pub(in crate::controller::database) fn is_due(observed: &Observed) -> bool {
    let world = carried_out(observed);
    let observed = world.as_ref().unwrap_or(observed);
    let is_due = begun(observed).map_or_else(
        || engine_waiting(observed).is_none(),
        |begun| matches!(begun.step, ConfigStep::Asking | ConfigStep::Loading),
    );
    is_due && change(observed).is_some()
}

/// What the engine is asked in this pass, and how it is reached.
pub(in crate::controller::database) fn question(observed: &Observed) -> Option<(Access, Change)> {
    let world = carried_out(observed);
    let observed = world.as_ref().unwrap_or(observed);
    let is_asked = begun(observed)?.step == ConfigStep::Asking && engine_waiting(observed).is_none();
    let access = access(observed).filter(|_| is_asked)?;
    Some((access, change(observed)?))
}

/// How the engine is reached. What a name in a value stands for may be another in each database: this is the
/// one of the clients.
fn access(observed: &Observed) -> Option<Access> {
    let profile = observed.profile.as_ref().ok()?;
    let secret = &rotation::usable(observed)?.0;
    rotation::access(profile, secret, observed.pod.as_ref()?, profile.binding.database?)
}

/// The record of how far the change is. Its time is that of this write.
fn at(observed: &Observed, step: ConfigStep, loaded: Vec<String>, now: Timestamp) -> ConfigStatus {
    let pod_uid = observed.pod.as_ref().and_then(ResourceExt::uid).unwrap_or_default();
    let inputs_hash = wanted_inputs(observed);
    let change = ConfigChange { pod_uid, step, since: Time(whole_second(now)), inputs_hash, loaded };
    ConfigStatus { change: Some(change), ..record(observed).cloned().unwrap_or_default() }
}

/// Whether the last step was written so long ago that nothing more is awaited.
fn is_over(begun: &ConfigChange, now: Timestamp) -> bool {
    now >= later(begun.since.0, STEP_LIMIT)
}

/// The engine is asked before the settings are written: what is awaited until they may be. An engine that
/// does not serve is restarted.
pub(super) fn before_files(
    observed: &Observed,
    actions: &mut Vec<Action>,
    now: Timestamp,
) -> Option<DatabaseWait> {
    let change = change(observed)?;
    let mut record = |step: ConfigStep, loaded: Vec<String>| {
        actions.push(Action::RecordSettings(Box::new(at(observed, step, loaded, now))));
    };
    let kept = loaded(observed).to_vec();
    let wait = match begun(observed) {
        None if engine_waiting(observed).is_some() => return None,
        None => {
            record(ConfigStep::Asking, kept);
            ReloadWait::Asking
        }
        Some(ConfigChange { step: ConfigStep::AtStart, .. }) => return None,
        Some(begun @ ConfigChange { step: ConfigStep::Loading, .. }) => {
            // Its time is that of the write of the file, which may be refused for long, or come late.
            let renewed_at = later(begun.since.0, STEP_LIMIT / 3);
            if !is_written(observed) && now >= renewed_at {
                record(ConfigStep::Loading, kept);
            }
            return None;
        }
        Some(begun) => match &observed.answers.settings {
            Some(Ok(Verdict::Taken)) => {
                record(ConfigStep::Loading, change.into_keys().collect());
                return None;
            }
            Some(Ok(Verdict::Rejected(why))) if is_new(observed) => {
                actions.push(rejection(observed, why));
                ReloadWait::Rejected(why.clone())
            }
            // What is in force, it has begun with before.
            Some(Ok(Verdict::AtStart | Verdict::Rejected(_))) => {
                record(ConfigStep::AtStart, kept);
                return None;
            }
            None | Some(Err(_)) if is_over(begun, now) => {
                record(ConfigStep::AtStart, kept);
                return None;
            }
            Some(Err(why)) => ReloadWait::Unanswered(why.clone()),
            None => ReloadWait::Asking,
        },
    };
    Some(DatabaseWait::Reload(wait))
}

/// Whether the settings are neither in force nor written.
fn is_new(observed: &Observed) -> bool {
    let in_force = record(observed).map(|config| &config.in_force);
    in_force != Some(&observed.database.spec.config) && !is_written(observed)
}

/// Writes down that the engine rejects the settings, and what it may have loaded before.
fn rejection(observed: &Observed, why: &str) -> Action {
    let known = record(observed).cloned().unwrap_or_default();
    let hash = build::config_hash(&observed.database.spec.config);
    let rejected = RejectedConfig { hash, message: why.to_owned() };
    let change = known.change.filter(|change| !change.loaded.is_empty());
    Action::RecordSettings(Box::new(ConfigStatus { rejected: Some(rejected), change, ..known }))
}

/// What is awaited while the settings are written that the engine takes, as is recorded before or by these
/// actions.
pub(super) fn writing(observed: &Observed, actions: &[Action]) -> Option<DatabaseWait> {
    let is_loading = |change: &ConfigChange| change.step == ConfigStep::Loading;
    let is_recorded = |action: &Action| {
        let Action::RecordSettings(record) = action else { return false };
        record.change.as_ref().is_some_and(is_loading)
    };
    let is_taken = begun(observed).is_some_and(is_loading) || actions.iter().any(is_recorded);
    (is_taken && change(observed).is_some()).then_some(DatabaseWait::Reload(ReloadWait::Loading))
}

/// Whether the change waits for the engine, for another machine, or for its class to permit it again: the
/// next start brings it. What is taken back after it was loaded waits for the two, but not for an engine that
/// may not serve because of it.
pub(super) fn awaits_start(observed: &Observed, pod: &Pod) -> bool {
    let begun = begun(observed);
    let is_loading = begun.is_some_and(|begun| begun.step == ConfigStep::Loading);
    let is_back = begun.is_none() && inputs_of_pod(observed, pod) == Some(wanted_inputs(observed));
    let is_ready = engine_waiting(observed).is_none();
    let may_load = is_ready && !rotation::is_moved(observed) && permission::engine(observed).is_none();
    is_written(observed) && !may_load && (is_loading || (is_back && is_ready))
}

/// The settings are written: what is awaited of the engine that is to load them; none if it is restarted.
pub(super) fn load(observed: &Observed, actions: &mut Vec<Action>, now: Timestamp) -> Option<DatabaseWait> {
    let (change, begun) = (change(observed)?, begun(observed)?);
    let wait = match begun.step {
        ConfigStep::AtStart => return None,
        ConfigStep::Asking => ReloadWait::Asking,
        ConfigStep::Loading => {
            let given_up =
                is_over(begun, now).then(|| at(observed, ConfigStep::AtStart, begun.loaded.clone(), now));
            let (access, file) = (access(observed), file(observed));
            if let (Some(access), Some(file)) = (access, file) {
                let (record, otherwise) = (with(observed, &begun.pod_uid), given_up);
                let load = Load { access, change, file, record, otherwise };
                actions.push(Action::ReloadSettings(Box::new(load)));
            } else {
                actions.extend(given_up.map(|record| Action::RecordSettings(Box::new(record))));
            }
            ReloadWait::Loading
        }
    };
    Some(DatabaseWait::Reload(wait))
}

/// The file that the engine is to load, once it is written.
fn file(observed: &Observed) -> Option<String> {
    let live = observed.config_map.ours()?;
    let is_written = live.annotations().get(INPUTS_HASH_ANNOTATION) == Some(&wanted_inputs(observed));
    live.data.as_ref().filter(|_| is_written)?.get(FILE).cloned()
}

/// What the status says once the engine of the pod runs with the settings that are wanted.
fn with(observed: &Observed, pod_uid: &str) -> ConfigStatus {
    let reloaded = ReloadedPod { pod_uid: pod_uid.to_owned(), inputs_hash: wanted_inputs(observed) };
    ConfigStatus {
        in_force: observed.database.spec.config.clone(),
        change: None,
        reloaded: Some(reloaded),
        ..record(observed).cloned().unwrap_or_default()
    }
}

/// Which settings the engine runs with, after a pass: `before` is the record as its writes left it.
pub(in crate::controller::database) fn shown(
    observed: &Observed,
    before: Option<ConfigStatus>,
) -> Option<ConfigStatus> {
    let spec = &observed.database.spec;
    let has_settings = !spec.config.is_empty() || spec.engine.kind == EngineType::Postgresql;
    let inputs = observed.pod.as_ref().and_then(|pod| inputs_of_pod(observed, pod));
    let is_seen = engine_waiting(observed).is_none() && inputs == Some(wanted_inputs(observed));
    // What is in force is not known before an engine was seen that has begun with what is wanted.
    let is_first = before.is_none() && !(has_settings && is_seen);
    if spec.adopt.is_some() || is_leaving(observed) || is_first {
        return before;
    }
    let mut config = before.unwrap_or_default();
    // What is known of a pod that is gone says nothing of the next one, nor a question of an earlier spec.
    let is_known = |it: &ConfigChange| it.inputs_hash == wanted_inputs(observed) || !it.loaded.is_empty();
    config.change = config.change.filter(|it| is_of(observed, &it.pod_uid) && is_known(it));
    config.reloaded = config.reloaded.filter(|it| is_of(observed, &it.pod_uid));
    if !is_rejected(observed, &config) {
        config.rejected = None;
        if is_seen {
            config.in_force.clone_from(&spec.config);
        }
    }
    config.pending = changed(&config.in_force, &spec.config);
    let step = config.change.as_ref().filter(|it| it.inputs_hash == wanted_inputs(observed));
    config.state = match step.map(|change| change.step) {
        _ if config.rejected.is_some() => ConfigState::Rejected,
        Some(ConfigStep::Asking | ConfigStep::Loading) if change(observed).is_some() => {
            ConfigState::Reloading
        }
        None if config.pending.is_empty() => ConfigState::InForce,
        Some(_) | None => ConfigState::PendingRestart,
    };
    Some(config)
}

//! What the status says of the engine's settings, and what follows from it for the spec. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::build;
use crate::api::Database;
use crate::api::database::{
    ConfigState, ConfigStatus, ConfigValue, LoadingPod, RejectedSetting, ReloadedPod,
};
use crate::engine::client::Access;
use crate::engine::reload::{Answer, Change, changed};
use crate::time::whole_second;

/// A change that an engine is to load.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// How the engine is reached.
    pub access: Access,
    /// The change.
    pub change: Change,
    /// What the engine said of it.
    pub answer: Answer,
    /// Its pod, and what that counts as made from afterwards.
    pub pod: ReloadedPod,
    /// The spec has other settings, which the engine rejected.
    pub is_rejected: bool,
}

/// What the status says of the settings.
pub(super) fn of(database: &Database) -> Option<&ConfigStatus> {
    database.status.as_ref()?.config.as_ref()
}

/// The settings that the engine runs with, as far as is known.
pub(super) fn in_force(database: &Database) -> BTreeMap<String, ConfigValue> {
    of(database).map(|config| config.in_force.clone()).unwrap_or_default()
}

/// The Database as it is carried out, and the settings of its spec that are not: where the engine has
/// rejected those, it goes on with those in force, whatever else of the spec changes.
pub fn in_effect(mut database: Database) -> (Database, Option<BTreeMap<String, ConfigValue>>) {
    let hash = build::config_hash(&database.spec.config);
    let is_rejected =
        of(&database).is_some_and(|config| config.state == ConfigState::Rejected && config.hash == hash);
    if !is_rejected {
        return (database, None);
    }
    let in_force = in_force(&database);
    let rejected = std::mem::replace(&mut database.spec.config, in_force);
    (database, Some(rejected))
}

/// Since when the spec has these settings, by what the status says.
pub(super) fn since(config: Option<&ConfigStatus>, hash: &str, now: Timestamp) -> Time {
    let of_hash = config.filter(|config| config.hash == hash);
    of_hash.map_or_else(|| Time(whole_second(now)), |config| config.since.clone())
}

/// The engine of a pod is requested to load a change.
pub(super) fn loading(
    before: Option<&ConfigStatus>,
    pod_uid: &str,
    change: &Change,
    now: Timestamp,
) -> ConfigStatus {
    let hash = build::config_hash(&change.to);
    let known = before.cloned().unwrap_or_else(|| ConfigStatus {
        state: ConfigState::Reloading,
        since: since(before, &hash, now),
        hash,
        in_force: change.from.clone(),
        pending: changed(&change.from, &change.to),
        rejected: Vec::new(),
        overridden: Vec::new(),
        loading: None,
        reloaded: None,
    });
    let is_begun = |it: &&LoadingPod| it.pod_uid == pod_uid;
    let since = known.loading.as_ref().filter(is_begun).map(|it| it.since.clone());
    let loading = LoadingPod {
        pod_uid: pod_uid.to_owned(),
        since: since.unwrap_or_else(|| Time(whole_second(now))),
        keys: change.keys.clone(),
    };
    ConfigStatus { loading: Some(loading), ..known }
}

/// It has taken it. Where other settings of the spec are rejected, they still are.
pub(super) fn taken(before: Option<&ConfigStatus>, load: &Load, now: Timestamp) -> ConfigStatus {
    let Load { change, answer, pod, is_rejected, .. } = load;
    let known = before.filter(|_| *is_rejected).cloned();
    let hash = build::config_hash(&change.to);
    let in_force = ConfigStatus {
        state: ConfigState::InForce,
        since: since(before, &hash, now),
        hash,
        in_force: change.to.clone(),
        pending: Vec::new(),
        rejected: Vec::new(),
        overridden: Vec::new(),
        loading: None,
        reloaded: None,
    };
    ConfigStatus {
        overridden: answer.overridden.clone(),
        loading: None,
        reloaded: Some(pod.clone()),
        ..known.unwrap_or(in_force)
    }
}

/// The engine rejects a change, and goes on as before.
pub(super) fn rejected(
    before: Option<&ConfigStatus>,
    change: &Change,
    why: Vec<RejectedSetting>,
    now: Timestamp,
) -> ConfigStatus {
    let hash = build::config_hash(&change.to);
    ConfigStatus {
        state: ConfigState::Rejected,
        since: since(before, &hash, now),
        hash,
        in_force: change.from.clone(),
        pending: changed(&change.from, &change.to),
        rejected: why,
        overridden: before.map(|config| config.overridden.clone()).unwrap_or_default(),
        loading: before
            .and_then(|config| config.loading.clone())
            .map(|loading| LoadingPod { since: Time(whole_second(now)), ..loading }),
        reloaded: before.and_then(|config| config.reloaded.clone()),
    }
}

//! The settings of a `Database`'s engine, and what is known of them.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One setting's value: a line of text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ConfigValue(#[schemars(length(max = 1024))] pub String);

/// Which settings of spec.config the engine runs with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigStatus {
    /// Whether the engine runs with the settings of spec.config.
    pub state: ConfigState,

    /// The hash of the spec.config that `state` speaks of.
    pub hash: String,

    /// When that spec.config was first seen.
    pub since: Time,

    /// The settings that the engine runs with.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 100))]
    pub in_force: BTreeMap<String, ConfigValue>,

    /// The keys whose value in spec.config is not the one in force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    pub pending: Vec<String>,

    /// The settings that the engine rejects: nothing of spec.config is applied while there are any. The first
    /// ten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub rejected: Vec<RejectedSetting>,

    /// The keys of spec.config that the engine was seen to take from elsewhere when it took the others:
    /// PostgreSQL's ALTER SYSTEM wins over its file until the next restart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub overridden: Vec<String>,

    /// What an engine was requested to load, and was not seen to run with yet: written before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loading: Option<LoadingPod>,

    /// The pod whose engine took settings while it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reloaded: Option<ReloadedPod>,
}

/// Whether an engine runs with the settings of spec.config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConfigState {
    /// It does.
    InForce,
    /// It is about to take them while it runs, or to say that it does not.
    Reloading,
    /// It begins with them at its next start.
    PendingRestart,
    /// It rejects some of them, and goes on with those in force.
    Rejected,
}

/// A setting that an engine rejects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RejectedSetting {
    /// The key.
    pub key: String,

    /// Its value in spec.config: the first 100 characters.
    pub value: String,

    /// Why: what the engine says of it.
    pub message: String,
}

/// A pod whose engine was requested to load settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadingPod {
    /// The UID of the pod.
    #[serde(rename = "podUID")]
    pub pod_uid: String,

    /// Since when: at first, or since the engine was seen to reject them.
    pub since: Time,

    /// The keys whose values it may have loaded.
    #[schemars(length(max = 1000))]
    pub keys: Vec<String>,
}

/// A pod whose engine took settings while it ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReloadedPod {
    /// The UID of the pod.
    #[serde(rename = "podUID")]
    pub pod_uid: String,

    /// The hash of the inputs of a pod that would be the same: what its annotation would say.
    pub inputs_hash: String,
}

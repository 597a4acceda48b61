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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigStatus {
    /// Whether the engine runs with the settings of spec.config.
    pub state: ConfigState,

    /// The settings that the engine runs with, as far as is known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 100))]
    pub in_force: BTreeMap<String, ConfigValue>,

    /// The keys whose value in spec.config is not the one in force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    pub pending: Vec<String>,

    /// Why the engine rejects the settings of spec.config: nothing of them is applied until they are edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<RejectedConfig>,

    /// How far the engine of a pod is with taking other settings while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<ConfigChange>,

    /// The pod whose engine took settings while it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reloaded: Option<ReloadedPod>,
}

/// Whether an engine runs with the settings of spec.config.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConfigState {
    /// It does.
    #[default]
    InForce,
    /// It is about to take them while it runs, or to say that it does not.
    Reloading,
    /// It begins with them at its next start.
    PendingRestart,
    /// It rejects them, and goes on with those in force.
    Rejected,
}

/// Settings that an engine rejects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RejectedConfig {
    /// The hash of the spec.config.
    pub hash: String,

    /// What the engine says of it.
    pub message: String,
}

/// A change of settings that the engine of a pod may take while it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigChange {
    /// The UID of the pod.
    #[serde(rename = "podUID")]
    pub pod_uid: String,

    /// How far it is.
    pub step: ConfigStep,

    /// Since when.
    pub since: Time,

    /// The hash of the inputs of a pod that would begin with these settings.
    pub inputs_hash: String,

    /// The keys whose values the engine may have loaded, of this change or of those before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub loaded: Vec<String>,
}

/// How far a change of settings is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConfigStep {
    /// The engine is asked whether it takes the settings while it runs. Nothing of them is written.
    Asking,
    /// It does. They are written, and it loads them as soon as its file has them.
    Loading,
    /// It does not, or has not said so in time: it is restarted with them.
    AtStart,
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

//! What the engine of a `Database` last served as, and what it went back from.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::database_adoption::any_object;
use super::database_engine::Engine;

/// What the engine last accepted connections as: another one whose image cannot be started goes back to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Served {
    /// What spec.engine requested then.
    #[schemars(schema_with = "any_object")]
    pub engine: Engine,

    /// The image of the pod.
    #[schemars(length(max = 1024))]
    pub image: String,

    /// The UID of the pod. An engine that was started in a later one may have changed the data: nothing goes
    /// back from it.
    #[serde(rename = "podUID")]
    pub pod_uid: String,

    /// The engine that could not be started, and that the database went back from. Not there once the spec
    /// requests another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub went_back: Option<EngineNotStarted>,
}

/// An engine whose image was never started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EngineNotStarted {
    /// When the database went back.
    pub at: Time,

    /// What spec.engine requests: it is not tried again until the spec requests something else.
    #[schemars(schema_with = "any_object")]
    pub engine: Engine,

    /// The kubelet's words.
    pub message: String,
}

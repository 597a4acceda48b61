//! What a Database says of a database that ran before it, and what is known of its adoption.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::database_engine::Engine;
use super::ids::{InstanceId, VolumeId};

/// A database that runs already, made without Freehold. It is adopted as it runs: its pod is not restarted,
/// its volume is not detached. Instance and EBS volume must each carry the tag `freehold.dev/adopt` with
/// `<cluster id>/<namespace>/<name>` of this Database.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Adopt {
    /// The StatefulSet that runs the database, in the namespace of this Database, with one replica. It keeps
    /// its name, its selector and its template but for what decides where the pod runs.
    #[schemars(length(min = 1, max = 61))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("spec.adopt.statefulSetName must be the name of a StatefulSet: a-z, 0-9, '-' and '.'"))]
    pub stateful_set_name: String,

    /// The claim of the volume that holds the data.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("spec.adopt.claimName must be the name of a claim: a-z, 0-9, '-' and '.'"))]
    pub claim_name: String,

    /// The EBS volume of that claim, for example vol-0abc1234def567890.
    #[serde(rename = "volumeID")]
    #[x_kube(validation = Rule::new("self.matches('^vol-[0-9a-f]{8,17}$')")
        .message("spec.adopt.volumeID must be the id of an EBS volume, such as vol-0abc1234def567890"))]
    pub volume_id: VolumeId,

    /// The EC2 instance that the pod runs on, for example i-0abc1234def567890.
    #[serde(rename = "instanceID")]
    #[x_kube(validation = Rule::new("self.matches('^i-[0-9a-f]{8,17}$')")
        .message("spec.adopt.instanceID must be the id of an EC2 instance, such as i-0abc1234def567890"))]
    pub instance_id: InstanceId,

    /// The Service that clients use today. It is never changed, and is what status.endpoint names.
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')")
        .message("spec.adopt.serviceName must be the name of a Service: a-z, 0-9 and '-'"))]
    pub service_name: String,

    /// The Secret with the credentials, which status.credentialsSecretName names. It is never changed, and
    /// Freehold does not read what it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("spec.adopt.credentialsSecretName must be the name of a Secret: a-z, 0-9, '-' and '.'"))]
    pub credentials_secret_name: Option<String>,

    /// The container of the engine in the StatefulSet's template. Default: the one with the name `engine`,
    /// or else the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')")
        .message("spec.adopt.containerName must be the name of a container: a-z, 0-9 and '-'"))]
    pub container_name: Option<String>,
}

/// How a database was found when it was adopted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Adoption {
    /// When it was adopted.
    pub at: Time,

    /// The pod that ran then. It runs the template that it was found with until it is replaced.
    #[serde(rename = "podUID")]
    pub pod_uid: String,

    /// The engine that the spec named then. As long as it does, the image stays the one that was found.
    pub engine: Engine,

    /// The hash of what the spec requested then of the pod: another one replaces the pod.
    pub inputs_hash: String,

    /// The StatefulSet as it was found, without its status: what every template is made from, and what is
    /// restored when it is released.
    #[schemars(schema_with = "any_object")]
    pub stateful_set: Value,

    /// What the engine last accepted connections as, once that was made from another template than the one
    /// that was found: a template that does not start goes back to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<ServedAs>,

    /// The image of an engine that was started and has not accepted connections: it may have changed the
    /// data, so the image goes back to no earlier one. Not there once the engine accepts connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unproven_image: Option<String>,

    /// That what the spec requests did not start, and that the database went back to what it ran as before.
    /// Not there once the spec requests something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub went_back: Option<WentBack>,
}

impl Adoption {
    /// The StatefulSet as it was found, as far as the types of this program know it; `None` if what is
    /// recorded is none.
    pub fn found_set(&self) -> Option<StatefulSet> {
        serde_json::from_value(self.stateful_set.clone()).ok()
    }
}

/// What of an adopted database's engine follows the spec, as it last accepted connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServedAs {
    /// The hash of what the spec requested then of the pod.
    pub inputs_hash: String,

    /// The image of the engine's container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,

    /// The resources of the engine's container.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schemars(schema_with = "any_object")]
    pub resources: Value,
}

/// A template that did not start, and that the database went back from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WentBack {
    /// When that was decided.
    pub at: Time,

    /// The hash of what the spec requests of the pod: it is not tried again until the spec requests something
    /// else.
    pub inputs_hash: String,

    /// The image that was never started, if the spec requests another one than before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,

    /// What kept the pod from accepting connections.
    pub why: StartFailure,

    /// The same as a sentence, with what Kubernetes reported.
    pub message: String,
}

/// What keeps a pod from accepting connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StartFailure {
    /// The scheduler finds no Kubernetes node for the pod.
    Unschedulable,
    /// The engine's container was never started.
    NotStarted,
    /// The engine ends again and again.
    EngineEnds,
    /// The engine runs, and its probe does not succeed.
    ProbeFails,
}

/// An object of Kubernetes', whose fields the API server keeps as they are.
pub(super) fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

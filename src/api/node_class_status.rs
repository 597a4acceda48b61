//! What the operator reports of a `NodeClass`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::creation::Refusal;
use super::ids::InstanceId;

/// What EC2 and the cluster have of what the class names. Written by an operator that watches all namespaces;
/// one that watches a single namespace leaves it alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClassStatus {
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// `Ready`, what it is computed from, and `Stalled`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// Whether a machine of this class can be launched: without it, or with true, machines are launched.
    /// Absent if EC2 could not be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launchable: Option<bool>,

    /// The image as EC2 shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageStatus>,

    /// The subnets as EC2 shows them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<SubnetStatus>,

    /// What EC2 answered to the last dry run of a launch of this spec. It says whether the operator's role
    /// may launch with the instance profile, image, network and disks of the class; EC2 looks at no KMS key
    /// in it. Absent before the first answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<DryRun>,

    /// The newest machine of this spec, if EC2 ended it during its launch with `Client.InternalError`: most
    /// often the KMS key may not be used. Absent again once a later machine runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_launch: Option<EndedLaunch>,
}

/// EC2's answer to a dry run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DryRun {
    /// EC2's refusal, without ARNs and account ids; absent if EC2 would accept the launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
}

/// A machine that EC2 ended during its launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndedLaunch {
    /// The instance.
    #[serde(rename = "instanceID")]
    pub instance_id: InstanceId,

    /// When its launch was decided.
    pub launched_at: Time,
}

/// The image as EC2 shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageStatus {
    /// The image's name.
    pub name: String,
    /// `x86_64` or `arm64`.
    pub architecture: String,
}

/// A subnet as EC2 shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubnetStatus {
    /// The subnet's id.
    pub id: String,
    /// Its availability zone.
    pub zone: String,
    /// Its VPC.
    #[serde(rename = "vpcID")]
    pub vpc_id: String,
}

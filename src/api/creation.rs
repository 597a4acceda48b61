//! What a status records of something that is created in EC2: the attempt, the same for every kind.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One attempt to create something in EC2, and its result. Its fields stand in the creation beside the fields
/// of the request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// 1 for the first; a higher one only after the former is proven to have created nothing, or what it
    /// created is proven ended.
    #[serde(rename = "attempt")]
    pub number: i32,

    /// When the attempt was decided.
    pub started_at: Time,

    /// Since when it is unknown whether EC2 carried the attempt out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_doubt_since: Option<Time>,

    /// EC2's refusal, when it refused for certain: nothing was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refusal>,
}

impl Attempt {
    /// An attempt that is decided now.
    pub fn new(number: i32, started_at: Time) -> Self {
        Self { number, started_at, in_doubt_since: None, refused: None }
    }
}

/// A definite refusal by EC2.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// EC2's error code.
    pub code: String,

    /// EC2's message.
    pub message: String,

    /// When it was refused.
    pub at: Time,
}

//! What EC2 says when it says no: a code, a message and the HTTP status that goes with the code.

use serde::{Deserialize, Serialize};

/// A refusal in EC2's words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Refusal {
    /// EC2's error code, such as `InvalidVolume.NotFound`.
    pub code: String,

    /// A sentence for people.
    pub message: String,
}

/// Why a caller got no resource back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// EC2 answered, and refused.
    #[error(transparent)]
    Refused(#[from] Refusal),

    /// No answer came: a fault cut the connection or the answer short. Whether the call was carried out is
    /// not known to the caller.
    #[error("no answer: the connection ended before an answer could be read")]
    NoAnswer,
}

impl ApiError {
    /// EC2's error code, if there was an answer at all.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused(refusal) => Some(&refusal.code),
            Self::NoAnswer => None,
        }
    }
}

impl Refusal {
    /// A refusal with this code and message.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }

    /// The HTTP status that EC2 sends with this code (EC2 API reference, "Error codes": client errors are
    /// 4xx, the server errors listed there are 5xx).
    pub fn status(&self) -> u16 {
        match self.code.as_str() {
            "RequestLimitExceeded" | "Unavailable" | "ServiceUnavailable" => 503,
            "InternalError"
            | "InternalFailure"
            | "ServerInternal"
            | "InsufficientAddressCapacity"
            | "InsufficientCapacity"
            | "InsufficientHostCapacity"
            | "InsufficientInstanceCapacity"
            | "InsufficientVolumeCapacity" => 500,
            "DryRunOperation" => 412,
            "UnauthorizedOperation" => 403,
            "AuthFailure" | "OptInRequired" => 401,
            _ => 400,
        }
    }

    /// Whether it is the answer to a `DryRun` that would have gone through.
    pub fn is_dry_run(&self) -> bool {
        self.code == "DryRunOperation"
    }

    pub(crate) fn dry_run() -> Self {
        Self::new("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
    }

    pub(crate) fn missing(parameter: &str) -> Self {
        Self::new("MissingParameter", format!("The request must contain the parameter {parameter}"))
    }

    pub(crate) fn value(message: impl Into<String>) -> Self {
        Self::new("InvalidParameterValue", message)
    }

    pub(crate) fn combination(message: impl Into<String>) -> Self {
        Self::new("InvalidParameterCombination", message)
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new("UnsupportedOperation", message)
    }
}

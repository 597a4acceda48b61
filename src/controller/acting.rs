//! What the act steps of all controllers share: the writes that can fail.

use crate::cloud::CloudError;
use crate::cluster::{self, status::PatchError};

/// A write that failed.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// The API server.
    #[error("failed to write to the API server")]
    Kube(#[from] kube::Error),
    /// The intent or the id.
    #[error(transparent)]
    Status(#[from] PatchError),
    /// EC2.
    #[error(transparent)]
    Cloud(#[from] CloudError),
}

impl ActError {
    /// Somebody else wrote first: this pass' view was old.
    pub fn is_conflict(&self) -> bool {
        match self {
            Self::Kube(error) | Self::Status(PatchError::Kube(error)) => cluster::is_conflict(error),
            Self::Status(PatchError::Json(_)) | Self::Cloud(_) => false,
        }
    }
}

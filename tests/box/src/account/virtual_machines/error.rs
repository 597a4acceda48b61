//! Why the attacher, the provisioner or the resizer could not go on: the next round tries again.

use crate::account::cloud;

/// Why a round ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server.
    #[error(transparent)]
    Kubernetes(#[from] kube::Error),
    /// EC2.
    #[error(transparent)]
    Cloud(#[from] cloud::Error),
    /// What is not as it must be.
    #[error("{0}")]
    State(String),
}

//! Why there is no list.

use crate::cloud::CloudError;

/// Why there is no list.
#[derive(Debug, thiserror::Error)]
pub enum OrphansError {
    /// The API server.
    #[error(
        "the API server refused or did not answer: this lists Databases, Nodes, Volumes and Backups, of all namespaces \
        without --namespace, and PersistentVolumes"
    )]
    Kubernetes(#[from] kube::Error),
    /// EC2.
    #[error("EC2 refused or did not answer: check the AWS credentials and the Region")]
    Cloud(#[from] CloudError),
    /// JSON.
    #[error("failed to write the list as JSON")]
    Json(#[from] serde_json::Error),
}

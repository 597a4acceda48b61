//! Why there is no report, or why the adoption was not begun to its end.

use std::time::Duration;

use crate::cloud::CloudError;

/// Why there is no report, or why the adoption was not begun to its end.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// There is nothing to adopt.
    #[error("namespace {namespace} has no StatefulSet {name}")]
    NoStatefulSet {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
    },
    /// The API server.
    #[error("the API server refused or did not answer")]
    Kubernetes(#[from] kube::Error),
    /// EC2.
    #[error("EC2 refused or did not answer: check the AWS credentials and the Region")]
    Cloud(#[from] CloudError),
    /// Another client was faster.
    #[error("Database {0} was created meanwhile and adopts something else: delete it or choose another name")]
    OtherDatabase(String),
    /// The wait ended.
    #[error(
        "Database {name} is not Ready after {} s; the operator goes on, and the same command waits again",
        limit.as_secs()
    )]
    NotReady {
        /// The Database.
        name: String,
        /// How long was waited.
        limit: Duration,
    },
    /// YAML.
    #[error("failed to write the Database as YAML")]
    Yaml(#[from] serde_norway::Error),
    /// JSON.
    #[error("failed to write the report as JSON")]
    Json(#[from] serde_json::Error),
}

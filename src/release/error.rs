//! Why there is no report, or why the database is not released.

use std::time::Duration;

/// Why there is no report, or why the database is not released.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// There is nothing to release.
    #[error("namespace {namespace} has no Database {name}")]
    NoDatabase {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
    },
    /// The API server.
    #[error("the API server refused or did not answer")]
    Kubernetes(#[from] kube::Error),
    /// The wait ended.
    #[error(
        "Database {name} is not released after {} s; the operator goes on, and the same command waits again",
        limit.as_secs()
    )]
    NotReleased {
        /// The Database.
        name: String,
        /// How long was waited.
        limit: Duration,
    },
    /// JSON.
    #[error("failed to write the report as JSON")]
    Json(#[from] serde_json::Error),
}

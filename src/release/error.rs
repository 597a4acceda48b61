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
    /// Another client set `spec.release` to false again.
    #[error(
        "spec.release of Database {0} is false again, and the Database is deleted: it ends as \
        spec.deletionPolicy says. Set spec.release to true at once if it is to go on, and look at what writes it"
    )]
    Withdrawn(String),
    /// Something else has ended it.
    #[error(
        "Database {database} is gone, and pod {pod} does not run: it was deleted outside Freehold, or with its \
        namespace. Look at StatefulSet and claim; the EBS volume is not deleted"
    )]
    NotRunning {
        /// The Database.
        database: String,
        /// Its pod.
        pod: String,
    },
    /// JSON.
    #[error("failed to write the report as JSON")]
    Json(#[from] serde_json::Error),
}

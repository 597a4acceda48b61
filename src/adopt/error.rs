//! Why there is no report, or why the adoption was not begun to its end.

use std::io;
use std::path::PathBuf;
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
    /// The file of --from.
    #[error("failed to read the list {}", path.display())]
    List {
        /// The file; `-` is the standard input.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A line of that file.
    #[error("line {number} of the list: {problem}")]
    Line {
        /// From 1.
        number: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// The selector, or an empty list.
    #[error("no StatefulSet was named: look at the selector with kubectl get statefulsets --selector …")]
    NoneNamed,
    /// The pod is another one than before.
    #[error(
        "the pod was replaced while the database was adopted: it was {before}, and is {}",
        after.as_deref().unwrap_or("not there")
    )]
    PodReplaced {
        /// Its UID before.
        before: String,
        /// The UID of the pod that is there now.
        after: Option<String>,
    },
    /// The file of --report.
    #[error("failed to write the report {}", path.display())]
    Report {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

//! Why a control plane could not be started, in words that help.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::cluster::{certificates, tools};

/// Why there is no control plane.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its programs could not be built.
    #[error(transparent)]
    Tools(#[from] tools::Error),

    /// Its certificates could not be made.
    #[error(transparent)]
    Certificates(#[from] certificates::Error),

    /// A file or process of the system.
    #[error("failed to {doing}")]
    System {
        /// What was being done.
        doing: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },

    /// A component ended.
    #[error("failed to keep {name} running: it ended with {status}; its last lines:\n{log}")]
    Ended {
        /// Which component.
        name: String,
        /// How it ended.
        status: String,
        /// The last lines of its log.
        log: String,
    },

    /// Something did not become true in time.
    #[error("failed to see {what} within {} s; the last lines of {name}:\n{log}", limit.as_secs())]
    NotReady {
        /// What was awaited.
        what: String,
        /// How long.
        limit: Duration,
        /// The component to blame.
        name: String,
        /// The last lines of its log.
        log: String,
    },

    /// A call of the Kubernetes API.
    #[error("failed to {doing}")]
    Api {
        /// What was being done.
        doing: String,
        /// What the client said.
        #[source]
        source: Box<kube::Error>,
    },

    /// A kubeconfig that was just written cannot be used.
    #[error("failed to read the kubeconfig {path}")]
    Kubeconfig {
        /// Which file.
        path: PathBuf,
        /// What the client said.
        #[source]
        source: Box<kube::config::KubeconfigError>,
    },
}

//! Why the EBS CSI driver does not work.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why the driver does not work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A process could not be started.
    #[error("failed to start {name}")]
    Start {
        /// What.
        name: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },

    /// The driver does not answer.
    #[error("failed to wait for the EBS CSI driver: no {socket} after {} s; its log says:\n{log}",
    limit.as_secs())]
    NotReady {
        /// Where it should listen.
        socket: PathBuf,
        /// How long it was waited for.
        limit: Duration,
        /// The end of its log.
        log: String,
    },
}

//! Why a named box could not be started or stopped.

use std::io;
use std::path::PathBuf;

use crate::account::{self, MaterialsError};
use crate::cluster::control_plane;

/// Why a named box could not be started or stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its control plane.
    #[error(transparent)]
    ControlPlane(#[from] control_plane::Error),

    /// Its machines and its EC2.
    #[error(transparent)]
    Site(#[from] account::Error),

    /// What its machines are made of.
    #[error(transparent)]
    MaterialsError(#[from] MaterialsError),

    /// A file or process.
    #[error("failed to {doing}")]
    System {
        /// What was being done.
        doing: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },

    /// It ended instead of coming up.
    #[error("failed to start box `{name}`; the last lines of {log}:\n{tail}")]
    DidNotStart {
        /// Its name.
        name: String,
        /// Its log.
        log: PathBuf,
        /// What it said last.
        tail: String,
    },

    /// Another process is this box.
    #[error(
        "failed to start box `{0}`: it is starting or running already; see `cargo box status --name \
        {0}`"
    )]
    Taken(String),
}

/// Names what was being done.
pub(super) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    let doing = doing.into();
    move |source| Error::System { doing, source }
}

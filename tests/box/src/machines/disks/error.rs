//! Why something could not be done to a volume.

use std::io;

/// Why something could not be done to a volume.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program is not installed.
    #[error(
        "failed to {doing}: the program `{program}` cannot be run; install it (Debian: mount, xfsprogs, \
        perl-base)"
    )]
    Missing {
        /// What it was for.
        doing: String,
        /// Its name.
        program: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },

    /// A program failed.
    #[error("failed to {doing}: `{command}`: {said}")]
    Command {
        /// What it was for.
        doing: String,
        /// What was run.
        command: String,
        /// Its standard error.
        said: String,
    },

    /// A file.
    #[error("failed to {doing}")]
    File {
        /// What was being done.
        doing: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

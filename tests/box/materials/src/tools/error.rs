//! Why there are no tools, in words that help.

use std::io;
use std::path::{Path, PathBuf};

/// Why there are no tools.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Go is not installed.
    #[error(
        "failed to find `go`, which builds the Kubernetes programs of the box: install Go 1.21 or newer (it \
         fetches the 1.26 toolchain by itself) from https://go.dev/dl or as the package golang-go of Debian \
         13 or newer, and put it in PATH"
    )]
    GoIsMissing(#[source] io::Error),

    /// A go command failed; its last lines are in the text.
    #[error("failed to run `{command}` for the tools `{bundle}` of the box{needs}: {tail}")]
    Go {
        /// What was run.
        command: String,
        /// For which programs.
        bundle: &'static str,
        /// What has to be installed beside Go.
        needs: &'static str,
        /// The last lines of its output.
        tail: String,
    },

    /// A file of the cache could not be used.
    #[error(
        "failed to use {path} of the tool cache: check its owner and the free space, or set \
        FREEHOLD_CACHE"
    )]
    Cache {
        /// Which file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },

    /// Another process builds for too long.
    #[error(
        "failed to wait for the process that holds {0}: it has been building for 45 minutes; end it and \
        try again"
    )]
    BuiltByAnother(PathBuf),
}

/// Names the file of the cache that could not be used.
pub(super) fn in_cache(path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Cache { path, source }
}

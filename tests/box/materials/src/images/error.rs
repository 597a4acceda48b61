//! Why there are no images, and the helpers that name it.

use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// Why there are no images.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the host is not there.
    #[error(
        "failed to find {path}, which the images of the box are made with: install the Debian package \
        {package}"
    )]
    Missing {
        /// Which file.
        path: PathBuf,
        /// Who brings it.
        package: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },

    /// A command failed.
    #[error("failed to run `{command}` for the images of the box: {tail}")]
    Command {
        /// What was run.
        command: String,
        /// The last lines of its output.
        tail: String,
    },

    /// A library is not on this host.
    #[error("failed to find library {library}, which {of} loads: install the Debian package that has it")]
    Library {
        /// Who loads it.
        of: String,
        /// Its name.
        library: String,
    },

    /// A library is of no Debian package, so that its license is not known.
    #[error(
        "failed to find the Debian package of {0}, which the operator loads: build on Debian, with the \
        packages of the distribution"
    )]
    Package(PathBuf),

    /// The operator was built for another processor, or is none.
    #[error("failed to read {0}: it is no program that loads libraries of this host; build it on this host")]
    Program(PathBuf),

    /// A download is not what it was when it was pinned.
    #[error("failed to trust {path}: its SHA-256 is {found} and not {expected}; it was removed, try again")]
    Checksum {
        /// Which file.
        path: PathBuf,
        /// The pinned digest.
        expected: &'static str,
        /// What it is.
        found: String,
    },

    /// A file could not be read or written.
    #[error(
        "failed to use {path} for the images of the box: check its owner and the free space, or set \
        FREEHOLD_CACHE"
    )]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },

    /// containerd, which unpacks the images, did not come up.
    #[error("failed to start containerd for the machine image: {tail}")]
    Containerd {
        /// The last lines of its log.
        tail: String,
    },

    /// Another process makes them for too long.
    #[error(
        "failed to wait for the process that holds {0}: it has been making images for 15 minutes; end it \
        and try again"
    )]
    MadeByAnother(PathBuf),
}

pub(super) fn at<P: AsRef<Path>>(path: P) -> impl FnOnce(io::Error) -> Error + use<P> {
    let path = path.as_ref().to_owned();
    move |source| Error::File { path, source }
}

/// Writes files without holding up the tasks beside.
pub(super) async fn blocking<T: Send + 'static>(
    path: PathBuf,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await.map_err(io::Error::other).and_then(|done| done);
    done.map_err(at(&path))
}

/// A short name for everything that decides some bytes.
pub(super) fn key(parts: &[String]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    data_encoding::HEXLOWER.encode(&hash.finalize()).chars().take(16).collect()
}

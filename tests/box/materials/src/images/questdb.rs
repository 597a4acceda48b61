//! QuestDB's images: the server from Maven Central on a Java runtime that all releases share, in the
//! published image's places.
//!
//! Three things differ from the published image. The server is beside the runtime instead of linked into it,
//! so `/app/bin/java -m` finds it only with the entrypoint's options. The heap is limited: the machines of
//! the box share one host's memory, of which a Java machine would take a quarter each. And of the two
//! compilers only the first is used: a server that runs for minutes spends a third of its processor time in
//! the second.

use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::error::{Error, at};
use super::host::{self, Needed};
use super::maven::Jar;
use super::oci::{About, Image, Layer, Start};
use super::tree::Tree;

/// A release and the digest of its jar.
#[derive(Clone, Copy, Debug)]
pub struct Release {
    /// Its number, which is the image's tag.
    pub version: &'static str,
    sha256: &'static str,
}

/// The releases that there are images of. Before 9.3.4 the operator gives a password as a variable, from then
/// on as a file.
pub const RELEASES: [Release; 3] = [
    Release { version: "8.2.0", sha256: "a15d12044629e774ca683489f861e9e3e780cd4ef9bbe25d1e2415f3c0274466" },
    Release { version: "9.2.3", sha256: "ca3645bc6f442f535ac9f4f23d8f201d14c1010833afd8cc7351f86ffd632583" },
    Release { version: "9.3.4", sha256: "939bc53ab22f93dbaa6545143a6e7c536d4904c07b7f2d381e8eef10436be062" },
];

/// What is run as the image's first process.
pub const ENTRYPOINT: &str = include_str!("../../../tools/questdb/docker-entrypoint.sh");

/// What the images are made with.
pub const NEEDED: &[Needed] = &[
    Needed { path: JLINK, package: "openjdk-17-jdk-headless" },
    Needed { path: "/usr/bin/mvn", package: "maven" },
    Needed { path: "/usr/bin/unzip", package: "unzip" },
];

#[cfg(target_arch = "x86_64")]
const JLINK: &str = "/usr/lib/jvm/java-17-openjdk-amd64/bin/jlink";
#[cfg(not(target_arch = "x86_64"))]
const JLINK: &str = "/usr/lib/jvm/java-17-openjdk-arm64/bin/jlink";

/// The modules that a server's own module asks for, and encryption.
const MODULES: &str =
    "java.base,java.desktop,java.sql,java.management,jdk.management,jdk.unsupported,jdk.crypto.ec";

/// Libraries of the runtime that draw, print and play: they would bring a window system into the image.
const GRAPHICS: &[&str] = &[
    "libawt_xawt.so",
    "libfontmanager.so",
    "libjavajpeg.so",
    "libjawt.so",
    "libjsound.so",
    "liblcms.so",
    "libmlib_image.so",
    "libsplashscreen.so",
];

const USER_ID: u64 = 10001;

/// The layer of the Java runtime, linked in `scratch`.
pub async fn runtime(scratch: &Path) -> Result<Tree, Error> {
    let runtime = scratch.join("runtime");
    let mut link = Command::new(JLINK);
    link.args(["--strip-debug", "--no-man-pages", "--no-header-files", "--add-modules", MODULES, "--output"])
        .arg(&runtime);
    host::run(&mut link).await?;
    let mut tree = Tree::default();
    tree.copy("app", &runtime, GRAPHICS).map_err(at(&runtime))?;

    let libraries = runtime.join("lib");
    let mut loaders = host::files(&libraries, GRAPHICS)?;
    loaders.extend([runtime.join("bin/java"), libraries.join("server/libjvm.so")]);
    host::add_libraries(&mut tree, &loaders, &[libraries.join("server"), libraries]).await?;
    Ok(tree)
}

/// The jar of a release, fetched into `folder` unless it is there.
pub async fn jar(release: Release, folder: &Path) -> Result<PathBuf, Error> {
    let Release { version, sha256 } = release;
    Jar { group: "org.questdb", artifact: "questdb", version, sha256 }.fetched(folder).await
}

/// The layer of one release, its native libraries unpacked in `scratch`.
pub async fn tree(jar: &Path, scratch: &Path) -> Result<Tree, Error> {
    let native = scratch.join("native");
    let folder = if cfg!(target_arch = "x86_64") { "linux-x86-64" } else { "linux-aarch64" };
    host::run(
        Command::new("unzip")
            .args(["-q", "-o", "-j"])
            .arg(jar)
            .arg(format!("io/questdb/bin/{folder}/*.so"))
            .arg("-d")
            .arg(&native),
    )
    .await?;
    let mut tree = Tree::default();
    tree.file("app/lib/questdb.jar", jar).map_err(at(jar))?;
    tree.copy("app/lib/native", &native, &[]).map_err(at(&native))?;
    host::add_libraries(&mut tree, &host::files(&native, &[])?, &[]).await?;
    tree.text("docker-entrypoint.sh", ENTRYPOINT, 0o755);
    tree.folder("var/lib/questdb", 0o755, USER_ID);
    Ok(tree)
}

/// The image of a release.
pub fn image(release: Release, layers: Vec<Layer>) -> Image {
    Image {
        names: vec![format!("docker.io/questdb/questdb:{}", release.version)],
        layers,
        start: Start {
            environment: vec![
                "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/app/bin".to_owned(),
                "LANG=C.UTF-8".to_owned(),
                "JVM_PREPEND=-Xms64m -Xmx768m -XX:TieredStopAtLevel=1".to_owned(),
            ],
            entrypoint: &["/docker-entrypoint.sh"],
            folder: "/app",
            ports: &["9000/tcp", "8812/tcp", "9003/tcp", "9009/tcp"],
            ..Start::default()
        },
        about: About::default(),
    }
}

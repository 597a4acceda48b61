//! The operator's own image: what `cargo box image` writes for a registry, and what the demo and the tests
//! with Helm install, made by one function.
//!
//! It holds the program, the libraries that it loads, certificates, and what is said of all these: licenses,
//! records of packages, and a bill of materials. It has no shell and no package manager. Equal inputs give
//! equal bytes, so that a release can be made again and compared.

mod bill;
mod crates;
mod debian;
mod licenses;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use self::bill::{Contents, bill};
use self::crates::Crate;
use super::error::{Error, at, blocking};
use super::host::{self, Needed};
use super::oci::{About, Image, Layer, Start, write_archive};
use super::tree::Tree;
use crate::base::workspace::{self, Commit};

/// The name of the image, without a tag, where no other is given: as containerd completes `freehold`.
pub const NAME: &str = "docker.io/library/freehold";

/// What the image is made with, beside what [`debian`] needs.
const NEEDED: &[Needed] = &[
    Needed { path: "/usr/bin/strip", package: "binutils" },
    Needed { path: "/usr/bin/ldd", package: "libc-bin" },
];

/// Where programs look for certificates on Debian.
const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";

/// Where the bill of materials is. Scanners (Trivy, Syft) read files with this end.
const BILL: &str = "usr/share/sbom/freehold.cdx.json";

/// An image that is to be made.
#[derive(Clone, Debug)]
pub struct OperatorImage {
    /// The program, built of this workspace for this host's processor: its libraries are taken to be those of
    /// Cargo.lock.
    pub binary: PathBuf,
    /// The image's name without its tag.
    pub name: String,
    /// Its tag.
    pub tag: String,
    /// Where the sources are published.
    pub source: Option<String>,
}

impl OperatorImage {
    /// The image of the box's machines.
    pub fn new(binary: &Path, tag: &str) -> Self {
        Self { binary: binary.to_owned(), name: NAME.to_owned(), tag: tag.to_owned(), source: None }
    }
}

/// An image that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its whole name.
    pub name: String,
    /// The digest of its manifest, `sha256:…`.
    pub digest: String,
    /// Its bill of materials, as it is in the image.
    pub bill: String,
}

/// Writes the image to the file `archive`, an OCI layout in a tar, which containerd can import and skopeo can
/// push.
pub async fn write_operator_image(image: &OperatorImage, archive: &Path) -> Result<Written, Error> {
    for needed in NEEDED.iter().chain(debian::NEEDED) {
        needed.mark()?;
    }
    let folder = tempfile::tempdir().map_err(at("a folder for temporary files"))?;
    let stripped = folder.path().join("freehold");
    host::run(Command::new("strip").arg("-o").args([&stripped, &image.binary])).await?;
    let mut tree = base()?;
    tree.file("freehold", &stripped).map_err(at(&stripped))?;
    let libraries = host::add_libraries(&mut tree, &[stripped], &[]).await?;
    if libraries.is_empty() {
        return Err(Error::Program(image.binary.clone()));
    }
    let commit = Commit::checked_out().await;
    let (operator, crates) = crates::of_operator().await?;
    let packages = debian::packages(&libraries).await?;
    debian::describe(&mut tree, &packages)?;
    let rust = describe_crates(&mut tree, &crates).await?;
    let date = commit.as_ref().map(|commit| commit.date.as_str());
    let contents =
        Contents { operator: &operator, libraries: &crates, rust: &rust, packages: &packages, date };
    let bill = format!("{:#}\n", bill(&contents));
    tree.text(BILL, bill.clone(), 0o644);

    let name = format!("{}:{}", image.name, image.tag);
    let about = about(&operator, commit, image.source.clone());
    let (names, archive) = (vec![name.clone()], archive.to_owned());
    let digests = blocking(archive.clone(), move || {
        let layers = vec![Layer::write(&tree, folder.path())?];
        write_archive(&[Image { names, layers, start: start(), about }], File::create(&archive)?)
    })
    .await?;
    Ok(Written { name, digest: digests.concat(), bill })
}

/// What is in the image whatever the program is.
fn base() -> Result<Tree, Error> {
    let mut tree = Tree::default();
    tree.link("lib", "usr/lib");
    tree.link("lib64", "usr/lib64");
    tree.folder("tmp", 0o1777, 0);
    tree.text(
        "etc/passwd",
        "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n",
        0o644,
    );
    tree.text("etc/group", "root:x:0:\nnonroot:x:65532:\n", 0o644);
    tree.text("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n", 0o644);
    tree.text(CERTIFICATES, debian::certificates()?, 0o644);
    let license = Path::new(workspace::ROOT).join("LICENSE");
    tree.file("usr/share/doc/freehold/LICENSE", &license).map_err(at(&license))?;
    Ok(tree)
}

/// Adds the licenses of the crates and of Rust's standard library; the version of the latter.
async fn describe_crates(tree: &mut Tree, crates: &[Crate]) -> Result<String, Error> {
    let text = licenses::third_party(crates).map_err(at("the sources of the operator's libraries"))?;
    tree.text("usr/share/doc/freehold/THIRD-PARTY.txt", text, 0o644);
    let rustc = |args: &[&str]| {
        let mut rustc = Command::new("rustc");
        rustc.args(args).current_dir(workspace::ROOT);
        rustc
    };
    let folder = host::run(&mut rustc(&["--print", "sysroot"])).await?;
    let path = Path::new(folder.trim()).join("share/doc/rust/COPYRIGHT-library.html");
    // Rust that did not come by rustup may be without it.
    if path.is_file() {
        tree.file("usr/share/doc/rust/COPYRIGHT-library.html", &path).map_err(at(&path))?;
    }
    // `rustc 1.95.0 (f2d3ce0bd 2026-03-21)`.
    let version = host::run(&mut rustc(&["--version"])).await?;
    Ok(version.split(' ').nth(1).unwrap_or_default().trim().to_owned())
}

/// As the chart's pod has it, too: a user that is not root, and nothing that is written to.
fn start() -> Start {
    Start {
        user: "65532:65532",
        environment: vec!["PATH=/".to_owned(), format!("SSL_CERT_FILE=/{CERTIFICATES}")],
        entrypoint: &["/freehold"],
        folder: "/",
        ..Start::default()
    }
}

fn about(operator: &Crate, commit: Option<Commit>, source: Option<String>) -> About {
    let mut annotations = BTreeMap::from([
        ("org.opencontainers.image.title", "Freehold".to_owned()),
        ("org.opencontainers.image.description", operator.description.clone().unwrap_or_default()),
        ("org.opencontainers.image.version", operator.version.clone()),
        ("org.opencontainers.image.licenses", operator.license.clone().unwrap_or_default()),
    ]);
    annotations.extend(source.map(|source| ("org.opencontainers.image.source", source)));
    let created = commit.as_ref().map(|commit| commit.date.clone());
    annotations.extend(commit.map(|commit| ("org.opencontainers.image.revision", commit.id)));
    About { created, annotations }
}

#[cfg(test)]
mod tests;

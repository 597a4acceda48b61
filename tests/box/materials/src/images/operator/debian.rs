//! Which of this host's Debian packages are in the operator's image: their records for scanners, their
//! licenses, and the authorities whose certificates are trusted.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::images::error::{Error, at};
use crate::images::host::{self, Needed};
use crate::images::tree::Tree;

/// What tells of packages, and the package that is in the image beside those of the libraries.
pub const NEEDED: &[Needed] = &[
    Needed { path: "/usr/bin/dpkg-query", package: "dpkg" },
    Needed { path: AUTHORITIES, package: "ca-certificates" },
];

/// The package with the certificates of the authorities that Mozilla trusts.
const CERTIFICATES: &str = "ca-certificates";

/// Its certificates. Not the bundle in /etc/ssl, to which a host may have added authorities of its own.
const AUTHORITIES: &str = "/usr/share/ca-certificates/mozilla";

/// The texts that the packages' licenses refer to.
const COMMON_LICENSES: &str = "/usr/share/common-licenses/";

/// A package, as dpkg has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// For which processor.
    pub architecture: String,
    /// What dpkg says of it.
    record: String,
}

impl Package {
    fn read(record: String) -> Option<Self> {
        let field = |name: &str| {
            record.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::to_owned)
        };
        let (name, version, architecture) = (field("Package")?, field("Version")?, field("Architecture")?);
        Some(Self { name, version, architecture, record })
    }

    /// Its package URL (github.com/package-url/purl-spec).
    pub fn url(&self) -> String {
        let version = self.version.replace('+', "%2B").replace(':', "%3A");
        format!("pkg:deb/debian/{}@{version}?arch={}", self.name, self.architecture)
    }
}

/// The packages of these libraries, and the certificates'.
pub async fn packages(libraries: &BTreeSet<PathBuf>) -> Result<Vec<Package>, Error> {
    let mut names = BTreeSet::from([CERTIFICATES.to_owned()]);
    for library in libraries {
        names.insert(owner(library).await?);
    }
    let mut packages = Vec::new();
    for name in names {
        let record = host::run(Command::new("dpkg-query").arg("--status").arg(&name)).await?;
        let package = Package::read(record);
        packages
            .push(package.ok_or_else(|| Error::Package(format!("dpkg has no version of {name}").into()))?);
    }
    packages.sort();
    Ok(packages)
}

/// The package that a library belongs to.
async fn owner(library: &Path) -> Result<String, Error> {
    // Packages name their files as they did before /lib became a link into /usr, or as they do since.
    let below_usr = library.strip_prefix("/usr").map(|inside| Path::new("/").join(inside));
    let other =
        below_usr.unwrap_or_else(|_| Path::new("/usr").join(library.strip_prefix("/").unwrap_or(library)));
    // It fails when one of the two names is unknown, so its word counts and not its exit status.
    let script = r#"dpkg-query --search "$@" 2>/dev/null || true"#;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, "dpkg-query"]).arg(library).arg(other).env("LC_ALL", "C");
    let said = host::run(&mut command).await?;
    owner_in(&said).ok_or_else(|| Error::Package(library.to_owned()))
}

/// The package in the answer of `dpkg-query --search`: `libc6:amd64: /lib/x86_64-linux-gnu/libc.so.6`.
fn owner_in(said: &str) -> Option<String> {
    let mut lines = said.lines().filter(|line| !line.starts_with("diversion by "));
    Some(lines.next()?.split_once(": ")?.0.split(',').next()?.trim().to_owned())
}

/// Adds what scanners and people read of these packages: a record of each where images without a package
/// manager have it (as Debian's distroless images do), and its license with the texts that this names.
pub fn describe(tree: &mut Tree, packages: &[Package]) -> Result<(), Error> {
    for package in packages {
        tree.text(format!("var/lib/dpkg/status.d/{}", package.name), package.record.clone(), 0o644);
        let copyright = Path::new("/usr/share/doc").join(&package.name).join("copyright");
        let text = std::fs::read(&copyright).map_err(at(&copyright))?;
        for name in common_licenses(&String::from_utf8_lossy(&text)) {
            let path = Path::new(COMMON_LICENSES).join(name);
            if path.is_file() {
                tree.file(path.strip_prefix("/").unwrap_or(&path), &path).map_err(at(&path))?;
            }
        }
        tree.text(copyright.strip_prefix("/").unwrap_or(&copyright), text, 0o644);
    }
    tree.file("etc/os-release", "/etc/os-release").map_err(at("/etc/os-release"))
}

/// The names of the texts that a license refers to.
fn common_licenses(copyright: &str) -> BTreeSet<&str> {
    let is_name = |character: char| character.is_ascii_alphanumeric() || ".-".contains(character);
    let names = copyright.split(COMMON_LICENSES).skip(1);
    let names = names.map(|rest| rest.split(|character| !is_name(character)).next().unwrap_or_default());
    names.map(|name| name.trim_end_matches('.')).collect()
}

/// The certificates, one after the other.
pub fn certificates() -> Result<Vec<u8>, Error> {
    let mut bundle = Vec::new();
    for path in host::files(Path::new(AUTHORITIES), &[])? {
        bundle.extend(std::fs::read(&path).map_err(at(&path))?.trim_ascii_end());
        bundle.push(b'\n');
    }
    Ok(bundle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_file_is_read_from_what_dpkg_says() {
        for (said, expected) in [
            ("libc6:amd64: /lib/x86_64-linux-gnu/libc.so.6\n", Some("libc6:amd64")),
            ("diversion by dash from: /bin/sh\ndash: /bin/sh\n", Some("dash")),
            ("libgcc-s1:amd64, libgcc-s1:i386: /usr/share/x\n", Some("libgcc-s1:amd64")),
            ("", None),
        ] {
            assert_eq!(owner_in(said).as_deref(), expected, "{said}");
        }
    }

    #[test]
    fn a_package_is_read_from_its_record_and_named_by_an_url() {
        let record = "Package: libc6\nStatus: install ok installed\nArchitecture: amd64\n\
            Version: 2.36-9+deb12u13\nDescription: GNU C Library\n  Version: no field\n";
        let package = Package::read(record.to_owned()).unwrap();
        assert_eq!(package.url(), "pkg:deb/debian/libc6@2.36-9%2Bdeb12u13?arch=amd64");
        assert_eq!(Package::read("Package: libc6\n".to_owned()), None);
    }

    #[test]
    fn the_texts_that_a_license_names_are_found() {
        let copyright = "see /usr/share/common-licenses/LGPL-2.1 and\n\
            '/usr/share/common-licenses/GPL'. Also /usr/share/common-licenses/GPL-2.";
        assert_eq!(common_licenses(copyright), BTreeSet::from(["LGPL-2.1", "GPL", "GPL-2"]));
    }
}

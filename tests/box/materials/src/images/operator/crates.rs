//! The crates that are part of the operator, as `cargo tree` and `cargo metadata` list them.
//!
//! The latter's JSON is read by types of our own: the crate `cargo_metadata` switches on a feature of
//! serde_json, with which the operator would be compiled differently here than for a release.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::base::workspace;
use crate::images::error::Error;
use crate::images::host;

/// The operator's own crate.
const OPERATOR: &str = "freehold";

/// How the names of files begin that hold a license or a notice.
const LICENSE_FILES: [&str; 6] = ["COPYING", "COPYRIGHT", "LICENCE", "LICENSE", "NOTICE", "UNLICENSE"];

/// A crate that is compiled into the operator.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Crate {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it is, in one line.
    pub description: Option<String>,
    /// The licenses, as an expression of SPDX.
    pub license: Option<String>,
    /// Where its sources are developed.
    pub repository: Option<String>,
    /// Where its sources are on this host.
    pub folder: PathBuf,
    /// The package URLs of the crates that it uses.
    pub uses: Vec<String>,
}

impl Crate {
    /// Its package URL (github.com/package-url/purl-spec), which is its name in an SBOM.
    pub fn url(&self) -> String {
        url(&self.name, &self.version)
    }

    /// The licenses and notices in its sources.
    pub fn texts(&self) -> io::Result<Vec<String>> {
        let mut texts = Vec::new();
        for path in license_files(&self.folder)? {
            texts.push(String::from_utf8_lossy(&fs::read(path)?).replace("\r\n", "\n"));
        }
        Ok(texts)
    }
}

fn url(name: &str, version: &str) -> String {
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}

/// The files of that kind in a folder, and in the folders in it that are called so, too.
fn license_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        let is_license = LICENSE_FILES.iter().any(|begin| name.starts_with(begin));
        if is_license && path.is_dir() {
            for entry in fs::read_dir(&path)? {
                found.push(entry?.path());
            }
        } else if is_license {
            found.push(path);
        }
    }
    found.retain(|path| path.is_file());
    found.sort();
    Ok(found)
}

/// The operator's crate, and in order those that are compiled into it for this host's processor.
pub async fn of_operator() -> Result<(Crate, Vec<Crate>), Error> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut cargo = workspace::cargo();
    cargo.args(["tree", "--locked", "--package", OPERATOR, "--target", &target]);
    // What a procedural macro and its libraries do ends when the compiler does.
    cargo.args(["--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"]);
    let tree = host::run(&mut cargo).await?;
    let mut cargo = workspace::cargo();
    cargo.args(["metadata", "--locked", "--format-version", "1", "--filter-platform", &target]);
    let metadata = host::run(&mut cargo).await?;
    parse(&tree, &metadata).map_err(|error| Error::Command {
        command: "cargo metadata".to_owned(),
        tail: format!("its output could not be read: {error}"),
    })
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    description: Option<String>,
    license: Option<String>,
    repository: Option<String>,
    manifest_path: PathBuf,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

/// Without a name it is a usual dependency; `dev` and `build` are no part of the program.
#[derive(Deserialize)]
struct Kind {
    kind: Option<String>,
}

/// Reads which crates there are from `cargo tree`, which knows the features of this one program, and the rest
/// of `cargo metadata`, whose graph also has what only other members of the workspace, or tests, switch on.
fn parse(tree: &str, metadata: &str) -> serde_json::Result<(Crate, Vec<Crate>)> {
    let metadata: Metadata = serde_json::from_str(metadata)?;
    let part: BTreeSet<(&str, &str)> = tree.lines().filter_map(name_and_version).collect();
    let packages: BTreeMap<&str, &Package> = metadata
        .packages
        .iter()
        .filter(|package| part.contains(&(package.name.as_str(), package.version.as_str())))
        .map(|package| (package.id.as_str(), package))
        .collect();
    let (mut operator, mut libraries) = (None, Vec::new());
    for node in &metadata.resolve.nodes {
        let Some(package) = packages.get(node.id.as_str()) else { continue };
        let usual = |used: &&Dependency| used.dep_kinds.iter().any(|kind| kind.kind.is_none());
        let parts = node.deps.iter().filter(usual).filter_map(|used| packages.get(used.pkg.as_str()));
        let mut uses: Vec<String> = parts.map(|part| url(&part.name, &part.version)).collect();
        uses.sort();
        let found = Crate {
            name: package.name.clone(),
            version: package.version.clone(),
            description: package.description.clone(),
            // Crates from before SPDX separate by a slash what may be chosen.
            license: package.license.as_ref().map(|license| license.replace('/', " OR ")),
            repository: package.repository.clone(),
            folder: package.manifest_path.parent().map(Path::to_owned).unwrap_or_default(),
            uses,
        };
        if found.name == OPERATOR {
            operator = Some(found);
        } else {
            libraries.push(found);
        }
    }
    libraries.sort();
    let operator = operator.ok_or_else(|| serde::de::Error::custom("the operator's crate is missing"))?;
    Ok((operator, libraries))
}

/// Those in a line of `cargo tree`: `tokio v1.54.1`, then remarks.
fn name_and_version(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_ascii_whitespace();
    Some((words.next()?, words.next()?.strip_prefix('v')?))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn package(name: &str) -> Value {
        json!({
            "id": name, "name": name, "version": "1.0.0+2", "license": "MIT/Apache-2.0", "description": null,
            "repository": null, "manifest_path": format!("/src/{name}/Cargo.toml"),
        })
    }

    fn node(name: &str, uses: &[(&str, Option<&str>)]) -> Value {
        let uses: Vec<Value> =
            uses.iter().map(|(name, kind)| json!({"pkg": name, "dep_kinds": [{"kind": kind}]})).collect();
        json!({"id": name, "deps": uses})
    }

    #[test]
    fn only_what_is_compiled_into_the_operator_is_part_of_it() {
        let tree = "freehold v1.0.0+2 (/src/freehold)\nused v1.0.0+2\nbelow v1.0.0+2\nbelow v1.0.0+2 (*)\n";
        let packages = ["freehold", "used", "below", "switched-on-by-a-test", "cc"].map(package);
        let metadata = json!({
            "packages": packages,
            "resolve": {"nodes": [
                node("used", &[("below", None), ("cc", Some("build")), ("switched-on-by-a-test", None)]),
                node("freehold", &[("used", None), ("below", Some("dev"))]),
                node("below", &[]),
                node("cc", &[]),
            ]},
        });
        let (operator, libraries) = parse(tree, &metadata.to_string()).unwrap();
        assert_eq!(operator.uses, ["pkg:cargo/used@1.0.0%2B2"]);
        let names: Vec<&str> = libraries.iter().map(|library| library.name.as_str()).collect();
        assert_eq!(names, ["below", "used"]);
        let used = &libraries[1];
        assert_eq!(used.uses, ["pkg:cargo/below@1.0.0%2B2"]);
        assert_eq!(used.license.as_deref(), Some("MIT OR Apache-2.0"));
        assert_eq!(used.folder, Path::new("/src/used"));
    }

    #[test]
    fn licenses_and_notices_are_found_by_their_names() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("licenses")).unwrap();
        fs::create_dir_all(folder.path().join("src")).unwrap();
        for name in ["LICENSE-MIT", "license.txt", "NOTICE", "README.md", "licenses/zlib", "src/license.rs"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        let found = license_files(folder.path()).unwrap();
        let found: Vec<_> = found.iter().map(|path| path.strip_prefix(folder.path()).unwrap()).collect();
        assert_eq!(found, ["LICENSE-MIT", "NOTICE", "license.txt", "licenses/zlib"].map(Path::new));
    }
}

//! Files of Maven Central: fetched once, and always checked.

use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::error::{Error, at};
use super::host;

/// The plugin that fetches a file by its coordinates.
const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy";

/// A jar of Maven Central, with its digest.
#[derive(Clone, Copy, Debug)]
pub struct Jar {
    /// The group.
    pub group: &'static str,
    /// The name.
    pub artifact: &'static str,
    /// The version.
    pub version: &'static str,
    /// The SHA-256 of the file, in hexadecimal.
    pub sha256: &'static str,
}

impl Jar {
    /// The file, fetched into `folder` unless it is there.
    ///
    /// # Errors
    ///
    /// When it cannot be had, or is not the one that was pinned.
    pub async fn fetched(&self, folder: &Path) -> Result<PathBuf, Error> {
        let Self { group, artifact, version, sha256: expected } = *self;
        let path = folder.join(format!("{artifact}-{version}.jar"));
        if !path.is_file() {
            let coordinates = format!("-Dartifact={group}:{artifact}:{version}");
            let output = format!("-DoutputDirectory={}", folder.display());
            // Not in the clone, whose settings for Maven do not apply here.
            let mut copy = Command::new("mvn");
            host::run(copy.current_dir(folder).args(["-B", "-q", COPY, &coordinates, &output])).await?;
        }
        // The host's program: the hash of a test's build is not optimised.
        let said = host::run(Command::new("sha256sum").arg(&path)).await?;
        let found = said.split_ascii_whitespace().next().unwrap_or_default();
        if found == expected {
            return Ok(path);
        }
        let error = Error::Checksum { path: path.clone(), expected, found: found.to_owned() };
        std::fs::remove_file(&path).map_err(at(&path))?;
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_jar_that_is_not_the_pinned_one_is_refused_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let jar = Jar { group: "org.questdb", artifact: "questdb", version: "0.0.0", sha256: "00" };
        let path = folder.path().join("questdb-0.0.0.jar");
        std::fs::write(&path, "not a jar").unwrap();
        let error = jar.fetched(folder.path()).await.unwrap_err();
        assert!(matches!(error, Error::Checksum { .. }), "{error}");
        assert!(!path.exists());
    }
}

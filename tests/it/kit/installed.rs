//! Programs of others that a test runs: Python's packages and Go's, installed once into the cache.

use std::path::{Path, PathBuf};
use std::process::Command;

use freehold_box::base::cache::Cache;
use sha2::{Digest as _, Sha256};

/// Runs a command to its end; a program that is missing is a failure, never a skipped test.
pub fn done(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| {
        panic!(
            "{command:?}: {error}; install it to run this test (Debian: python3 with python3-venv; Go \
            from go.dev)"
        )
    });
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{command:?} ended with {}:\n{}\n{}", output.status, said[0], said[1]);
}

/// The folder of the cache for what is installed.
fn installed(kind: &str) -> PathBuf {
    Cache::from_environment().tools().parent().unwrap().join(kind)
}

/// A Python with the packages of this file and no others, made once for each content of it.
pub fn python(requirements: &Path) -> PathBuf {
    let hash = data_encoding::HEXLOWER.encode(&Sha256::digest(std::fs::read(requirements).unwrap()));
    let folder = installed("python").join(&hash[..16]);
    let (python, whole) = (folder.join("bin/python3"), folder.join("whole"));
    if !whole.exists() {
        std::fs::create_dir_all(&folder).unwrap();
        done(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder));
        done(
            Command::new(&python)
                .args(["-m", "pip", "install", "--quiet", "--no-deps", "--requirement"])
                .arg(requirements),
        );
        std::fs::write(whole, "").unwrap();
    }
    python
}

/// A program of Go's, by its package and version.
pub fn go(package: &str, version: &str) -> PathBuf {
    let name = package.rsplit('/').next().unwrap();
    let folder = installed("go").join(format!("{name}-{version}"));
    if !folder.join(name).exists() {
        let mut install = Command::new("go");
        install.args(["install", &format!("{package}@{version}")]).env("GOBIN", &folder).env("GOFLAGS", "");
        done(install.env("CGO_ENABLED", "0"));
    }
    folder.join(name)
}

//! `cargo box image`: the operator, built for release, in an image for a registry.

use std::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use clap::Args;
use serde::Deserialize;
use tokio::process::Command;

use crate::base::workspace::{self, Commit};
use crate::images::{OPERATOR, OperatorImage, write_operator_image};

type Failure = Box<dyn StdError + Send + Sync>;

/// Builds the operator for release and writes its image: an OCI archive for skopeo, with a bill of materials
/// (CycloneDX) beside it.
#[derive(Clone, Debug, Args)]
pub struct Release {
    /// The archive; beside it goes the bill of materials, with the end `.cdx.json` in place of `.tar`.
    #[arg(long, value_name = "FILE", default_value = "freehold.tar")]
    output: PathBuf,

    /// The image's name, without a tag.
    #[arg(long, default_value = OPERATOR)]
    name: String,

    /// The image's tag.
    #[arg(long, default_value = env!("CARGO_PKG_VERSION"))]
    tag: String,

    /// Where the sources are published, for the label org.opencontainers.image.source.
    #[arg(long, value_name = "URL")]
    source: Option<String>,

    /// A program that was built of this workspace, to pack in place of one built for release: quick, and not
    /// for a registry.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

impl Release {
    /// Builds and writes, and prints the image's name and digest.
    pub async fn run(self) -> Result<(), Failure> {
        let commit = Commit::checked_out().await;
        match &commit {
            None => eprintln!("no git commit is known here: the image does not say which one it is of"),
            Some(commit) if commit.is_dirty() => eprintln!("files differ from the commit: {}", commit.id),
            Some(_) => {}
        }
        let binary = match self.binary {
            Some(binary) => binary,
            None => build(commit.as_ref()).await?,
        };
        let image = OperatorImage { binary, name: self.name, tag: self.tag, source: self.source };
        let written = write_operator_image(&image, &self.output).await?;
        let bill = self.output.with_extension("cdx.json");
        std::fs::write(&bill, &written.bill)
            .map_err(|error| format!("failed to write {}: {error}", bill.display()))?;
        println!("{}@{}", written.name, written.digest);
        Ok(())
    }
}

/// Paths of this machine that the compiler meets, and what it writes in their place: another machine makes
/// the same program then, and none shows where it was made.
async fn replaced_paths() -> Result<Vec<(PathBuf, String)>, Failure> {
    let version = answer("rustc", &["--version", "--verbose"]).await?;
    let commit = version.lines().find_map(|line| line.strip_prefix("commit-hash: ")).unwrap_or("rust");
    let rust = PathBuf::from(answer("rustc", &["--print", "sysroot"]).await?);
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let home = home.ok_or("failed to find cargo's folder: set CARGO_HOME or HOME")?;
    let root = Path::new(workspace::ROOT).canonicalize()?;
    // What build scripts generate is compiled there; the usual folder is in the workspace.
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(vec![
        (root, "/freehold".to_owned()),
        (home, "/cargo".to_owned()),
        // The standard library's sources are there only if someone installed them.
        (rust.join("lib/rustlib/src/rust"), format!("/rustc/{commit}")),
        // Of two that fit, rustc takes the last.
        (target, "/freehold/target".to_owned()),
    ])
}

async fn answer(program: &str, args: &[&str]) -> Result<String, Failure> {
    let output = Command::new(program).args(args).current_dir(workspace::ROOT).output().await?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// A line of cargo's about what it built.
#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
}

/// Builds the operator as it is shipped, of what is checked out; its path. Cargo shows how far it is.
pub async fn build_operator() -> Result<PathBuf, Failure> {
    build(Commit::checked_out().await.as_ref()).await
}

/// Builds the operator; its path.
async fn build(commit: Option<&Commit>) -> Result<PathBuf, Failure> {
    let replaced = replaced_paths().await?;
    let flags = replaced.iter().map(|(path, by)| format!("--remap-path-prefix={}={by}", path.display()));
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--release", "--locked", "--package", "freehold", "--bin", "freehold"]);
    cargo.args(["--message-format", "json-render-diagnostics"]);
    // In place of the flags of this person's environment and configuration.
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.collect::<Vec<_>>().join("\u{1f}"));
    if let Some(commit) = commit {
        cargo.env("SOURCE_DATE_EPOCH", &commit.seconds);
    }
    let output = cargo.stdout(Stdio::piped()).spawn()?.wait_with_output().await?;
    if !output.status.success() {
        return Err("failed to build the operator: see cargo's message".into());
    }
    let text = String::from_utf8(output.stdout)?;
    let mut messages = text.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    let program = messages.find_map(|message| message.executable);
    let program = program.ok_or("failed to find the operator: cargo built no program")?;
    let bytes = std::fs::read(&program)?;
    if let Some((path, _)) = replaced.iter().find(|(path, _)| contains(&bytes, path)) {
        let (program, path) = (program.display(), path.display());
        return Err(format!("failed to build {program} as any machine would: it names {path}").into());
    }
    Ok(program)
}

/// Whether a program names a path.
fn contains(program: &[u8], path: &Path) -> bool {
    let path = path.as_os_str().as_encoded_bytes();
    program.windows(path.len()).any(|part| part == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_folder_of_this_machine_that_the_compiler_reads_is_replaced() {
        let replaced = replaced_paths().await.unwrap();
        let is_replaced = |path: &Path| replaced.iter().any(|(from, _)| path.starts_with(from));
        assert!(is_replaced(&Path::new(env!("CARGO_MANIFEST_DIR")).canonicalize().unwrap()));
        assert!(replaced[1].0.join("registry/src").is_dir(), "cargo unpacks crates there: {replaced:?}");
        let by: Vec<&str> = replaced.iter().map(|(_, by)| by.as_str()).collect();
        assert!(by[2].starts_with("/rustc/") && by[2].len() == "/rustc/".len() + 40, "{by:?}");
    }

    #[test]
    fn a_path_is_found_in_a_program() {
        let program = b"\x7fELF\0/root/.cargo/registry/src/x/lib.rs\0";
        assert!(contains(program, Path::new("/root/.cargo")));
        assert!(!contains(program, Path::new("/root/freehold")));
    }
}

//! This workspace, its cargo, and the commit that is checked out.

use std::path::Path;

use tokio::process::Command;

/// The folder with the workspace's Cargo.toml.
pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");

/// The cargo that runs this program, or else the one in PATH, in the workspace.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(ROOT).kill_on_drop(true);
    cargo
}

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its whole id; `-dirty` follows if files differ from it.
    pub id: String,
    /// When it was made, as in RFC 3339, in UTC.
    pub date: String,
    /// The same in seconds since 1970.
    pub seconds: String,
}

impl Commit {
    /// The commit that is checked out; none in a source tree without git.
    pub async fn checked_out() -> Option<Self> {
        let id = git(&["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]).await?;
        let format = ["--format=%cd %ct", "--date=format-local:%Y-%m-%dT%H:%M:%SZ"];
        let times = git(&[&["show", "--no-patch"], &format[..]].concat()).await?;
        let (date, seconds) = times.split_once(' ')?;
        Some(Self { id, date: date.to_owned(), seconds: seconds.to_owned() })
    }

    /// Whether files differ from it.
    pub fn is_dirty(&self) -> bool {
        self.id.ends_with("-dirty")
    }
}

async fn git(args: &[&str]) -> Option<String> {
    // A folder above that is a repository of something else is not this workspace's.
    if !Path::new(ROOT).join(".git").exists() {
        return None;
    }
    let mut git = Command::new("git");
    git.args(args).current_dir(ROOT).env("TZ", "UTC").kill_on_drop(true);
    let output = git.output().await.ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

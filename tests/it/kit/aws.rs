//! The AWS CLI of the tests, which talks to the simulated EC2.

use std::path::{Path, PathBuf};
use std::process::Command;

use tokio::sync::OnceCell;

/// The program: the one on the PATH, else one that `.ci/aws` installs once.
pub async fn program() -> &'static Path {
    static PROGRAM: OnceCell<PathBuf> = OnceCell::const_new();
    PROGRAM.get_or_init(|| async { tokio::task::spawn_blocking(installed).await.unwrap() }).await
}

fn installed() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/aws");
    let output = Command::new(script).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

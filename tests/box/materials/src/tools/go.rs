//! Runs `go` in a module and hands its lines on while it works.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{ChildStdout, Command};

use super::bundle::Bundle;
use super::error::Error;

/// The last lines of the build that an error shows.
const ERROR_LINES: usize = 15;

/// How `nice` ends when there is no such program.
const NOT_FOUND: i32 = 127;

fn command(bundle: Bundle, folder: &Path, args: &[&str]) -> Command {
    // Cargo may be compiling the box at the same time. It goes first: for minutes it can use one processor
    // only, and go then takes the others.
    let mut command = Command::new("nice");
    command.args(["-n", "19", "go"]);
    // A module of its own, whatever workspace or vendor folder is around.
    command.args(args).current_dir(folder).env("GOWORK", "off").env("GOFLAGS", "-buildvcs=false");
    command.env("CGO_ENABLED", if bundle.needs_c() { "1" } else { "0" });
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Runs go, and gives standard output back.
pub(super) async fn output(bundle: Bundle, folder: &Path, args: &[&str]) -> Result<String, Error> {
    lines(bundle, folder, args, |_, _| {}).await
}

/// Runs go, hands each line of standard error with its number to `seen`, and gives standard output back.
pub(super) async fn lines(
    bundle: Bundle,
    folder: &Path,
    args: &[&str],
    mut seen: impl FnMut(&str, u64),
) -> Result<String, Error> {
    let failed = |tail: String| Error::Go {
        command: format!("go {}", args.first().copied().unwrap_or_default()),
        bundle: bundle.name(),
        needs: bundle.needs(),
        tail,
    };
    let mut child = command(bundle, folder, args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::GoIsMissing)?;
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(failed("it has no output".to_owned()));
    };
    let output = tokio::spawn(read_all(stdout));
    let mut lines = BufReader::new(stderr).lines();
    let mut tail = VecDeque::new();
    let mut count = 0;
    while let Ok(Some(line)) = lines.next_line().await {
        count += 1;
        seen(&line, count);
        tail.push_back(line);
        if tail.len() > ERROR_LINES {
            tail.pop_front();
        }
    }
    let status = child.wait().await.map_err(|error| failed(error.to_string()))?;
    if status.code() == Some(NOT_FOUND) {
        return Err(Error::GoIsMissing(io::ErrorKind::NotFound.into()));
    }
    if !status.success() {
        return Err(failed(Vec::from(tail).join("\n")));
    }
    output.await.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))
}

async fn read_all(mut stdout: ChildStdout) -> io::Result<String> {
    let mut text = String::new();
    stdout.read_to_string(&mut text).await?;
    Ok(text)
}

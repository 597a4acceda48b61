//! Lets cargo compile the box and the operator.

use std::process::Stdio;

use box_materials::base::progress::Progress;
use box_materials::base::workspace;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use crate::Failure;

/// What is compiled.
pub const WHAT: &str = "the box, the operator and the AWS SDK";

/// How long that takes on two cores; alone, two minutes more, since one of them has nothing to do while the
/// other compiles the SDK for EC2 (measured on 2026-11-22, without any cache).
pub const SECONDS: u64 = 470;

const FAILED: &str = "failed to compile the box and the operator: see cargo's message";

/// On a terminal with cargo's own progress.
pub async fn on_terminal() -> Result<(), Failure> {
    if cargo().status().await?.success() { Ok(()) } else { Err(FAILED.into()) }
}

/// While something else is made and shown, too.
pub async fn beside(progress: &Progress) -> Result<(), Failure> {
    progress.begin(&format!("compiling {WHAT}"));
    let mut cargo = cargo();
    // The line that cargo otherwise shows on terminals only: "Building [==>  ] 213/390: aws-sdk-ec2".
    cargo.env("CARGO_TERM_PROGRESS_WHEN", "always").env("CARGO_TERM_PROGRESS_WIDTH", "100");
    cargo.env("CARGO_TERM_COLOR", "never").stderr(Stdio::piped());
    let mut child = cargo.spawn()?;
    let mut output = child.stderr.take().ok_or("cargo has no output")?;
    let (mut line, mut said, mut buffer) = (Vec::new(), String::new(), [0; 4096]);
    loop {
        let count = output.read(&mut buffer).await?;
        for &byte in buffer.iter().take(count) {
            if byte == b'\r' || byte == b'\n' {
                show(&String::from_utf8_lossy(&line), progress, &mut said);
                line.clear();
            } else {
                line.push(byte);
            }
        }
        if count == 0 {
            break;
        }
    }
    if child.wait().await?.success() {
        progress.end("compiled the box and the operator");
        return Ok(());
    }
    progress.clear();
    Err(format!("{FAILED}\n{said}").into())
}

/// Shows a line of cargo's; what is not about progress is kept, for the case that cargo fails.
fn show(line: &str, progress: &Progress, said: &mut String) {
    if let Some((done, total, what)) = pieces(line) {
        progress.at(done, total, &format!("packages compiled, now {what}"));
    } else if !line.trim_start().starts_with("Compiling ") {
        said.push_str(line);
        said.push('\n');
    }
}

/// The numbers in cargo's line of progress, and what it is at.
fn pieces(line: &str) -> Option<(u64, u64, &str)> {
    let (_, numbers) = line.split_once("] ")?;
    let (numbers, what) = numbers.split_once(": ").unwrap_or((numbers, "the next one"));
    let (done, total) = numbers.split_once('/')?;
    Some((done.trim().parse().ok()?, total.trim().parse().ok()?, what.trim_end()))
}

/// Compiles both packages, so that every dependency has the features that it was compiled with for this
/// program.
fn cargo() -> Command {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--package", "freehold", "--package", "freehold-box"]);
    cargo
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_read_from_cargos_line() {
        let line = "    Building [=======>     ] 213/390: aws-sdk-ec2, tokio(build.rs)";
        assert_eq!(pieces(line), Some((213, 390, "aws-sdk-ec2, tokio(build.rs)")));
        assert_eq!(pieces("    Building [=>    ] 3/390"), Some((3, 390, "the next one")));
        for other in ["   Compiling tokio v1.54.1", "error[E0308]: mismatched types", ""] {
            assert_eq!(pieces(other), None, "{other}");
        }
    }
}

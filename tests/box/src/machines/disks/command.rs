//! Runs a well-known program and says what it said when it failed.

use std::io;
use std::process::{Command, Stdio};

use super::error::Error;

/// Runs it and gives its standard output back, without the last line break.
pub(super) fn run(doing: &str, program: &str, args: &[&str]) -> Result<String, Error> {
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| Error::Missing { doing: doing.to_owned(), program: program.to_owned(), source })?;
    if !output.status.success() {
        return Err(Error::Command {
            doing: doing.to_owned(),
            command: format!("{program} {}", args.join(" ")),
            said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// Names what was being done to a file.
pub(super) fn failed(doing: String) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::File { doing, source }
}

//! `freehold release`: shows what becomes of a database without Freehold, and with `--write` releases it.

mod error;
mod found;
mod inspect;
mod preflight;
mod report;
mod write;

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "a json! reads best where it is used")]
mod tests;

use std::time::Duration;

use clap::Args;
use kube::Client;

use crate::command::finding::Level;
use crate::command::progress::Output;
use crate::command::target::Target;
pub use error::ReleaseError;
use report::Report;

/// The options of `freehold release`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The Database.
    #[arg(value_name = "NAMESPACE/NAME")]
    database: Target,

    /// Sets spec.release, deletes the Database, and waits until it is gone. Without it nothing is changed
    /// anywhere.
    #[arg(long)]
    write: bool,

    /// Seconds to wait with --write until the Database is gone. An end of the wait changes nothing: the
    /// operator goes on.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,

    /// How the report is printed. With JSON, the lines of --write go to the standard error.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// How it ended, other than by an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The database can be released, or is.
    Releasable,
    /// A blocker stands before it; nothing was changed.
    Blocked,
}

/// Prints the report, and with `--write` releases the database.
pub async fn run(options: &Options, client: &Client) -> Result<Outcome, ReleaseError> {
    let found = inspect::inspect(client, &options.database).await?;
    let checks = preflight::check(&found);
    let is_blocked = checks.iter().any(|finding| finding.level == Level::Blocker);
    let report = Report::new(&found, checks);
    match options.output {
        Output::Text => print!("{}", report.text(options.write)),
        Output::Json => println!("{}", serde_json::to_string_pretty(&report)?),
    }
    if is_blocked {
        return Ok(Outcome::Blocked);
    }
    if options.write {
        let say = |line: &str| options.output.say(line);
        let limit = Duration::from_secs(options.timeout);
        write::release(client, &found, limit, &say).await?;
    }
    Ok(Outcome::Releasable)
}

//! `freehold adopt`: finds a database that runs, shows what Freehold would do, and with `--write` begins it.

mod choices;
mod engine;
mod error;
mod finding;
mod found;
mod inspect;
mod later;
mod preflight;
mod render;
mod report;
mod wanted;
mod write;

#[cfg(test)]
mod tests;

use std::time::Duration;

use clap::{Args, ValueEnum};
use kube::Client;

use crate::cloud::Cloud;
pub use error::AdoptError;
use finding::Level;
use report::Report;
use wanted::Wanted;
use write::Writer;

/// The options of `freehold adopt`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    wanted: Wanted,

    /// Identifies the cluster in tags, as the operator's --cluster-id does. Default: the UID of the namespace
    /// kube-system.
    #[arg(long, value_name = "ID")]
    cluster_id: Option<String>,

    /// Begins the adoption. Without it nothing is changed anywhere.
    #[arg(long)]
    write: bool,

    /// Seconds to wait with --write until the Database is Ready. An end of the wait changes nothing: the
    /// operator goes on.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,

    /// How the report is printed. With JSON, the lines of --write go to the standard error.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// How the report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// How it ended, other than by an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The database can be adopted, or is.
    Adoptable,
    /// A blocker stands before it; nothing was changed.
    Blocked,
}

/// Prints the report, and with `--write` begins the adoption.
pub async fn run(options: &Options, client: &Client, cloud: &dyn Cloud) -> Result<Outcome, AdoptError> {
    let wanted = &options.wanted;
    let found = inspect::inspect(client, cloud, options.cluster_id.as_ref(), wanted).await?;
    let findings = preflight::check(&found, wanted);
    let is_blocked = findings.iter().any(|finding| finding.level == Level::Blocker);
    let report = Report::new(&found, wanted, findings)?;
    match options.output {
        Output::Text => print!("{}", report.text(options.write)),
        Output::Json => println!("{}", serde_json::to_string_pretty(&report)?),
    }
    let Some(database) = render::database(&found, wanted).filter(|_| !is_blocked) else {
        return Ok(Outcome::Blocked);
    };
    if options.write {
        let say = |line: &str| match options.output {
            Output::Text => println!("  {line}"),
            Output::Json => eprintln!("{line}"),
        };
        let writer = Writer { client, cloud, say: &say };
        writer.begin(&found.cluster_id, &database, wanted).await?;
        writer.ready(&database, Duration::from_secs(options.timeout)).await?;
        say(&report::afterwards(&database));
    }
    Ok(Outcome::Adoptable)
}

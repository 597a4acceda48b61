//! `freehold adopt`: finds a database that runs, shows what Freehold would do, and with `--write` begins it.

mod choices;
mod engine;
mod error;
mod fleet;
mod found;
mod image;
mod inspect;
mod later;
mod outcome;
mod preflight;
mod render;
mod report;
mod wanted;
mod write;

#[cfg(test)]
mod tests;

use std::time::Duration;

use clap::{ArgGroup, Args};
use kube::Client;

use crate::cloud::Cloud;
use crate::command::finding::Level;
use crate::command::progress::Output;
use crate::command::target::Target;
pub use error::AdoptError;
use fleet::{Fleet, Many};
pub use outcome::Outcome;
use report::Report;
use wanted::Wanted;
use write::Writer;

/// The options of `freehold adopt`.
#[derive(Args, Clone, Debug)]
#[command(group(ArgGroup::new("which").required(true).args(["stateful_set", "selector", "from"])))]
pub struct Options {
    /// The StatefulSet that runs the database.
    #[arg(long = "statefulset", value_name = "NAMESPACE/NAME")]
    stateful_set: Option<Target>,

    #[command(flatten)]
    many: Many,

    #[command(flatten)]
    wanted: Wanted,

    /// Identifies the cluster in tags, as the operator's --cluster-id does. Default: the UID of the namespace
    /// kube-system.
    #[arg(long, value_name = "ID")]
    cluster_id: Option<String>,

    /// Begins the adoption. Without it nothing is changed anywhere.
    #[arg(long)]
    write: bool,

    /// Seconds to wait with --write until the Database is Ready, for each of many. An end of the wait changes
    /// nothing: the operator goes on.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,

    /// How the report is printed. With JSON, the lines of --write go to the standard error.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// Prints the report, and with `--write` begins the adoption.
pub async fn run(options: &Options, client: &Client, cloud: &dyn Cloud) -> Result<Outcome, AdoptError> {
    let (cluster_id, timeout) = (options.cluster_id.as_ref(), Duration::from_secs(options.timeout));
    let Some(stateful_set) = options.stateful_set.clone() else {
        let fleet = Fleet { client, cloud, cluster_id, timeout, output: options.output };
        return fleet.run(&options.many, &options.wanted, options.write).await;
    };
    let wanted = &Wanted { stateful_set, ..options.wanted.clone() };
    let found = inspect::inspect(client, cloud, cluster_id, wanted).await?;
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
        let say = |line: &str| options.output.say(line);
        let writer = Writer { client, cloud, say: &say };
        writer.begin(&found.cluster_id, &database, wanted).await?;
        writer.ready(&database, timeout).await?;
        say(&report::afterwards(&database));
    }
    Ok(Outcome::Adoptable)
}

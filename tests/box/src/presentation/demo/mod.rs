//! The demo: a database's life on a box of its own, told as it happens and checked on the API server and in EC2.

pub(crate) mod chapters;
pub(crate) mod cluster_objects;
pub(crate) mod common;
pub(crate) mod host;
mod inside;
mod installed;
pub(crate) mod operator;
pub(crate) mod parts;
pub(crate) mod report;
mod running;
pub(crate) mod setup;
mod story;
pub(crate) mod teller;
pub(crate) mod world;

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;

use crate::account::node_kind::{NodeKind, Wanted};
use crate::base::cache::Cache;
use crate::machines::machine;
use crate::presentation::daemon::{self, Pace, Record};
use crate::writer::Dialect;
use chapters::Play;
use common::{BOX, Failure, SPEED};
use host::Host;
use report::{Report, Step};
use running::Running;
use setup::{box_up, on_stage};
use world::{Calls, Eyes};

/// What `cargo demo` takes.
#[derive(Debug, Args)]
pub struct Demo {
    /// Leave everything running at the end, and print the lines that point kubectl at it. The database is not deleted then.
    #[arg(long)]
    keep: bool,

    /// Write the table to this file: as a page if its name ends with .md, else as JSON.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// What the machines are. On real ones the database takes rows, which are counted through everything that follows.
    #[arg(long, value_enum, default_value_t)]
    nodes: Wanted,

    /// The database's engine.
    #[arg(long, value_enum, default_value_t = Dialect::Questdb)]
    engine: Dialect,
}

impl Demo {
    /// Runs it; an error means that something was not seen to be true, or that it was stopped by Ctrl-C or SIGTERM.
    pub async fn run(self, cache: &Cache) -> Result<(), Failure> {
        let nodes = self.nodes.decide(&machine::missing(cache))?;
        on_stage(cache, nodes, self.keep, async |binary| self.show(cache, nodes, &binary).await).await
    }

    /// All of it, once what it needs is there.
    async fn show(&self, cache: &Cache, nodes: NodeKind, binary: &Path) -> Result<(), Failure> {
        let record = box_up(cache, nodes, SPEED, Pace::Fast).await?;
        let (report, operator) = self.live(cache, &record, binary).await?;
        self.write_report(&report)?;
        if self.keep {
            print!("{}", kept(&record));
        } else {
            operator.stop().await?;
            println!("{}", daemon::down(cache, BOX).await?);
        }
        println!(
            "every step was seen to be true on the API server and in EC2{}",
            match record.nodes {
                NodeKind::Real => ", and no acknowledged row is lost",
                NodeKind::Virtual => "",
            }
        );
        Ok(())
    }

    /// The database's life.
    async fn live(&self, cache: &Cache, record: &Record, binary: &Path) -> Result<(Report, Running), Failure> {
        let client = cluster_objects::client(&record.kubeconfig).await?;
        let eyes = Eyes::new(client.clone(), &record.endpoint)?;
        let mut report = Report { host: Host::this("cargo demo"), ..Report::default() };

        let started = Instant::now();
        let operator = Running::start(cache, binary, record, &client).await?;
        println!("operator: {} runs as {}", binary.display(), operator.place().await?);
        report.add(Step::new("operator installed and ready", started.elapsed(), eyes.calls_since(0).await?));

        let (engine, keep) = (self.engine, self.keep);
        let mut play = Play { engine, keep, cache, binary, record, client, eyes, operator, report, promised: Calls::new() };
        if let Err(error) = play.play().await {
            eprintln!("what was seen until then:\n{}", play.report);
            eprintln!("the operator's log ends with:\n{}", play.operator.tail().await);
            return Err(error);
        }
        println!("\n{}", play.report);
        report::judge(&play.eyes.changes().await?, &play.promised)?;
        Ok((play.report, play.operator))
    }

    fn write_report(&self, report: &Report) -> Result<(), Failure> {
        let Some(path) = &self.report else { return Ok(()) };
        let text = if path.extension().is_some_and(|extension| extension == "md") {
            report.markdown().into_bytes()
        } else {
            serde_json::to_vec_pretty(report)?
        };
        std::fs::write(path, text).map_err(|error| format!("failed to write {}: {error}", path.display()))?;
        println!("the table is in {}", path.display());
        Ok(())
    }
}

/// How to go on by hand, and how to end it.
fn kept(record: &Record) -> String {
    format!(
        "everything goes on running. To look around:\n\n{}\n    kubectl get databases,nodes.freehold.dev,volumes.freehold.dev\n\n\
         To end it: cargo box down --name {BOX}\n",
        record.exports()
    )
}

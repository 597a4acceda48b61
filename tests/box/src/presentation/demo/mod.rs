//! The demo: the life of a database on a box of its own, printed as it happens and checked on the API server
//! and in EC2.

mod adoption;
pub(crate) mod cluster_objects;
pub(crate) mod common;
pub(crate) mod example;
pub(crate) mod host;
mod milestones;
pub(crate) mod observer;
mod operator;
mod operator_pod;
pub(crate) mod operator_process;
pub(crate) mod parts;
mod pod_access;
pub(crate) mod report;
pub(crate) mod reporter;
pub(crate) mod rows;
pub(crate) mod setup;
pub(crate) mod steps;
pub(crate) mod world;

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;

use crate::account::node_kind::{NodeKind, Wanted};
use crate::base::cache::Cache;
use crate::machines::machine;
use crate::presentation::daemon::{self, Pace, Record, parse_name};
use crate::writer::Dialect;
use common::{BOX, Failure, SPEED, write_report};
use host::Host;
use observer::{Calls, Observer};
use operator::Operator;
use report::{Report, Step};
use setup::{box_up, with_demo_box};
use steps::Steps;

/// What `cargo demo` takes.
#[derive(Debug, Args)]
pub struct Demo {
    /// The name of its box; demos of different names run side by side.
    #[arg(long, default_value = BOX, value_parser = parse_name)]
    name: String,

    /// Leave everything running at the end, and print the lines that point kubectl at it. The database is not
    /// deleted then.
    #[arg(long)]
    keep: bool,

    /// Write the table to this file: as a page if its name ends with .md, else as JSON.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// What the machines are. On real ones the database takes rows, which are counted through everything that
    /// follows.
    #[arg(long, value_enum, default_value_t)]
    nodes: Wanted,

    /// Show the chapter on adoption instead: a database that Freehold never made is adopted while it takes
    /// rows, released as it was found, adopted again, and lives on as any other.
    #[arg(long)]
    adopt: bool,

    /// The database's engine.
    #[arg(long, value_enum, default_value_t = Dialect::Questdb)]
    engine: Dialect,
}

impl Demo {
    /// Runs the demo; an error means that a step could not be verified, or that it was stopped by Ctrl-C or
    /// SIGTERM.
    pub async fn run(self, cache: &Cache) -> Result<(), Failure> {
        let nodes = self.nodes.decide(&machine::missing(cache))?;
        with_demo_box(cache, &self.name, nodes, self.keep, async |binary| {
            self.show(cache, nodes, &binary).await
        })
        .await
    }

    /// Runs all steps, once everything that they need is built.
    async fn show(&self, cache: &Cache, nodes: NodeKind, binary: &Path) -> Result<(), Failure> {
        let record = box_up(cache, &self.name, nodes, SPEED, Pace::Fast).await?;
        let (report, operator) = self.live(cache, &record, binary).await?;
        self.write_report(&report)?;
        if self.keep {
            print!("{}", kept(&record));
        } else {
            operator.stop().await?;
            println!("{}", daemon::down(cache, &self.name).await?);
        }
        println!(
            "every step was verified on the API server and in EC2{}",
            match record.nodes {
                NodeKind::Real => ", and no acknowledged row was lost",
                NodeKind::Virtual => "",
            }
        );
        Ok(())
    }

    /// The steps of the database's life, and the check of the operator's calls.
    async fn live(
        &self,
        cache: &Cache,
        record: &Record,
        binary: &Path,
    ) -> Result<(Report, Operator), Failure> {
        let client = cluster_objects::client(&record.kubeconfig).await?;
        let observer = Observer::new(client.clone(), &record.endpoint)?;
        let mut report = Report { host: Host::this("cargo demo"), ..Report::default() };

        let started = Instant::now();
        let operator = Operator::start(cache, binary, record, &client).await?;
        println!("operator: {} runs as {}", binary.display(), operator.place().await?);
        report.add(Step::new(
            "operator installed and ready",
            started.elapsed(),
            observer.calls_since(0).await?,
        ));

        let (engine, keep) = (self.engine, self.keep);
        let expected_calls = Calls::new();
        let mut steps =
            Steps { engine, keep, cache, binary, record, client, observer, operator, report, expected_calls };
        let outcome = if self.adopt { steps.run_adoption().await } else { steps.run().await };
        if let Err(error) = outcome {
            eprintln!("steps completed before the error:\n{}", steps.report);
            eprintln!("the operator's log ends with:\n{}", steps.operator.tail().await);
            return Err(error);
        }
        println!("\n{}", steps.report);
        report::check_calls(&steps.observer.changes().await?, &steps.expected_calls)?;
        Ok((steps.report, steps.operator))
    }

    fn write_report(&self, report: &Report) -> Result<(), Failure> {
        let Some(path) = &self.report else { return Ok(()) };
        let text = if path.extension().is_some_and(|extension| extension == "md") {
            report.markdown().into_bytes()
        } else {
            serde_json::to_vec_pretty(report)?
        };
        write_report(Some(path), "the report was written to", text)
    }
}

/// What `--keep` prints: how to look around, and how to stop everything.
fn kept(record: &Record) -> String {
    format!(
        "everything is left running. To look around:\n\n{}\n    kubectl get \
         databases,nodes.freehold.dev,volumes.freehold.dev\n\n\
         To stop it: cargo box down --name {}\n",
        record.exports(),
        record.name
    )
}

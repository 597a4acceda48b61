//! The measurement: how long a client is without its database in a planned replacement and after a loss,
//! beside what Kubernetes alone can do in the same run.

mod experiment;
mod log;
mod manual;
mod moments;
mod results;
mod variant;

use std::path::{Path, PathBuf};

use clap::Args;

use crate::account::node_kind::{NodeKind, Wanted};
use crate::base::cache::Cache;
use crate::machines::machine;
use crate::presentation::daemon::{self, Pace};
use crate::presentation::demo::common::{BOX, Failure, write_report};
use crate::presentation::demo::host::{self, Host};
use crate::presentation::demo::setup::{box_up, with_demo_box};
use crate::writer::Dialect;
use experiment::{Experiment, SPEED};
use results::{PaceResults, Results, Series};
use variant::Variant;

/// What `cargo box measure` takes.
#[derive(Debug, Args)]
pub struct Measure {
    /// Write the tables to this file, as a page.
    #[arg(long, value_name = "FILE.md")]
    report: Option<PathBuf>,

    /// How often each way is run.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=20))]
    runs: u8,

    /// Which ways; all if none is named.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Variant>,

    /// How long EC2 and the machines take.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Pace::Zero, Pace::Realistic])]
    delays: Vec<Pace>,

    /// How many rows the database has, beside those that the client writes.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,

    /// The database's engine.
    #[arg(long, value_enum, default_value_t = Dialect::Questdb)]
    engine: Dialect,
}

impl Measure {
    /// Runs it, on real machines; an error means that a row was lost or a database did not come back.
    pub async fn run(self, cache: &Cache) -> Result<(), Failure> {
        let nodes = Wanted::Real.decide(&machine::missing(cache))?;
        with_demo_box(cache, BOX, nodes, false, async |binary| self.measure(cache, nodes, &binary).await)
            .await
    }

    async fn measure(&self, cache: &Cache, nodes: NodeKind, binary: &Path) -> Result<(), Failure> {
        let what = format!("{} with {} rows", self.engine, self.rows);
        let mut results = Results { host: Host::this("cargo box measure"), what, paces: Vec::new() };
        for &pace in &self.delays {
            println!("\n── delays: {}", pace.as_str());
            let pace_results = self.pace_results(cache, nodes, binary, pace).await?;
            println!("\n{pace_results}");
            results.paces.push(pace_results);
            write_report(self.report.as_deref(), "the tables are in", results.markdown())?;
        }
        println!("no acknowledged row was lost");
        Ok(())
    }

    /// The operator's ways first, then it is stopped, and the same database goes the bare ones.
    async fn pace_results(
        &self,
        cache: &Cache,
        nodes: NodeKind,
        binary: &Path,
        pace: Pace,
    ) -> Result<PaceResults, Failure> {
        let load = host::load();
        let record = box_up(cache, BOX, nodes, SPEED, pace).await?;
        let mut experiment = Experiment::set_up(cache, &record, binary, self.engine, self.rows).await?;
        let mut pace_results = PaceResults { pace, load, series: Vec::new() };
        for variant in
            [Variant::PlannedReplacement, Variant::KilledInstance, Variant::BareMove, Variant::BareLoss]
        {
            if !self.only.is_empty() && !self.only.contains(&variant) {
                continue;
            }
            if !variant.is_the_operators() {
                experiment.stop_operator().await?;
            }
            let mut runs = Vec::new();
            for number in 1..=self.runs {
                let run = experiment.run(variant).await?;
                println!("  {} {number} of {}: {run}", variant.as_str(), self.runs);
                runs.push(run);
            }
            pace_results.series.push(Series { variant, runs });
        }
        experiment.tear_down().await?;
        println!("{}", daemon::down(cache, BOX).await?);
        Ok(pace_results)
    }
}

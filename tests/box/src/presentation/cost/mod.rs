//! What the operator takes for many databases: processor time, memory, requests to the API server and calls
//! to EC2, beside the goals for them.

mod bench;
mod counters;
mod floor;
mod reactions;
mod requests;
mod results;
mod stage;

use std::path::{Path, PathBuf};
use std::time::Duration;

use box_materials::base::workspace::Commit;
use box_materials::release;
use clap::Args;

use crate::account::node_kind::NodeKind;
use crate::base::cache::Cache;
use crate::presentation::daemon::{self, Pace};
use crate::presentation::demo::common::{BOX, Failure, write_report};
use crate::presentation::demo::host::{self, Host};
use crate::presentation::demo::setup::{box_up, with_demo_box};
use bench::{Bench, SPEED};
use results::Results;
use stage::Stage;

/// What `cargo box cost` takes.
#[derive(Debug, Args)]
pub struct Cost {
    /// How many databases are created at once.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=5000))]
    databases: u32,

    /// Write the tables to this file, as a page.
    #[arg(long, value_name = "FILE.md")]
    report: Option<PathBuf>,

    /// A program that was built of this workspace, to measure in place of one built for release: one built
    /// for tests takes several times as much processor time and memory.
    #[arg(long, value_name = "FILE")]
    operator: Option<PathBuf>,
}

impl Cost {
    /// Runs it; an error means that a database did not become as it was wanted. A goal that is not met is
    /// none.
    pub async fn run(self, cache: &Cache) -> Result<(), Failure> {
        with_demo_box(cache, BOX, NodeKind::Virtual, false, async |_| self.measure(cache).await).await
    }

    async fn measure(&self, cache: &Cache) -> Result<(), Failure> {
        let (binary, which) = if let Some(binary) = &self.operator {
            (binary.canonicalize()?, "the operator that was given")
        } else {
            println!("building the operator for release (about 20 min on two cores the first time)");
            (release::build_operator().await?, "the operator built for release")
        };
        let what = format!("{} databases of QuestDB on virtual machines; {which}.", self.databases);
        let commit = Commit::checked_out().await.map_or_else(|| "unknown".to_owned(), |commit| commit.id);
        let day = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
        let (host, load) = (Host::this("cargo box cost"), host::load());
        let stages = self.stages(cache, &binary).await?;
        let results = Results { host, day, commit, what, load, stages };
        println!("\n{results}");
        write_report(self.report.as_deref(), "the tables are in", results.markdown())
    }

    async fn stages(&self, cache: &Cache, binary: &Path) -> Result<Vec<Stage>, Failure> {
        // EC2 takes no time, so that its buckets and the operator's work are all that takes any; kubelets are
        // as slow as they are.
        let record = box_up(cache, BOX, NodeKind::Virtual, SPEED, Pace::Zero).await?;
        let mut bench = Bench::set_up(cache, &record, binary, self.databases).await?;
        let created = show(bench.create().await?);
        let grown = show(bench.grow().await?);
        let restarted = show(bench.restart().await?);
        let idle = show(bench.idle().await?);
        let deleted = show(bench.delete().await?);
        bench.tear_down().await?;
        println!("{}", daemon::down(cache, BOX).await?);
        Ok(vec![created, grown, restarted, idle, deleted])
    }
}

/// Prints that a stage is over.
fn show(stage: Stage) -> Stage {
    let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
    let until = stage
        .until
        .map_or_else(String::new, |until| format!(", all were as wanted after {}", seconds(until)));
    println!("{}: {}{until}", stage.kind.as_str(), seconds(stage.counted));
    stage
}

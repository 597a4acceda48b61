//! The command line: `up`, `down`, `status`, `env`, the demo, the measurements, the operator's image, helm,
//! and the daemon that `up` starts.

use std::error::Error as StdError;
use std::path::PathBuf;

use box_materials::helm::Helm;
use box_materials::release::Release;
use clap::{Args, Parser, Subcommand};
use comfy_table::{Table, presets};

use crate::account::node_kind::{Unable, Wanted};
use crate::base::cache::Cache;
use crate::base::process::Identity;
use crate::base::progress::Progress;
use crate::machines::machine;
use crate::presentation::cost::Cost;
use crate::presentation::daemon::{self, Pace, Settings, parse_name};
use crate::presentation::demo::Demo;
use crate::presentation::measure::Measure;

/// A real Kubernetes control plane with virtual machines and a simulated EC2 on this machine.
#[derive(Debug, Parser)]
#[command(name = "cargo box", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Starts a box in the background and prints the lines that point kubectl and the AWS tools at it.
    Up(Up),
    /// Stops a box, with the operator that a demo left in it, or removes what a killed one left.
    Down(Named),
    /// Shows what runs.
    Status(Named),
    /// Prints the lines that point kubectl and the AWS tools at a running box; for `eval "$(cargo box env)"`.
    Env(Named),
    /// Shows a database's life on a box of its own: created, grown, deleted.
    Demo(Demo),
    /// Measures how long a client is without its database in a planned replacement and after a loss, on real
    /// machines.
    Measure(Measure),
    /// Measures what the operator takes for many databases, on virtual machines: processor time, memory,
    /// requests to the API server, calls to EC2.
    Cost(Cost),
    Image(Release),
    Helm(Helm),
    /// The background process of `up`.
    #[command(hide = true)]
    Daemon(Up),
}

/// Which box.
#[derive(Debug, Args)]
struct Named {
    /// The box's name; boxes of different names run side by side.
    #[arg(long, default_value = "box", value_parser = parse_name)]
    name: String,
}

#[derive(Debug, Args)]
struct Up {
    #[command(flatten)]
    named: Named,

    /// How many virtual seconds pass in EC2 in a second of the wall clock.
    #[arg(long, default_value_t = 1.0)]
    speed: f64,

    /// How long EC2, machines and a silent Node take: fractions of seconds, or as in AWS and Kubernetes.
    #[arg(long, value_enum, default_value_t = Pace::Fast)]
    delays: Pace,

    /// A folder in which the cluster's and EC2's state is kept for the next `up`; without it they end with
    /// the box.
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,

    /// What the machines are.
    #[arg(long, value_enum, default_value_t)]
    nodes: Wanted,
}

impl Cli {
    /// Does what the command line asks.
    pub async fn run(self) -> Result<(), Box<dyn StdError + Send + Sync>> {
        let cache = Cache::from_environment();
        match self.command {
            Command::Up(up) => start(&cache, up).await?,
            Command::Down(named) => println!("{}", daemon::down(&cache, &named.name).await?),
            Command::Status(named) => status(&cache, &named.name),
            Command::Env(named) => match daemon::running(&cache, &named.name) {
                Some(record) => print!("{}", record.exports()),
                None => return Err(not_running(&named.name).into()),
            },
            Command::Demo(demo) => demo.run(&cache).await?,
            Command::Measure(measure) => measure.run(&cache).await?,
            Command::Cost(cost) => cost.run(&cache).await?,
            Command::Image(release) => release.run().await?,
            Command::Helm(helm) => match helm.run().await? {},
            Command::Daemon(up) => daemon::serve(&cache, &up.into_settings(&cache)?).await?,
        }
        Ok(())
    }
}

impl Up {
    fn into_settings(self, cache: &Cache) -> Result<Settings, Unable> {
        let nodes = self.nodes.decide(&machine::missing(cache))?;
        Ok(Settings { name: self.named.name, speed: self.speed, pace: self.delays, state: self.state, nodes })
    }
}

async fn start(cache: &Cache, up: Up) -> Result<(), Box<dyn StdError + Send + Sync>> {
    let settings = up.into_settings(cache)?;
    if let Some(record) = daemon::running(cache, &settings.name) {
        eprintln!(
            "box `{}` is already running; `cargo box down{}` stops it",
            settings.name,
            named(&settings.name)
        );
        print!("{}", record.exports());
        return Ok(());
    }
    // Here and not in the background: it takes minutes the first time, and its progress belongs on this
    // terminal.
    settings.nodes.prepare(cache, &Progress::on_stderr()).await?;
    let progress = Progress::on_stderr();
    let record = daemon::up(cache, &settings, &progress).await?;
    progress.end(&format!("box `{}` is up; its log: {}", settings.name, record.log.display()));
    print!("{}", record.exports());
    Ok(())
}

fn not_running(name: &str) -> String {
    format!("no box `{name}` is running; `cargo box up{}` starts it", named(name))
}

/// What a command line needs to mean this box; nothing for the default one.
fn named(name: &str) -> String {
    if name == "box" { String::new() } else { format!(" --name {name}") }
}

fn status(cache: &Cache, name: &str) {
    let Some(record) = daemon::running(cache, name) else {
        println!("{}", not_running(name));
        return;
    };
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(["COMPONENT", "STATE", "PID", "ADDRESS"]);
    table.add_row(["box", "running", &record.identity.id.to_string(), ""]);
    for component in &record.components {
        let state = if Identity::of(component.id).is_some() { "running" } else { "ended" };
        table.add_row([component.name.as_str(), state, &component.id.to_string(), &component.address]);
    }
    table.add_row(["ec2", "running", &record.identity.id.to_string(), &record.endpoint]);
    println!("{table}");
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_name_that_cannot_be_a_folder_is_refused() {
        assert_eq!(parse_name("box-2"), Ok("box-2".to_owned()));
        for name in ["", "..", "a/b", "Box", "a b", &"a".repeat(31)] {
            assert!(parse_name(name).is_err(), "{name}");
        }
    }
}

//! The demo: a database's life on a box of its own, told as it happens and checked on the API server and in EC2.

pub(crate) mod chapters;
pub(crate) mod host;
mod inside;
mod installed;
pub(crate) mod operator;
pub(crate) mod parts;
pub(crate) mod report;
mod running;
mod story;
pub(crate) mod teller;
pub(crate) mod world;

use std::error::Error as StdError;
use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use freehold::api::NodeClass;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use tokio::signal::unix::{SignalKind, signal};

use crate::account::node_kind::{NodeKind, Wanted};
use crate::base::cache::{Cache, make_private_folder};
use crate::base::progress::Progress;
use crate::cluster::control_plane::OPERATOR_USER;
use crate::machines::machine;
use crate::presentation::daemon::{self, Pace, Record, Settings};
use crate::writer::Dialect;
use chapters::Play;
use host::Host;
use report::{Report, Step};
use running::Running;
use world::{Calls, Eyes};

/// The demo's box, beside any box of the developer's own.
pub(crate) const BOX: &str = "demo";

/// How many times faster than real time the operator and EC2's clock run.
const SPEED: f64 = 5.0;

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

/// Why something was not seen to be true.
pub(crate) type Failure = Box<dyn StdError + Send + Sync>;

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
        let client = client(&record.kubeconfig).await?;
        let eyes = Eyes::new(client.clone(), &record.endpoint)?;
        let mut report = Report { host: Host::this("cargo demo"), ..Report::default() };

        let started = Instant::now();
        let operator = Running::start(cache, binary, record, &client).await?;
        println!("operator: {} runs as {}", binary.display(), operator.place().await?);
        report.add(Step::new("operator installed and ready", started.elapsed(), eyes.calls_since(0).await?));

        let mut play = Play { demo: self, cache, binary, record, client, eyes, operator, report, promised: Calls::new() };
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

/// Runs something on the demo's box: alone, with the operator's binary and all else that it needs built, and the box goes down when
/// it fails, unless it is to be kept, or is stopped by Ctrl-C or SIGTERM.
pub(crate) async fn on_stage(
    cache: &Cache,
    nodes: NodeKind,
    keep: bool,
    show: impl AsyncFnOnce(PathBuf) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let _turn = take_turn(cache)?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let stopped = async {
        tokio::select! {
            _ = interrupt.recv() => "stopped by Ctrl-C",
            _ = terminate.recv() => "stopped by SIGTERM",
        }
    };
    tokio::pin!(stopped);

    let binary = tokio::select! {
        binary = prepare(cache, nodes) => binary?,
        how = &mut stopped => return Err(how.into()),
    };
    let (outcome, leave) = tokio::select! {
        outcome = show(binary) => (outcome, keep),
        how = &mut stopped => (Err(how.into()), false),
    };
    if outcome.is_err() && leave {
        eprintln!("the box goes on running, for a look at what went wrong; `cargo box down --name {BOX}` ends it and its operator");
    } else if outcome.is_err() {
        match daemon::down(cache, BOX).await {
            Ok(done) => eprintln!("{done}"),
            Err(error) => eprintln!("{}; `cargo box down --name {BOX}` tries it again", crate::base::error_chain::chain(&error)),
        }
    }
    outcome
}

/// Starts the box, with time passing at this speed.
pub(crate) async fn box_up(cache: &Cache, nodes: NodeKind, speed: f64, pace: Pace) -> Result<Record, Failure> {
    let progress = Progress::on_stderr();
    let settings = Settings { name: BOX.to_owned(), speed, pace, state: None, nodes };
    let record = daemon::up(cache, &settings, &progress).await?;
    progress.clear();
    println!("box: a real Kubernetes control plane and a simulated EC2 are up ({})", record.endpoint);
    match record.nodes {
        NodeKind::Real => println!("machines: real kubelets, containers and disks on this host"),
        NodeKind::Virtual => println!("machines: virtual; pods run in name only, and no rows are written"),
    }
    Ok(record)
}

/// Held while a demo runs, so that a box without a holder is one that was kept or whose demo was killed. Holds the demo's process
/// id, for the error of the next one.
fn take_turn(cache: &Cache) -> Result<File, Failure> {
    let folder = cache.boxes();
    let path = folder.join("demo.lock");
    let failed = |error: io::Error| format!("failed to use {}: {error}", path.display());
    make_private_folder(&folder).map_err(failed)?;
    let mut lock = File::options().create(true).read(true).write(true).truncate(false).open(&path).map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let id = io::read_to_string(lock).map_err(failed)?;
            return Err(format!("another demo is running: wait for its end, or stop it with Ctrl-C or `kill {}`", id.trim()).into());
        }
        Err(TryLockError::Error(error)) => return Err(failed(error).into()),
    }
    lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id())).map_err(failed)?;
    Ok(lock)
}

/// Builds what is missing and ends what a demo of before left; returns the operator's binary.
async fn prepare(cache: &Cache, nodes: NodeKind) -> Result<PathBuf, Failure> {
    nodes.prepare(cache, &Progress::on_stderr()).await?;
    let binary = operator::build().await?;
    if daemon::is_of_a_demo(cache, BOX) {
        println!("a demo of before was left running and is ended first: {}", daemon::down(cache, BOX).await?);
    } else if daemon::running(cache, BOX).is_some() {
        return Err(format!("a box `{BOX}` is running that no demo left: `cargo box down --name {BOX}` stops it").into());
    }
    Ok(binary)
}

/// The administrator's client.
pub(crate) async fn client(kubeconfig: &Path) -> Result<Client, Failure> {
    let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig)?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &kube::config::KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

/// What an operator that is a process of its own needs: the resource definitions, the NodeClass of the box, and all rights.
pub(crate) async fn install(client: &Client) -> Result<(), Failure> {
    use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use kube::ResourceExt as _;

    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let apply = apply();
    for definition in freehold::definitions::all() {
        let name = definition.name_any();
        definitions.patch(&name, &apply, &Patch::Apply(&definition)).await?;
        let established = kube::runtime::conditions::is_crd_established();
        let wait = kube::runtime::wait::await_condition(definitions.clone(), &name, established);
        tokio::time::timeout(Duration::from_secs(30), wait)
            .await
            .map_err(|_| format!("the API server did not establish {name} within 30 s"))??;
    }
    node_class(client, &example_class()?).await?;
    let rights = serde_json::json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": OPERATOR_USER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": OPERATOR_USER}],
    });
    Api::<ClusterRoleBinding>::all(client.clone()).patch(OPERATOR_USER, &apply, &Patch::Apply(&rights)).await?;
    Ok(())
}

/// The NodeClass of the box.
fn example_class() -> Result<NodeClass, Failure> {
    Ok(serde_norway::from_str(include_str!("../../../../../examples/nodeclass.yaml"))?)
}

async fn node_class(client: &Client, class: &NodeClass) -> Result<(), Failure> {
    use kube::ResourceExt as _;

    Api::<NodeClass>::all(client.clone()).patch(&class.name_any(), &apply(), &Patch::Apply(class)).await?;
    Ok(())
}

fn apply() -> PatchParams {
    PatchParams::apply("freehold-demo").force()
}

/// How to go on by hand, and how to end it.
fn kept(record: &Record) -> String {
    format!(
        "everything goes on running. To look around:\n\n{}\n    kubectl get databases,nodes.freehold.dev,volumes.freehold.dev\n\n\
         To end it: cargo box down --name {BOX}\n",
        crate::presentation::cli::exports(record)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_demo_is_refused_while_the_first_one_runs() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let first = take_turn(&cache).unwrap();
        let refused = take_turn(&cache).unwrap_err().to_string();
        assert!(refused.contains(&format!("kill {}`", std::process::id())), "{refused}");
        drop(first);
        // A process that another test starts at this moment has the lock too, until it becomes its program.
        let started = Instant::now();
        while let Err(error) = take_turn(&cache) {
            assert!(started.elapsed() < Duration::from_secs(10), "{error}");
        }
    }
}

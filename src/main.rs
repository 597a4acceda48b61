//! The binary: `freehold run` is the operator, `freehold crds` writes the resource definitions, `freehold
//! retained` lists the retained volumes, `freehold backups` the backups that EC2 has, `freehold orphans` what
//! EC2 has and no object claims, `freehold adopt` adopts a database that runs, `freehold release` releases
//! one. As `kubectl-freehold` on the PATH it is a plugin: `kubectl freehold adopt`.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use freehold::clock::{Clock as _, SystemClock};
use freehold::cloud::ec2::Ec2;
use freehold::error_chain::Chain;
use freehold::metrics::Metrics;
use freehold::settings::{LogFormat, Settings};
use freehold::term::Term;
use freehold::{adopt, backups, definitions, operator, orphans, release, retained};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// Freehold: a machine of its own for every database.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the operator. The API server comes from the in-cluster configuration or KUBECONFIG, AWS'
    /// credentials from the default chain (IRSA, Pod Identity, environment).
    Run(Box<Settings>),
    /// Write the resource definitions into each of these folders, or to the standard output without any.
    Crds {
        /// The folders.
        folders: Vec<PathBuf>,
    },
    /// List the volumes that were retained when their databases were deleted, and find those whose retention
    /// record was lost. The API server comes from KUBECONFIG.
    Retained(retained::Options),
    /// Find every backup, and every final snapshot, again by its tags in EC2, also on a cluster that knows
    /// nothing of it, with the Database that restores it. Changes nothing. The API server comes from
    /// KUBECONFIG.
    Backups(backups::Options),
    /// List the instances, EBS volumes and snapshots that carry this cluster's tags and that no object
    /// claims, with what you can do about each. Changes nothing. The API server comes from KUBECONFIG, AWS'
    /// credentials and the Region from the default chain.
    Orphans(orphans::Options),
    /// Find a database that runs without Freehold, or many, check it, show what would be done, and with
    /// --write begin to adopt it. The API server comes from KUBECONFIG, AWS' credentials and the Region from
    /// the default chain. Ends with 2 if it cannot be adopted yet.
    Adopt(Box<adopt::Options>),
    /// Show what becomes of a database without Freehold, and with --write release it: it goes on running, and
    /// nothing restarts. The API server comes from KUBECONFIG. Ends with 2 if it cannot be released.
    Release(release::Options),
}

/// The exit code of a database that cannot be adopted or released yet.
const BLOCKED: u8 = 2;

/// The stack of each worker thread, in bytes: a template that another program wrote nests deep, and a debug
/// build reads it with frames of many kilobytes.
const STACK_SIZE: usize = 8 << 20;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = Builder::new_multi_thread().enable_all().thread_stack_size(STACK_SIZE).build();
    match runtime {
        Ok(runtime) => runtime.block_on(execute(cli)),
        Err(error) => {
            eprintln!("freehold: failed to start its threads: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn execute(cli: Cli) -> ExitCode {
    let result = match cli.command {
        Command::Run(settings) => run(*settings).await,
        Command::Crds { folders } if folders.is_empty() => print_definitions(),
        Command::Crds { folders } => {
            folders.iter().try_for_each(|folder| definitions::write(folder)).map_err(Into::into)
        }
        Command::Retained(options) => list_retained(&options).await,
        Command::Backups(options) => list_backups(&options).await,
        Command::Orphans(options) => list_orphans(&options).await,
        Command::Adopt(options) => match adopt_database(&options).await {
            Ok(adopt::Outcome::Blocked) => return ExitCode::from(BLOCKED),
            Ok(adopt::Outcome::Failed) => return ExitCode::FAILURE,
            Ok(adopt::Outcome::Adoptable) => Ok(()),
            Err(error) => Err(error),
        },
        Command::Release(options) => match release_database(&options).await {
            Ok(release::Outcome::Blocked) => return ExitCode::from(BLOCKED),
            Ok(release::Outcome::Releasable) => Ok(()),
            Err(error) => Err(error),
        },
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("freehold: {}", Chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn print_definitions() -> Result<(), Box<dyn std::error::Error>> {
    for (_, text) in definitions::files()? {
        print!("---\n{text}");
    }
    Ok(())
}

async fn list_retained(options: &retained::Options) -> Result<(), Box<dyn std::error::Error>> {
    use_our_tls()?;
    let text = if options.is_from_ec2() {
        let client = kube::Client::try_default().await?;
        let cloud = Ec2::from_env(&Metrics::new()).await;
        retained::run_from_ec2(options, &client, &cloud, &SystemClock).await?
    } else {
        retained::run(options).await?
    };
    print!("{text}");
    Ok(())
}

async fn list_backups(options: &backups::Options) -> Result<(), Box<dyn std::error::Error>> {
    use_our_tls()?;
    let client = kube::Client::try_default().await?;
    let cloud = Ec2::from_env(&Metrics::new()).await;
    print!("{}", backups::run(options, &client, &cloud).await?);
    Ok(())
}

async fn list_orphans(options: &orphans::Options) -> Result<(), Box<dyn std::error::Error>> {
    use_our_tls()?;
    let client = kube::Client::try_default().await?;
    let cloud = Ec2::from_env(&Metrics::new()).await;
    print!("{}", orphans::run(options, &client, &cloud, SystemClock.now()).await?);
    Ok(())
}

async fn adopt_database(options: &adopt::Options) -> Result<adopt::Outcome, Box<dyn std::error::Error>> {
    use_our_tls()?;
    let client = kube::Client::try_default().await?;
    let cloud = Ec2::from_env(&Metrics::new()).await;
    Ok(adopt::run(options, &client, &cloud).await?)
}

async fn release_database(
    options: &release::Options,
) -> Result<release::Outcome, Box<dyn std::error::Error>> {
    use_our_tls()?;
    let client = kube::Client::try_default().await?;
    Ok(release::run(options, &client).await?)
}

/// kube and the AWS SDK use the same provider; rustls must know which.
fn use_our_tls() -> Result<(), &'static str> {
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .map_err(|_| "another TLS provider is installed already")
}

async fn run(settings: Settings) -> Result<(), Box<dyn std::error::Error>> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match settings.log_format {
        LogFormat::Json => log.json().flatten_event(true).init(),
        LogFormat::Text => log.with_ansi(std::io::stderr().is_terminal()).init(),
    }
    use_our_tls()?;
    let stop = CancellationToken::new();
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stopping = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("received a signal to stop; no new reconcile starts");
        stopping.cancel();
    });
    let mut config = kube::Config::infer().await?;
    // What is sent again is asked about again (leadership::gate).
    config.default_retry = false;
    let client = kube::Client::try_from(config)?;
    let metrics = Metrics::new();
    let term = Arc::new(Term::new(Arc::new(SystemClock)));
    let cloud = Arc::new(Ec2::from_env(&metrics).await.within(Arc::clone(&term)));
    Ok(operator::run(settings, client, cloud, metrics, term, stop).await?)
}

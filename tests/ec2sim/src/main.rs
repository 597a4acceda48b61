//! The program: `ec2sim serve` answers on an address until it is told to stop; `ec2sim verify` asks any EC2
//! whether the truths hold there.

mod verify_command;

use std::{collections::BTreeMap, fs, io, net::SocketAddr, path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand, ValueEnum};
use ec2sim::{Clock, Delays, Fault, Limits, Options, Policy, Simulator};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

/// A strict simulator of the part of EC2 and EBS that an operator of single machines lives on.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Answers EC2's Query protocol, and the control API under `/_sim/`.
    Serve(Serve),

    /// Asks an EC2, AWS' or another, whether it behaves as this simulator does, and prints a table of what
    /// differs. Everything that it makes has the tag `ec2sim-verify` and is removed at the end. It fails if
    /// anything differs, or is left.
    Verify(verify_command::Verify),
}

#[derive(clap::Args)]
struct Serve {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,

    /// The file that the journal is appended to, a JSON object a line.
    #[arg(long)]
    journal: Option<PathBuf>,

    /// A JSON list of faults that are there from the start.
    #[arg(long)]
    faults: Option<PathBuf>,

    /// The IAM policy of a caller (an access key id), as a JSON file; once for each caller. A caller without
    /// one may do everything.
    #[arg(long, value_name = "CALLER=FILE", value_parser = read_policy)]
    policy: Vec<(String, Policy)>,

    /// The folder that the state is kept in and taken up from.
    #[arg(long)]
    state: Option<PathBuf>,

    /// Virtual seconds in a second; 0 lets time pass only by the control API's `advance`.
    #[arg(long, default_value_t = 1.0)]
    speed: f64,

    /// How long changes of state take.
    #[arg(long, value_enum, default_value_t = Pace::Fast)]
    delays: Pace,

    /// The rate limits as a share of the figures that AWS publishes; 0 switches them off.
    #[arg(long, default_value_t = 1.0)]
    rate: f64,

    /// What ids and probabilities are drawn from.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

fn read_policy(setting: &str) -> Result<(String, Policy), String> {
    let (caller, path) = setting.split_once('=').ok_or("it is not of the form CALLER=FILE")?;
    let text = fs::read_to_string(path).map_err(|error| format!("failed to read {path}: {error}"))?;
    let policy = Policy::read(&text).map_err(|error| format!("failed to read {path}: {error}"))?;
    Ok((caller.to_owned(), policy))
}

#[derive(Clone, Copy, ValueEnum)]
enum Pace {
    /// None at all.
    Zero,
    /// Fractions of a second.
    Fast,
    /// Seconds to minutes, as on AWS.
    Realistic,
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(io::stderr).init();
    match Cli::parse().command {
        Command::Serve(settings) => match serve(settings).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                tracing::error!("{error}");
                ExitCode::FAILURE
            }
        },
        Command::Verify(arguments) => verify_command::verify(arguments).await,
    }
}

async fn serve(settings: Serve) -> io::Result<()> {
    let options = options(&settings)?;
    let stop = CancellationToken::new();
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let simulator = Simulator::new(options)?;
    let listener = TcpListener::bind(settings.listen).await?;
    println!("ec2sim listening on http://{}", listener.local_addr()?);
    tokio::spawn({
        let stop = stop.clone();
        async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            stop.cancel();
        }
    });
    simulator.serve(listener, stop).await
}

fn options(settings: &Serve) -> io::Result<Options> {
    let faults: Vec<Fault> = match &settings.faults {
        None => Vec::new(),
        Some(path) => serde_json::from_slice(&fs::read(path)?)?,
    };
    let mut policies = BTreeMap::new();
    for (caller, policy) in &settings.policy {
        if policies.insert(caller.clone(), policy.clone()).is_some() {
            return Err(io::Error::other(format!("{caller} has more than one policy")));
        }
    }
    Ok(Options {
        clock: if settings.speed > 0.0 { Clock::Running { speed: settings.speed } } else { Clock::Manual },
        journal: settings.journal.clone(),
        faults,
        policies,
        state: settings.state.clone(),
        seed: settings.seed,
        delays: match settings.delays {
            Pace::Zero => Delays::zero(),
            Pace::Fast => Delays::fast(),
            Pace::Realistic => Delays::realistic(),
        },
        limits: Limits { rate: (settings.rate > 0.0).then_some(settings.rate), ..Limits::default() },
        ..Options::default()
    })
}

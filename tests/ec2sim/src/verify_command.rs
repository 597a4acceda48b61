//! `ec2sim verify`: its arguments, Ctrl-C, and what it prints.

use std::{process::ExitCode, time::Duration};

use ec2sim::{
    Truth,
    verify::{Settings, Wanted, Whom, clean, run, say},
};
use http::Uri;
use strum::IntoEnumIterator as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The exit status after a signal, as shells have it for Ctrl-C.
const INTERRUPTED: u8 = 130;

/// Arguments of `verify`.
#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Verify {
    /// The EC2 that answers here, such as a simulator. It never gets to see any credentials.
    #[arg(long, value_name = "URL", required_unless_present = "aws", conflicts_with = "aws")]
    endpoint: Option<Uri>,

    /// AWS, with the credentials of the environment, the profile, the container or the instance. For SSO:
    /// `eval "$(aws configure export-credentials --format env)"`.
    #[arg(long, requires = "region")]
    aws: bool,

    /// The Region; us-east-1 for an endpoint.
    #[arg(long)]
    region: Option<String>,

    /// Agrees to what a run on AWS makes and costs. Without it that is printed, and nothing is made.
    #[arg(long)]
    yes_create_and_pay: bool,

    /// Asks also what takes up to three hours, and what needs 501 volumes.
    #[arg(long)]
    long: bool,

    /// Asks also about the account's request rates, which uses them up for some seconds: for an account with
    /// nothing else in the Region. A simulator whose time can be stepped is always asked this, and what takes
    /// hours.
    #[arg(long)]
    rates: bool,

    /// The subnet for instances; the default one of the first zone if absent.
    #[arg(long)]
    subnet: Option<String>,

    /// A subnet of another zone; the default one of the second zone if absent.
    #[arg(long)]
    other_subnet: Option<String>,

    /// The image of the instances, for x86; the newest minimal Amazon Linux 2023 if absent.
    #[arg(long)]
    image: Option<String>,

    /// The type of the instances; t3.nano if absent, for an endpoint t3.small.
    #[arg(long)]
    instance_type: Option<String>,

    /// How many seconds a change of state may take.
    #[arg(long, default_value_t = 900)]
    patience: u64,

    /// Asks about this truth only, such as `TokenPerZone`; may be given several times.
    #[arg(long, value_name = "TRUTH", value_parser = read_truth)]
    only: Vec<Truth>,

    /// Asks nothing, and removes what the run of this id has left.
    #[arg(long, value_name = "RUN")]
    clean: Option<String>,
}

fn read_truth(name: &str) -> Result<Truth, String> {
    Truth::iter()
        .find(|truth| format!("{truth:?}") == name)
        .ok_or_else(|| format!("there is no truth {name}"))
}

/// Carries the command out.
pub async fn verify(arguments: Verify) -> ExitCode {
    let stop = CancellationToken::new();
    tokio::spawn(interrupted(stop.clone()));
    let earlier = arguments.clean.clone();
    let settings = settings(arguments);
    let outcome = match earlier {
        Some(run) => clean(&settings, &run).await.map(|left| left.is_empty()),
        None => run(&settings, &stop).await.map(|report| {
            println!("{}", report.table().trim_end());
            report.differing().is_empty() && report.left.is_empty() && !stop.is_cancelled()
        }),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(sentence) => {
            say(&sentence);
            ExitCode::FAILURE
        }
    }
}

fn settings(arguments: Verify) -> Settings {
    let whom = match arguments.endpoint {
        Some(endpoint) => Whom::Endpoint(endpoint),
        None => Whom::Aws { is_agreed: arguments.yes_create_and_pay },
    };
    Settings {
        whom,
        region: arguments.region.unwrap_or_else(|| "us-east-1".to_owned()),
        wanted: Wanted {
            subnet: arguments.subnet,
            other_subnet: arguments.other_subnet,
            image: arguments.image,
            instance_type: arguments.instance_type,
        },
        only: arguments.only,
        is_long: arguments.long,
        takes_rates: arguments.rates,
        patience: Duration::from_secs(arguments.patience),
    }
}

/// Ctrl-C, SIGTERM, or a terminal that is gone: no further check, and what was made is removed. The second
/// one ends the process.
async fn interrupted(stop: CancellationToken) {
    let (Ok(mut terminate), Ok(mut interrupt), Ok(mut hangup)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()), signal(SignalKind::hangup()))
    else {
        return;
    };
    for _ in 0..2 {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
        if stop.is_cancelled() {
            say("stopped before everything was removed; remove the rest with `ec2sim verify --clean RUN`");
            std::process::exit(i32::from(INTERRUPTED));
        }
        stop.cancel();
        say("stopping: what was made is removed; once more ends at once, and leaves it");
    }
}

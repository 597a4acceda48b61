//! One run: what it may cost, the checks one after the other, and the removal of what they made.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use aws_config::{BehaviorVersion, Region};
use aws_credential_types::{Credentials, provider::SharedCredentialsProvider};
use http::Uri;
use jiff::Timestamp;
use strum::IntoEnumIterator as _;
use tokio_util::sync::CancellationToken;

use super::{
    answer::Verdict,
    checks, cleanup, cost,
    place::{self, Place, Wanted},
    report::Report,
    target::{TAG, Target, Time, say},
    wire::Wire,
};
use crate::Truth;

/// Which EC2 is asked.
#[derive(Clone, Debug)]
pub enum Whom {
    /// The one at an endpoint, with credentials that are worth nothing on AWS.
    Endpoint(Uri),

    /// AWS, with the credentials of the environment.
    Aws {
        /// Whether the person has agreed to pay.
        is_agreed: bool,
    },
}

/// What a run does.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which EC2 is asked.
    pub whom: Whom,

    /// Its Region.
    pub region: String,

    /// Where instances are made.
    pub wanted: Wanted,

    /// The truths that are asked about; empty means all.
    pub only: Vec<Truth>,

    /// Whether checks may take hours.
    pub is_long: bool,

    /// Whether checks may use up the account's rates.
    pub takes_rates: bool,

    /// How long a change of state may take.
    pub patience: Duration,
}

/// Asks about the truths, and removes what was made for that. After `stop` no further check is begun.
///
/// # Errors
/// A sentence with the way out if nothing could be asked; nothing was made then.
pub async fn run(settings: &Settings, stop: &CancellationToken) -> Result<Report, String> {
    let is_aws = matches!(settings.whom, Whom::Aws { .. });
    if let Whom::Aws { is_agreed } = settings.whom {
        let instance_type = settings.wanted.instance_type.as_deref().unwrap_or("t3.nano");
        say(&cost::statement(&settings.region, instance_type, settings.is_long, settings.takes_rates));
        if !is_agreed {
            return Err("nothing was made: agree to this with --yes-create-and-pay".to_owned());
        }
    }
    let wire = Arc::new(connect(settings).await?);
    let place = place::find(&wire, &settings.region, &settings.wanted, is_aws).await?;
    let mut ec2 = target(wire, place, &new_id(), settings).await;
    ec2.takes_rates = settings.takes_rates || ec2.time == Time::Stepped;
    ec2.is_paid = is_aws;
    ec2.is_long = settings.is_long;
    say(&format!("run {}: everything that it makes has the tag {TAG}={}", ec2.run, ec2.run));

    let mut report = Report::default();
    let began = Instant::now();
    let end = cost::end(settings.is_long);
    for truth in Truth::iter().filter(|truth| settings.only.is_empty() || settings.only.contains(truth)) {
        let verdict = if stop.is_cancelled() {
            Verdict::NotAsked("the run was interrupted".to_owned())
        } else if ec2.is_paid && began.elapsed() >= end {
            Verdict::NotAsked(format!("the run had taken {} h", end.as_secs() / 3600))
        } else {
            let verdict = tokio::select! {
                verdict = checks::ask(truth, &ec2) => verdict,
                () = stop.cancelled() => Verdict::NotAsked("the run was interrupted".to_owned()),
            };
            cleanup::begin(&ec2).await;
            verdict
        };
        say(&format!("{truth:?}: {} {}", verdict.name(), verdict.detail()));
        report.verdicts.push((truth, verdict));
    }
    say("removing what this run has made");
    report.left = cleanup::everything(&ec2).await;
    tell(&ec2, &settings.region, &report.left);
    Ok(report)
}

/// Removes what an earlier run has made; what is left of it.
///
/// # Errors
/// A sentence with the way out if the EC2 can't be reached, or if this is no id: in EC2's filters `*` and `?`
/// stand for others.
pub async fn clean(settings: &Settings, run: &str) -> Result<Vec<String>, String> {
    if run.is_empty() || !run.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-') {
        return Err(format!("`{run}` is not the id of a run: its first line of output has it"));
    }
    let wire = Arc::new(connect(settings).await?);
    let mut ec2 = target(wire, Place::default(), run, settings).await;
    ec2.is_paid = matches!(settings.whom, Whom::Aws { .. });
    let left = cleanup::everything(&ec2).await;
    tell(&ec2, &settings.region, &left);
    Ok(left)
}

fn tell(ec2: &Target, region: &str, left: &[String]) {
    if left.is_empty() {
        say(&format!(
            "nothing is left in {region}: no volume, no snapshot and no instance but terminated ones has \
             the tag {TAG}={}",
            ec2.run
        ));
    } else {
        let run = &ec2.run;
        say(&format!("left: {}; remove it with `ec2sim verify --clean {run}`", left.join(", ")));
    }
}

async fn connect(settings: &Settings) -> Result<Wire, String> {
    let (endpoint, provider) = match &settings.whom {
        Whom::Endpoint(endpoint) => {
            // Never the person's own: the server there must not see any, and AWS must refuse these.
            if endpoint.host().is_some_and(|host| host.contains("amazonaws.com") || host.ends_with("api.aws"))
            {
                return Err("that is AWS: ask it with --aws, which says before what it costs".to_owned());
            }
            let nobody = Credentials::new(TAG, "unused", None, None, TAG);
            (endpoint.clone(), SharedCredentialsProvider::new(nobody))
        }
        Whom::Aws { .. } => {
            let region = Region::new(settings.region.clone());
            let config = aws_config::defaults(BehaviorVersion::v2026_01_12()).region(region).load().await;
            let provider = config.credentials_provider().ok_or("there are no credentials for AWS")?;
            (aws_endpoint(&settings.region)?, provider)
        }
    };
    Wire::new(endpoint, &settings.region, provider).map_err(|error| error.to_string())
}

/// Source: AWS General Reference, "Amazon EC2 endpoints".
fn aws_endpoint(region: &str) -> Result<Uri, String> {
    let suffix = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    format!("https://ec2.{region}.{suffix}").parse().map_err(|_| format!("{region} is not a Region"))
}

/// The time of a simulator is stepped: no check waits for it.
async fn target(wire: Arc<Wire>, place: Place, run: &str, settings: &Settings) -> Target {
    let is_simulator = match &settings.whom {
        Whom::Aws { .. } => false,
        Whom::Endpoint(_) => {
            matches!(wire.get("/_sim/health").await, Ok((200, body)) if body.contains("\"now\""))
        }
    };
    let time = if is_simulator { Time::Stepped } else { Time::Real };
    Target::new(wire, time, place, run, settings.patience)
}

/// The id of a run: its moment, and the process.
fn new_id() -> String {
    #[expect(clippy::disallowed_methods, reason = "runs differ by when they began")]
    let now = Timestamp::now();
    format!("{}-{}", now.strftime("%Y%m%d-%H%M%S"), std::process::id())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tokio::net::TcpListener;

    use super::*;
    use crate::{Clock, Fate, JournalEntry, Options, Simulator};

    #[tokio::test]
    async fn a_run_makes_no_more_than_its_cost_is_computed_from() {
        let sim = Simulator::new(Options { clock: Clock::Manual, ..Options::default() }).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let served = sim.clone();
        tokio::spawn(async move { served.serve(listener, CancellationToken::new()).await });
        let settings = Settings {
            whom: Whom::Endpoint(endpoint.parse().unwrap()),
            region: "us-east-1".to_owned(),
            wanted: Wanted::default(),
            only: Vec::new(),
            is_long: false,
            takes_rates: false,
            patience: Duration::from_mins(10),
        };
        run(&settings, &CancellationToken::new()).await.unwrap();

        // By id: a token gives the same one again.
        let (mut instances, mut gib) = (BTreeMap::new(), BTreeMap::new());
        let size = |entry: &JournalEntry, key: &str| {
            entry.parameters.get(key).and_then(|size| size.parse::<f64>().ok()).unwrap_or(2.0)
        };
        for entry in sim.journal().into_iter().filter(|entry| entry.fate == Fate::Committed) {
            let made = || entry.resources.last().cloned().unwrap_or_default();
            match entry.action.as_str() {
                "RunInstances" => {
                    let mappings =
                        entry.parameters.keys().filter(|key| key.ends_with("Ebs.VolumeSize")).count();
                    instances.insert(made(), mappings);
                }
                "CreateVolume" | "CreateSnapshot" | "ModifyVolume" => {
                    gib.insert(made(), size(&entry, "Size"));
                }
                _ => {}
            }
        }
        let mapped = f64::from(u32::try_from(instances.values().sum::<usize>()).unwrap());
        let gib = gib.values().sum::<f64>() + mapped;
        let launched = f64::from(u32::try_from(instances.len()).unwrap());
        assert!(launched > 20.0 && launched <= cost::INSTANCES, "{launched} instances");
        // Here the 501 volumes of `--long` are always made.
        assert!(gib > 501.0 && gib <= cost::DATA_LONG, "{gib} GiB");
    }
}

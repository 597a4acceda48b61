//! A named box in the background: starts it, finds it again, stops it.

mod error;
mod files;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use nix::sys::signal::Signal;
use tokio::signal::unix::{SignalKind, signal};

use crate::account::node_kind::NodeKind;
use crate::account::{Machines, Real, Site, SiteOptions, policy};
use crate::base::cache::{Cache, make_private_folder};
use crate::base::process::{Identity, tail};
use crate::base::progress::Progress;
use crate::cluster::control_plane::{ControlPlane, ControlPlaneOptions, NodeTiming};
use crate::cluster::run_folder;

pub use error::Error;
use error::system;
use files::{Files, living, write_identity, write_record};
pub use files::{Record, is_of_a_demo, remember_operator, running, violations};

/// How long a box may take to start once its programs are built.
const UP_LIMIT: Duration = Duration::from_mins(3);
/// How long it usually takes, in seconds; only the progress shows it.
const UP_SECONDS: u64 = 10;
/// How long it, or the operator of its demo, may take to stop before it is killed: the sum of its own limits
/// and some air.
const DOWN_LIMIT: Duration = Duration::from_secs(30);
/// How often its record is looked at.
const POLL: Duration = Duration::from_millis(100);

/// How long things take in a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Pace {
    /// EC2 and the machines' firmware take no time, Kubernetes is as it comes: what is left is the work
    /// itself.
    Zero,
    /// Fractions of seconds: for development and tests.
    Fast,
    /// As in AWS and Kubernetes.
    Realistic,
}

impl Pace {
    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Zero => "zero",
            Self::Fast => "fast",
            Self::Realistic => "realistic",
        }
    }
}

/// A name as a command line has it: it becomes part of paths and of a socket's folder.
pub fn parse_name(text: &str) -> Result<String, String> {
    let is_usable =
        |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
    if (1..=30).contains(&text.len()) && text.chars().all(is_usable) {
        Ok(text.to_owned())
    } else {
        Err("a name has 1 to 30 lower-case letters, digits and hyphens".to_owned())
    }
}

/// What a named box is started with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its name.
    pub name: String,
    /// Virtual seconds in a second of the wall clock.
    pub speed: f64,
    /// How long things take.
    pub pace: Pace,
    /// Where state is kept beyond this run.
    pub state: Option<PathBuf>,
    /// What its machines are.
    pub nodes: NodeKind,
}

impl Settings {
    /// The control plane's options.
    pub fn control_plane(&self, cache: &Cache) -> ControlPlaneOptions {
        ControlPlaneOptions {
            name: self.name.clone(),
            cache: cache.clone(),
            timing: match self.pace {
                Pace::Fast => NodeTiming::fast(),
                Pace::Zero | Pace::Realistic => NodeTiming::kubernetes(),
            },
            state: self.state.clone(),
        }
    }

    /// The site's options. The operator of this cluster has the IAM policy that is shipped.
    pub fn site(&self, real: Option<Real>, cluster_id: &str) -> SiteOptions {
        let mut options = match self.pace {
            Pace::Zero => SiteOptions::zero(),
            Pace::Fast => SiteOptions::fast(),
            Pace::Realistic => SiteOptions::realistic(),
        };
        options.simulator.clock = ec2sim::Clock::Running { speed: self.speed };
        let shipped = policy::shipped(&options.simulator.world, cluster_id);
        options.simulator.policies.insert(policy::OPERATOR.to_owned(), shipped);
        options.simulator.state = self.state.as_ref().map(|folder| folder.join("ec2"));
        options.state.clone_from(&self.state);
        if real.is_some() && self.pace != Pace::Zero {
            // A real machine takes its time to shut down; what is left of it at the end of this loses its
            // power.
            let least = Duration::from_secs(10);
            let delays = &mut options.simulator.delays;
            delays.stopping = delays.stopping.max(least);
            delays.shutting_down = delays.shutting_down.max(least);
        }
        options.real = real;
        options
    }
}

/// Starts a box in a session of its own and waits until it is ready.
pub async fn up(cache: &Cache, settings: &Settings, progress: &Progress) -> Result<Record, Error> {
    let files = Files::of(cache, &settings.name);
    make_private_folder(&files.folder)
        .map_err(system(format!("make the folder {}", files.folder.display())))?;
    let log = File::create(files.log()).map_err(system(format!("write {}", files.log().display())))?;
    let again = log.try_clone().map_err(system("share the log"))?;
    let program = std::env::current_exe().map_err(system("find this program"))?;
    let mut command = Command::new(program);
    command.args(["daemon", "--name", &settings.name, "--speed", &settings.speed.to_string(), "--delays"]);
    command.arg(settings.pace.as_str());
    command.args(["--nodes", settings.nodes.as_str()]);
    if let Some(state) = &settings.state {
        command.arg("--state").arg(state);
    }
    let mut child = command.stdin(Stdio::null()).stdout(log).stderr(again).spawn().map_err(system(
        "start the \
        box in the background",
    ))?;
    // At once, before the box does it: `down` stops it even if this process is interrupted while it waits
    // here.
    if let (None, Some(identity)) = (living(&files.identity()), Identity::of(child.id())) {
        write_identity(&files, identity)?;
    }

    let started = Instant::now();
    loop {
        if let Some(record) = running(cache, &settings.name).filter(|record| record.identity.id == child.id())
        {
            return Ok(record);
        }
        let has_ended = child.try_wait().is_ok_and(|status| status.is_some());
        if has_ended || started.elapsed() > UP_LIMIT {
            if let (false, Some(identity)) = (has_ended, Identity::of(child.id())) {
                identity.signal(Signal::SIGKILL);
            }
            return Err(Error::DidNotStart {
                name: settings.name.clone(),
                log: files.log(),
                tail: tail(&files.log()),
            });
        }
        let what = format!("starting the control plane and EC2 (about {UP_SECONDS} s)");
        progress.at(started.elapsed().as_secs().min(UP_SECONDS), UP_SECONDS, &what);
        tokio::time::sleep(POLL).await;
    }
}

/// Is the box, until SIGTERM or SIGINT.
pub async fn serve(cache: &Cache, settings: &Settings) -> Result<(), Error> {
    // Away from the terminal: a Ctrl-C there is not meant for the box. Fails only for a process that leads a
    // session already.
    let _ = nix::unistd::setsid();
    // The client logs each failed request, and there are many while readiness is asked for.
    let filter = tracing_subscriber::EnvFilter::new("info,kube_client::client::builder=off");
    tracing_subscriber::fmt().with_ansi(false).with_writer(io::stderr).with_env_filter(filter).init();
    let files = Files::of(cache, &settings.name);
    make_private_folder(&files.folder)
        .map_err(system(format!("make the folder {}", files.folder.display())))?;
    let lock = File::create(files.lock()).map_err(system(format!("write {}", files.lock().display())))?;
    lock.try_lock().map_err(|_| Error::Taken(settings.name.clone()))?;
    let identity = Identity::of_self().ok_or_else(|| Error::Taken(settings.name.clone()))?;
    write_identity(&files, identity)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(system("listen for SIGTERM"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(system("listen for SIGINT"))?;

    let start = async {
        let real = settings.nodes.prepare(cache, &Progress::on_stderr()).await?;
        let control_plane = ControlPlane::start(settings.control_plane(cache)).await?;
        let options = settings.site(real, &control_plane.cluster_id().await?);
        let site = Site::start(&control_plane, options).await?;
        Ok::<_, Error>((control_plane, site))
    };
    let stopped = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    tokio::pin!(stopped);
    let (control_plane, site) = tokio::select! {
        started = start => started?,
        // Dropping what was started so far kills it.
        () = &mut stopped => {
            let _ = std::fs::remove_dir_all(&files.folder);
            return Ok(());
        }
    };
    write_record(&files, &record(&settings.name, identity, settings.nodes, &control_plane, &site, &files))?;
    tokio::select! {
        () = stopped => {}
        () = record_violations(&site, &files) => {}
    }
    site.stop().await;
    control_plane.stop().await;
    let _ = std::fs::remove_dir_all(&files.folder);
    Ok(())
}

fn record(
    name: &str,
    identity: Identity,
    nodes: NodeKind,
    control_plane: &ControlPlane,
    site: &Site,
    files: &Files,
) -> Record {
    Record {
        name: name.to_owned(),
        identity,
        nodes,
        kubeconfig: control_plane.kubeconfig().to_owned(),
        operator_kubeconfig: control_plane.operator_kubeconfig().to_owned(),
        audit_log: control_plane.audit_log(),
        endpoint: site.endpoint(),
        region: site.region().to_owned(),
        gateway: site.machines().map(Machines::gateway),
        programs: control_plane.kubectl().parent().map(Path::to_owned).unwrap_or_default(),
        components: control_plane.components(),
        log: files.log(),
    }
}

/// Writes down what must never happen, as it is seen.
async fn record_violations(site: &Site, files: &Files) {
    let mut recorded = 0;
    loop {
        let violations: Vec<String> = site.violations().iter().map(ToString::to_string).collect();
        if violations.len() > recorded {
            recorded = violations.len();
            if let Err(error) = std::fs::write(files.violations(), violations.join("\n")) {
                tracing::error!(%error, ?violations,
                "what must never happen has happened, and cannot be written down");
            }
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Stops a box, with the operator of a demo in it, and says what was done.
pub async fn down(cache: &Cache, name: &str) -> Result<String, Error> {
    let files = Files::of(cache, name);
    let record = running(cache, name);
    let mut parts = Vec::new();
    // First, while there is an API server at which it can end its work.
    if let Some(operator) = living(&files.operator()) {
        let was_killed = end(operator).await;
        parts.push(if was_killed { "operator (killed)".to_owned() } else { "operator".to_owned() });
    }
    let Some(identity) = living(&files.identity()) else {
        let was_there = files.folder.exists();
        let _ = std::fs::remove_dir_all(&files.folder);
        let swept = run_folder::sweep(cache).map_err(system("remove what killed boxes left"))?;
        return Ok(if !parts.is_empty() {
            format!("no box `{name}` is running; stopped its operator and removed what a killed one left")
        } else if was_there || swept > 0 {
            format!("no box `{name}` is running; removed what a killed one left")
        } else {
            format!("no box `{name}` is running")
        });
    };
    let was_killed = end(identity).await;
    if was_killed {
        let _ = std::fs::remove_dir_all(&files.folder);
        run_folder::sweep(cache).map_err(system("remove what the box left"))?;
    }
    if let Some(record) = record {
        parts.extend(record.components.into_iter().map(|part| part.name));
        parts.push("ec2".to_owned());
    }
    let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    let how = if was_killed { "killed, since it did not stop in time" } else { "stopped" };
    Ok(format!("box `{name}` {how}{parts}"))
}

/// Asks a process to end, and kills it when it takes too long; says whether it was killed.
async fn end(process: Identity) -> bool {
    process.signal(Signal::SIGTERM);
    let started = Instant::now();
    while process.lives() && started.elapsed() < DOWN_LIMIT {
        tokio::time::sleep(POLL).await;
    }
    let was_killed = process.lives();
    process.signal(Signal::SIGKILL);
    while process.lives() {
        tokio::time::sleep(POLL).await;
    }
    was_killed
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[tokio::test]
    async fn down_ends_the_operator_of_a_demo_with_its_box() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let files = Files::of(&cache, "demo");
        make_private_folder(&files.folder).unwrap();
        assert!(!is_of_a_demo(&cache, "demo"));
        let [mut operator, mut served] = [(), ()].map(|()| Command::new("sleep").arg("600").spawn().unwrap());
        write_identity(&files, Identity::of(served.id()).unwrap()).unwrap();
        remember_operator(&cache, "demo", Identity::of(operator.id()).unwrap()).unwrap();
        assert!(is_of_a_demo(&cache, "demo"));

        assert_eq!(down(&cache, "demo").await.unwrap(), "box `demo` stopped: operator");
        for child in [&mut operator, &mut served] {
            assert_eq!(child.wait().unwrap().signal(), Some(Signal::SIGTERM as i32));
        }
    }

    #[tokio::test]
    async fn down_ends_the_operator_of_a_box_that_was_killed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let files = Files::of(&cache, "demo");
        make_private_folder(&files.folder).unwrap();
        let mut operator = Command::new("sleep").arg("600").spawn().unwrap();
        remember_operator(&cache, "demo", Identity::of(operator.id()).unwrap()).unwrap();

        let said = down(&cache, "demo").await.unwrap();
        assert_eq!(said, "no box `demo` is running; stopped its operator and removed what a killed one left");
        assert!(!operator.wait().unwrap().success());
        assert!(!is_of_a_demo(&cache, "demo"));
        assert_eq!(down(&cache, "demo").await.unwrap(), "no box `demo` is running");
    }

    #[tokio::test]
    async fn a_process_that_took_the_id_of_the_operator_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        make_private_folder(&Files::of(&cache, "demo").folder).unwrap();
        let mut stranger = Command::new("sleep").arg("600").spawn().unwrap();
        remember_operator(&cache, "demo", Identity { id: stranger.id(), started: 1 }).unwrap();

        down(&cache, "demo").await.unwrap();
        assert!(stranger.try_wait().unwrap().is_none());
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
}

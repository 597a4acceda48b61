//! A named box in the background: starts it, finds it again, stops it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};

use crate::cache::{Cache, make_private_folder};
use crate::control_plane::{self, Component, ControlPlane, ControlPlaneOptions, NodeTiming};
use crate::process::{Identity, tail};
use crate::progress::Progress;
use crate::run_folder;
use crate::site::{self, Site, SiteOptions};

/// How long a box may take to start once its programs are built.
const UP_LIMIT: Duration = Duration::from_mins(3);
/// How long it may take to stop before it is killed: the sum of its own limits and some air.
const DOWN_LIMIT: Duration = Duration::from_secs(30);
/// How often its record is looked at.
const POLL: Duration = Duration::from_millis(100);

/// How long things take in a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Pace {
    /// Fractions of seconds: for development and tests.
    Fast,
    /// As in AWS and Kubernetes.
    Realistic,
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
}

impl Settings {
    /// The control plane's options.
    pub fn control_plane(&self, cache: &Cache) -> ControlPlaneOptions {
        ControlPlaneOptions {
            name: self.name.clone(),
            cache: cache.clone(),
            timing: match self.pace {
                Pace::Fast => NodeTiming::fast(),
                Pace::Realistic => NodeTiming::kubernetes(),
            },
            state: self.state.clone(),
        }
    }

    /// The site's options.
    pub fn site(&self) -> SiteOptions {
        let mut options = match self.pace {
            Pace::Fast => SiteOptions::fast(),
            Pace::Realistic => SiteOptions::realistic(),
        };
        options.simulator.clock = ec2sim::Clock::Running { speed: self.speed };
        options.simulator.state = self.state.as_ref().map(|folder| folder.join("ec2"));
        options
    }
}

/// What a running box says about itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Its process.
    pub identity: Identity,
    /// The administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    /// The kubeconfig of the operator.
    pub operator_kubeconfig: PathBuf,
    /// EC2's URL.
    pub endpoint: String,
    /// EC2's region.
    pub region: String,
    /// The folder of the programs, kubectl among them.
    pub programs: PathBuf,
    /// Its processes.
    pub components: Vec<Component>,
    /// The log of the box itself.
    pub log: PathBuf,
}

/// Why a named box could not be started or stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its control plane.
    #[error(transparent)]
    ControlPlane(#[from] control_plane::Error),

    /// Its machines and its EC2.
    #[error(transparent)]
    Site(#[from] site::Error),

    /// A file or process.
    #[error("failed to {doing}")]
    System {
        /// What was being done.
        doing: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },

    /// It ended instead of coming up.
    #[error("failed to start box `{name}`; the last lines of {log}:\n{tail}")]
    DidNotStart {
        /// Its name.
        name: String,
        /// Its log.
        log: PathBuf,
        /// What it said last.
        tail: String,
    },

    /// Another process is this box.
    #[error("failed to start box `{0}`: it is starting or running already; see `cargo box status`")]
    Taken(String),
}

fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    let doing = doing.into();
    move |source| Error::System { doing, source }
}

struct Files {
    folder: PathBuf,
}

impl Files {
    fn of(cache: &Cache, name: &str) -> Self {
        Self { folder: cache.boxes().join(name) }
    }

    /// Written when the box is ready.
    fn record(&self) -> PathBuf {
        self.folder.join("record.json")
    }

    /// Written first: the identity of the box's process.
    fn identity(&self) -> PathBuf {
        self.folder.join("identity")
    }

    /// Held as long as the box lives.
    fn lock(&self) -> PathBuf {
        self.folder.join("lock")
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    fn read_identity(&self) -> Option<Identity> {
        Identity::parse(&std::fs::read_to_string(self.identity()).ok()?)
    }
}

/// The record of a box that is up.
pub fn running(cache: &Cache, name: &str) -> Option<Record> {
    let text = std::fs::read(Files::of(cache, name).record()).ok()?;
    serde_json::from_slice::<Record>(&text).ok().filter(|record| record.identity.lives())
}

/// Starts a box in a session of its own and waits until it is ready.
pub async fn up(cache: &Cache, settings: &Settings, progress: &Progress) -> Result<Record, Error> {
    let files = Files::of(cache, &settings.name);
    make_private_folder(&files.folder).map_err(system(format!("make the folder {}", files.folder.display())))?;
    let log = File::create(files.log()).map_err(system(format!("write {}", files.log().display())))?;
    let again = log.try_clone().map_err(system("share the log"))?;
    let program = std::env::current_exe().map_err(system("find this program"))?;
    let mut command = Command::new(program);
    command.args(["daemon", "--name", &settings.name, "--speed", &settings.speed.to_string(), "--delays"]);
    command.arg(match settings.pace {
        Pace::Fast => "fast",
        Pace::Realistic => "realistic",
    });
    if let Some(state) = &settings.state {
        command.arg("--state").arg(state);
    }
    let mut child = command.stdin(Stdio::null()).stdout(log).stderr(again).spawn().map_err(system("start the box in the background"))?;

    let started = Instant::now();
    loop {
        if let Some(record) = running(cache, &settings.name).filter(|record| record.identity.id == child.id()) {
            return Ok(record);
        }
        let has_ended = child.try_wait().is_ok_and(|status| status.is_some());
        if has_ended || started.elapsed() > UP_LIMIT {
            if let (false, Some(identity)) = (has_ended, Identity::of(child.id())) {
                identity.signal(Signal::SIGKILL);
            }
            return Err(Error::DidNotStart { name: settings.name.clone(), log: files.log(), tail: tail(&files.log()) });
        }
        progress.at(started.elapsed().as_secs(), 10, "starting the control plane and EC2 (about 8 s)");
        tokio::time::sleep(POLL).await;
    }
}

/// Is the box, until SIGTERM or SIGINT.
pub async fn serve(cache: &Cache, settings: &Settings) -> Result<(), Error> {
    // Away from the terminal: a Ctrl-C there is not meant for the box. Fails only for a process that leads a session already.
    let _ = nix::unistd::setsid();
    // The client logs each failed request, and there are many while readiness is asked for.
    let filter = tracing_subscriber::EnvFilter::new("info,kube_client::client::builder=off");
    tracing_subscriber::fmt().with_ansi(false).with_writer(io::stderr).with_env_filter(filter).init();
    let files = Files::of(cache, &settings.name);
    make_private_folder(&files.folder).map_err(system(format!("make the folder {}", files.folder.display())))?;
    let lock = File::create(files.lock()).map_err(system(format!("write {}", files.lock().display())))?;
    lock.try_lock().map_err(|_| Error::Taken(settings.name.clone()))?;
    let identity = Identity::of_self().ok_or_else(|| Error::Taken(settings.name.clone()))?;
    std::fs::write(files.identity(), identity.to_string()).map_err(system("write the box's identity"))?;
    let mut terminate = signal(SignalKind::terminate()).map_err(system("listen for SIGTERM"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(system("listen for SIGINT"))?;

    let start = async {
        let control_plane = ControlPlane::start(settings.control_plane(cache)).await?;
        let site = Site::start(&control_plane, settings.site()).await?;
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
        () = &mut stopped => return Ok(()),
    };
    write_record(&files, &record(identity, &control_plane, &site, &files))?;
    stopped.await;
    site.stop().await;
    control_plane.stop().await;
    let _ = std::fs::remove_dir_all(&files.folder);
    Ok(())
}

fn record(identity: Identity, control_plane: &ControlPlane, site: &Site, files: &Files) -> Record {
    Record {
        identity,
        kubeconfig: control_plane.kubeconfig().to_owned(),
        operator_kubeconfig: control_plane.operator_kubeconfig().to_owned(),
        endpoint: site.endpoint(),
        region: site.region().to_owned(),
        programs: control_plane.kubectl().parent().map(Path::to_owned).unwrap_or_default(),
        components: control_plane.components(),
        log: files.log(),
    }
}

/// Whole or not at all: somebody is reading it meanwhile.
fn write_record(files: &Files, record: &Record) -> Result<(), Error> {
    let new = files.folder.join("record.new");
    let text = serde_json::to_vec_pretty(record).map_err(|error| system("write the box's record")(error.into()))?;
    std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, files.record())).map_err(system("write the box's record"))
}

/// Stops a box and says what was done.
pub async fn down(cache: &Cache, name: &str) -> Result<String, Error> {
    let files = Files::of(cache, name);
    let record = running(cache, name);
    let identity = files.read_identity().filter(|identity| identity.lives());
    let Some(identity) = identity else {
        let was_there = files.folder.exists();
        let _ = std::fs::remove_dir_all(&files.folder);
        let swept = run_folder::sweep(cache).map_err(system("remove what killed boxes left"))?;
        return Ok(if was_there || swept > 0 {
            format!("no box `{name}` is running; removed what a killed one left")
        } else {
            format!("no box `{name}` is running")
        });
    };
    identity.signal(Signal::SIGTERM);
    let started = Instant::now();
    while identity.lives() && started.elapsed() < DOWN_LIMIT {
        tokio::time::sleep(POLL).await;
    }
    let was_killed = identity.lives();
    if was_killed {
        identity.signal(Signal::SIGKILL);
        while identity.lives() {
            tokio::time::sleep(POLL).await;
        }
        let _ = std::fs::remove_dir_all(&files.folder);
        run_folder::sweep(cache).map_err(system("remove what the box left"))?;
    }
    let parts: Vec<String> = record.iter().flat_map(|record| &record.components).map(|part| part.name.clone()).collect();
    let parts = if parts.is_empty() { String::new() } else { format!(": {}, ec2", parts.join(", ")) };
    let how = if was_killed { "killed, since it did not stop in time" } else { "stopped" };
    Ok(format!("box `{name}` {how}{parts}"))
}

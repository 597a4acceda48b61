//! What systemd does in a machine: keeps its services running, starts those again that ended, stops them on
//! request.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::namespaces::Namespaces;

/// How long a service that ended stays down (systemd's `RestartSec` in the units of EKS is 5 s; tests wait
/// for it).
const RESTART: Duration = Duration::from_secs(2);
/// How long a service may take to stop before it is killed.
const GRACE: Duration = Duration::from_secs(10);

/// The services of one machine.
#[derive(Debug)]
pub struct Services {
    namespaces: Namespaces,
    /// Where a machine has the programs of its services, as the host sees it.
    folder: PathBuf,
    /// Where their logs go.
    logs: PathBuf,
    known: Mutex<BTreeMap<String, Service>>,
    stop: CancellationToken,
}

#[derive(Debug)]
struct Service {
    wanted: watch::Sender<bool>,
    process: watch::Receiver<Option<u32>>,
}

impl Services {
    /// No service yet.
    pub fn new(namespaces: Namespaces, folder: PathBuf, logs: PathBuf) -> Self {
        Self { namespaces, folder, logs, known: Mutex::default(), stop: CancellationToken::new() }
    }

    /// Starts all services that the machine has and that are not known yet: each is a program in its folder
    /// of services.
    pub fn start_enabled(&self) {
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if let Ok(name) = entry.file_name().into_string() {
                self.start(&name);
            }
        }
    }

    /// Starts a service, and keeps it running.
    pub fn start(&self, name: &str) {
        let mut known = self.lock();
        if let Some(service) = known.get(name) {
            service.wanted.send_replace(true);
            return;
        }
        let (wanted, is_wanted) = watch::channel(true);
        let (report, process) = watch::channel(None);
        known.insert(name.to_owned(), Service { wanted, process });
        let supervisor = Supervisor {
            name: name.to_owned(),
            namespaces: self.namespaces.clone(),
            log: self.logs.join(format!("{name}.log")),
            is_wanted,
            report,
        };
        let stop = self.stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = supervisor.run() => {}
                () = stop.cancelled() => {}
            }
        });
    }

    /// Stops a service: asks its process to end, and kills it if it does not. It stays down until it is
    /// started, or the machine boots.
    pub async fn stop(&self, name: &str) {
        let process = {
            let known = self.lock();
            let Some(service) = known.get(name) else { return };
            service.wanted.send_replace(false);
            service.process.clone()
        };
        ended(process).await;
    }

    /// Stops all, at the same time.
    pub async fn stop_all(&self) {
        let all: Vec<_> = self
            .lock()
            .values()
            .map(|service| (service.wanted.send_replace(false), service.process.clone()))
            .collect();
        for (_, process) in all {
            ended(process).await;
        }
    }

    /// The process of a service that runs.
    pub fn process(&self, name: &str) -> Option<u32> {
        *self.lock().get(name)?.process.borrow()
    }

    /// Looks after no service any more; their processes are left as they are.
    pub fn abandon(&self) {
        self.stop.cancel();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Service>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        self.abandon();
    }
}

/// Waits until there is no process; the supervisor kills one that takes too long.
async fn ended(mut process: watch::Receiver<Option<u32>>) {
    let _ = process.wait_for(Option::is_none).await;
}

/// Keeps one service running.
struct Supervisor {
    name: String,
    namespaces: Namespaces,
    log: PathBuf,
    is_wanted: watch::Receiver<bool>,
    report: watch::Sender<Option<u32>>,
}

impl Supervisor {
    async fn run(mut self) {
        loop {
            if self.is_wanted.wait_for(|is_wanted| *is_wanted).await.is_err() {
                return;
            }
            match self.spawn() {
                Ok(mut child) => {
                    self.report.send_replace(child.id());
                    self.watch(&mut child).await;
                    self.report.send_replace(None);
                }
                Err(error) => tracing::warn!(service = self.name, %error,
                "a machine could not start a service"),
            }
            // A stop during the pause ends it, so that the next start comes at once.
            let _ = tokio::time::timeout(RESTART, self.is_wanted.wait_for(|is_wanted| !*is_wanted)).await;
        }
    }

    /// Until the process has ended: by itself, or because the service is to stop.
    async fn watch(&mut self, child: &mut Child) {
        tokio::select! {
            _ = child.wait() => return,
            _ = self.is_wanted.wait_for(|is_wanted| !*is_wanted) => {}
        }
        send(child.id(), Signal::SIGTERM);
        if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
            send(child.id(), Signal::SIGKILL);
            let _ = child.wait().await;
        }
    }

    fn spawn(&self) -> io::Result<Child> {
        let log = open(&self.log)?;
        let mut command =
            Command::from(self.namespaces.command(Path::new("/etc/freehold-box/services").join(&self.name)));
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        command.spawn()
    }
}

/// A log, to be appended to.
pub fn open(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

/// Sends a signal to a process that has not been waited for.
pub fn send(process: Option<u32>, signal: Signal) {
    if let Some(id) = process.and_then(|id| i32::try_from(id).ok()) {
        let _ = kill(Pid::from_raw(id), signal);
    }
}

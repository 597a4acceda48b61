//! The controllers: processes of this host that are started again when they end, as Kubernetes does with
//! containers.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::error::Error;
use crate::base::process::{Launch, Process};
use crate::cluster::tools::{Program, Tools};

/// The name by which the journal of the simulator distinguishes the driver from the operator.
pub const CALLER: &str = "csi-driver";

/// What the driver's chart gives csi-provisioner beside an address and its own numbers of retries and workers
/// (charts/aws-ebs-csi-driver, `templates/controller.yaml` and `values.yaml` of driver 1.62). Metadata is
/// what the tags `kubernetes.io/created-for/…` of a volume are made of.
const PROVISIONER_FLAGS: [&str; 4] =
    ["--timeout=60s", "--feature-gates=Topology=true", "--extra-create-metadata", "--default-fstype=ext4"];

/// How long the driver may take until it listens: 0.3 s on an idle machine.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// How often its socket is looked for.
const READY_POLL: Duration = Duration::from_millis(50);
/// How often it is looked whether one has ended.
const WATCH: Duration = Duration::from_secs(1);
/// How long each may take to end.
const GRACE: Duration = Duration::from_secs(3);

/// What the controllers need.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The programs, the bundles `Csi` and `Provisioner` among them.
    pub tools: &'a Tools,
    /// Where their logs and the driver's socket go: an absolute path, short enough for a socket's name (107
    /// bytes).
    pub folder: &'a Path,
    /// A kubeconfig for them.
    pub kubeconfig: &'a Path,
    /// EC2's URL.
    pub endpoint: &'a str,
    /// The region.
    pub region: &'a str,
}

/// The controllers, running; dropped, they are killed.
#[derive(Debug)]
pub struct Controller {
    parts: Vec<Part>,
}

impl Controller {
    /// Starts the driver's controller, waits until it listens, then starts csi-attacher, csi-provisioner and
    /// csi-resizer.
    pub async fn start(setup: Setup<'_>) -> Result<Self, Error> {
        let socket = setup.folder.join("csi.sock");
        let kubeconfig = format!("--kubeconfig={}", setup.kubeconfig.display());
        let address = format!("--csi-address={}", socket.display());
        let driver = vec![
            "controller".to_owned(),
            format!("--endpoint=unix://{}", socket.display()),
            kubeconfig.clone(),
            // As the driver's own chart has it.
            "--batching=true".to_owned(),
        ];
        let _ = std::fs::remove_file(&socket);
        let mut parts = vec![Part::start(setup, Program::EbsDriver, driver)?];
        let started = Instant::now();
        while !socket.exists() {
            let ended = parts.iter_mut().any(|part| part.process.ended().is_some());
            if ended || started.elapsed() > READY_LIMIT {
                let log = parts.first().map(|part| part.process.log_tail()).unwrap_or_default();
                return Err(Error::NotReady { socket, limit: READY_LIMIT, log });
            }
            tokio::time::sleep(READY_POLL).await;
        }
        for (program, flags) in [
            (Program::CsiAttacher, [].as_slice()),
            (Program::CsiProvisioner, &PROVISIONER_FLAGS),
            (Program::CsiResizer, &[]),
        ] {
            // Without a leader election, which costs seconds: there is one of each.
            let mut args = vec![address.clone(), kubeconfig.clone()];
            args.extend(flags.iter().map(|&flag| flag.to_owned()));
            parts.push(Part::start(setup, program, args)?);
        }
        Ok(Self { parts })
    }

    /// The process ids, for `status` and for what a killed box leaves: process group leaders.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        self.parts.iter().map(|part| &part.process)
    }

    /// Starts again what ends, until `stop`; then ends all.
    pub async fn run(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            for part in &mut self.parts {
                if let Some(status) = part.process.ended() {
                    tracing::warn!(name = part.program.name(), %status, log = part.process.log_tail(),
                    "it ended and is started again");
                    match part.launch() {
                        Ok(process) => part.process = process,
                        Err(error) => tracing::error!(name = part.program.name(), %error,
                        "it cannot be started again"),
                    }
                }
            }
            tokio::select! {
                () = tokio::time::sleep(WATCH) => {}
                () = stop.cancelled() => {}
            }
        }
        for part in &mut self.parts {
            part.process.ask_to_end();
        }
        for part in &mut self.parts {
            part.process.stop(GRACE).await;
        }
    }
}

/// A program with all that is needed to start it again.
#[derive(Debug)]
struct Part {
    program: Program,
    args: Vec<String>,
    folder: PathBuf,
    process: Process,
}

impl Part {
    fn start(setup: Setup<'_>, program: Program, args: Vec<String>) -> Result<Self, Error> {
        // The environment by way of env(1), which becomes the program.
        let mut all = vec![
            // The driver's own name for it; the AWS SDK's would be AWS_ENDPOINT_URL_EC2.
            format!("AWS_EC2_ENDPOINT={}", setup.endpoint),
            format!("AWS_REGION={}", setup.region),
            format!("AWS_ACCESS_KEY_ID={CALLER}"),
            "AWS_SECRET_ACCESS_KEY=box".to_owned(),
            // There is no metadata service to ask.
            "AWS_EC2_METADATA_DISABLED=true".to_owned(),
            // Memory is what a box lacks first.
            "GOGC=50".to_owned(),
            setup.tools.program(program).display().to_string(),
        ];
        all.extend(args);
        let process = launch(program, &all, setup.folder)
            .map_err(|source| Error::Start { name: program.name(), source })?;
        Ok(Self { program, args: all, folder: setup.folder.to_owned(), process })
    }

    fn launch(&self) -> io::Result<Process> {
        launch(self.program, &self.args, &self.folder)
    }
}

fn launch(program: Program, args: &[String], folder: &Path) -> io::Result<Process> {
    Process::start(Launch {
        name: program.name(),
        program: Path::new("/usr/bin/env"),
        args: args.to_vec(),
        folder,
    })
}

//! A real Kubernetes control plane in processes of this machine: starts it, waits until it is usable, stops it.

mod components;
mod error;
mod objects;
mod timing;

use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use components::FIRST_SERVICE_ADDRESS;
pub use error::Error;
pub use objects::{PLATFORM_NODE, STORAGE_CLASS, machine_status};
pub use timing::NodeTiming;

use crate::base::cache::{Cache, make_private_folder};
use crate::base::names::SERVER_NAME;
use crate::base::process::{Launch, Process};
use crate::base::progress::Progress;
use crate::cluster::certificates::Authority;
use crate::cluster::run_folder::RunFolder;
use crate::cluster::tools::{Bundle, Program, Tools};
use crate::cluster::virtual_kubelet;

/// The user of [`ControlPlane::operator_kubeconfig`].
pub const OPERATOR_USER: &str = "freehold";

/// How long the API server may take to be ready: 3 s on an idle machine, many times that on one that compiles meanwhile.
const READY_LIMIT: Duration = Duration::from_secs(180);
/// How often readiness is asked.
const READY_POLL: Duration = Duration::from_millis(100);
/// How long the API server may take for its graceful stop. Its own limit is a minute, for clients that a box does not have.
const API_SERVER_GRACE: Duration = Duration::from_secs(5);
/// How long the others may take.
const GRACE: Duration = Duration::from_secs(3);
/// How often the start is tried when another process took the port between its choice and its use.
const PORT_ATTEMPTS: u32 = 5;

/// What a control plane is started with.
#[derive(Clone, Debug)]
pub struct ControlPlaneOptions {
    /// A short name; part of the run folder's name.
    pub name: String,
    /// Where the tools and the run folder are.
    pub cache: Cache,
    /// How fast a silent Node is noticed.
    pub timing: NodeTiming,
    /// Where etcd's data is kept beyond this run; in the run folder if none.
    pub state: Option<PathBuf>,
}

impl ControlPlaneOptions {
    /// A control plane with the cache of the environment, fast node timing and no kept state.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), cache: Cache::from_environment(), timing: NodeTiming::fast(), state: None }
    }
}

/// What `status` shows of one component.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Component {
    /// Its name.
    pub name: String,
    /// The id of its process group.
    pub id: u32,
    /// Where it listens, if it does.
    pub address: String,
    /// Its log.
    pub log: PathBuf,
}

/// A running control plane; dropped, it is killed and its folder removed.
pub struct ControlPlane {
    kubeconfig: PathBuf,
    operator_kubeconfig: PathBuf,
    server: String,
    port: u16,
    authority: Arc<Authority>,
    timing: NodeTiming,
    client: Client,
    tools: Tools,
    tasks: TaskTracker,
    stop: CancellationToken,
    // In the order in which they are stopped.
    processes: Vec<Process>,
    folder: RunFolder,
}

impl ControlPlane {
    /// Starts etcd, the API server, the controller-manager, the scheduler and kwok, makes the objects that every box has, and
    /// returns when the platform's own Node is Ready. Builds the programs first when they are not in the cache, showing progress on
    /// standard error. Takes about 6 s.
    ///
    /// The tasks of its virtual kubelet run on the current tokio runtime.
    pub async fn start(options: ControlPlaneOptions) -> Result<Self, Error> {
        let tools = Tools::ensure(&options.cache, Bundle::VIRTUAL, &Progress::on_stderr()).await?;
        let folder = RunFolder::create(&options.cache, &options.name)
            .map_err(|source| Error::System { doing: "make the run folder in the cache".to_owned(), source })?;
        let started = start_servers(&tools, &folder, &options).await?;
        let path = folder.path();
        let client = client(&path.join("box.kubeconfig")).await?;

        let mut processes = started.processes;
        for (program, args) in [
            (Program::ControllerManager, components::controller_manager(options.timing)),
            (Program::Scheduler, components::scheduler()),
            (Program::Kwok, components::kwok(options.timing)),
        ] {
            processes.push(launch(&tools, &folder, program, args)?);
        }
        // Stopped from the front: the API server first (it hangs in its graceful stop when etcd is gone before), etcd last.
        if let Some(etcd) = processes.iter().position(|process| process.name() == Program::Etcd.name()) {
            let etcd = processes.remove(etcd);
            processes.push(etcd);
        }

        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        objects::apply(&client).await.map_err(api("make the objects that every box has"))?;
        tasks.spawn(virtual_kubelet::run(client.clone(), stop.clone()));
        let mut control_plane = Self {
            kubeconfig: path.join("admin.kubeconfig"),
            operator_kubeconfig: path.join("operator.kubeconfig"),
            server: started.server,
            port: started.port,
            authority: Arc::new(started.authority),
            timing: options.timing,
            client,
            tools,
            tasks,
            stop,
            processes,
            folder,
        };
        control_plane.wait_until_usable().await?;
        Ok(control_plane)
    }

    /// The kubeconfig of the administrator.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The kubeconfig of the operator: [`OPERATOR_USER`], which the audit log names. It has no rights at first.
    pub fn operator_kubeconfig(&self) -> &Path {
        &self.operator_kubeconfig
    }

    /// The kubeconfig of the EBS CSI driver's controllers.
    pub fn csi_kubeconfig(&self) -> PathBuf {
        self.folder().join("csi.kubeconfig")
    }

    /// A client of the box's own user `freehold-box`, on the runtime that started the control plane.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The API server's URL.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The API server's port on the loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The authority that signs who is who in this cluster.
    pub fn authority(&self) -> Arc<Authority> {
        self.authority.clone()
    }

    /// How fast a silent Node is noticed.
    pub fn timing(&self) -> NodeTiming {
        self.timing
    }

    /// The API server's audit log: one JSON event a line for each request that was answered, with user and user agent;
    /// [`crate::cluster::audit`] reads it.
    pub fn audit_log(&self) -> PathBuf {
        self.folder.path().join("audit.log")
    }

    /// The program kubectl, of the same version.
    pub fn kubectl(&self) -> PathBuf {
        self.tools.program(Program::Kubectl)
    }

    /// The folder of its logs and certificates; it goes when the control plane goes.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its processes, for `status`.
    pub fn components(&self) -> Vec<Component> {
        let address = |name: &str| {
            if name == Program::ApiServer.name() { self.server.clone() } else { String::new() }
        };
        self.processes
            .iter()
            .map(|process| Component {
                name: process.name().to_owned(),
                id: process.id(),
                address: address(process.name()),
                log: self.folder.path().join(format!("{}.log", process.name())),
            })
            .collect()
    }

    /// Stops everything in order, with a limit on every wait, and removes the folder.
    pub async fn stop(mut self) {
        self.stop.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(GRACE, self.tasks.wait()).await;
        // The API server waits for its clients' connections, so they are asked to end with it; it must end before etcd does.
        for process in self.processes.iter_mut().filter(|process| process.name() != Program::Etcd.name()) {
            process.ask_to_end();
        }
        for process in &mut self.processes {
            let grace = if process.name() == Program::ApiServer.name() { API_SERVER_GRACE } else { GRACE };
            process.stop(grace).await;
        }
    }

    /// The API server answers; usable means that the controllers work too (a service account was made), that kwok works (the
    /// platform's Node is Ready), and so that a pod can be created and scheduled.
    async fn wait_until_usable(&mut self) -> Result<(), Error> {
        let accounts = Api::<ServiceAccount>::namespaced(self.client.clone(), "default");
        self.wait("the default service account", Program::ControllerManager, async || accounts.get("default").await.is_ok()).await?;
        let nodes = Api::<Node>::all(self.client.clone());
        self.wait("the platform's Node being Ready", Program::Kwok, async || {
            nodes.get(PLATFORM_NODE).await.is_ok_and(|node| virtual_kubelet::is_ready(&node))
        })
        .await
    }

    async fn wait(&mut self, what: &str, blame: Program, is_so: impl AsyncFn() -> bool) -> Result<(), Error> {
        wait(&mut self.processes, what, blame, is_so).await
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn api(doing: &str) -> impl FnOnce(kube::Error) -> Error + use<> {
    let doing = doing.to_owned();
    move |source| Error::Api { doing, source: Box::new(source) }
}

/// Waits until `is_so`, and fails early when a process ends meanwhile.
async fn wait(processes: &mut [Process], what: &str, blame: Program, is_so: impl AsyncFn() -> bool) -> Result<(), Error> {
    let started = Instant::now();
    loop {
        if tokio::time::timeout(READY_LIMIT, is_so()).await.unwrap_or(false) {
            return Ok(());
        }
        for process in processes.iter_mut() {
            if let Some(status) = process.ended() {
                return Err(Error::Ended { name: process.name().to_owned(), status: status.to_string(), log: process.log_tail() });
            }
        }
        if started.elapsed() > READY_LIMIT {
            let log = processes.iter().find(|process| process.name() == blame.name()).map(Process::log_tail);
            return Err(Error::NotReady {
                what: what.to_owned(),
                limit: READY_LIMIT,
                name: blame.name().to_owned(),
                log: log.unwrap_or_default(),
            });
        }
        tokio::time::sleep(READY_POLL).await;
    }
}

struct Servers {
    server: String,
    port: u16,
    authority: Authority,
    processes: Vec<Process>,
}

/// Starts etcd and the API server and waits until it is ready; again with another port if that was taken meanwhile.
async fn start_servers(tools: &Tools, folder: &RunFolder, options: &ControlPlaneOptions) -> Result<Servers, Error> {
    let path = folder.path();
    let system = |doing: &str| {
        let doing = doing.to_owned();
        move |source| Error::System { doing, source }
    };
    for (file, text) in [("audit-policy.yaml", components::AUDIT_POLICY), ("kwok.yaml", components::KWOK_CONFIG)] {
        std::fs::write(path.join(file), text).map_err(system(&format!("write {file} in the run folder")))?;
    }
    // What machines and tokens that outlive this run rely on is kept beside the data.
    let state = options.state.clone().unwrap_or_else(|| path.to_owned());
    let data = state.join("etcd");
    make_private_folder(&data).map_err(system(&format!("make the folder {}", data.display())))?;
    let authority = Authority::load_or_create(&state, path)?;
    authority.server("api-server", &["127.0.0.1", "localhost", components::FIRST_SERVICE_ADDRESS, SERVER_NAME])?;
    authority.client("api-server-to-kubelet", "api-server", "system:masters")?;
    authority.signing_key("service-accounts", &state)?;
    let etcd = launch(tools, folder, Program::Etcd, components::etcd(&data))?;
    let mut processes = vec![etcd];

    let mut attempt = 1;
    loop {
        let port = free_port().map_err(system("find a free port"))?;
        let server = format!("https://127.0.0.1:{port}");
        for (file, user, group) in [
            ("admin", "admin", "system:masters"),
            // It has no rights until a role is bound to it.
            ("operator", OPERATOR_USER, ""),
            ("box", "freehold-box", "system:masters"),
            ("kwok", "kwok", "system:masters"),
            ("csi", "ebs-csi-driver", "system:masters"),
            ("controller-manager", "system:kube-controller-manager", ""),
            ("scheduler", "system:kube-scheduler", ""),
        ] {
            authority.kubeconfig(file, user, Some(group).filter(|group| !group.is_empty()), &server)?;
        }
        processes.push(launch(tools, folder, Program::ApiServer, components::api_server(port))?);
        let client = client(&path.join("box.kubeconfig")).await?;
        let ready = wait(&mut processes, "the API server being ready", Program::ApiServer, async || is_ready(&client).await);
        match ready.await {
            Ok(()) => return Ok(Servers { server, port, authority, processes }),
            Err(Error::Ended { log, .. }) if log.contains("address already in use") && attempt < PORT_ATTEMPTS => {
                attempt += 1;
                processes.truncate(1);
            }
            Err(error) => return Err(error),
        }
    }
}

async fn is_ready(client: &Client) -> bool {
    let Ok(request) = http::Request::get("/readyz").body(Vec::new()) else { return false };
    client.request_text(request).await.is_ok()
}

fn launch(tools: &Tools, folder: &RunFolder, program: Program, args: Vec<String>) -> Result<Process, Error> {
    let failed = |source| Error::System { doing: format!("start {}", program.name()), source };
    let path = tools.program(program);
    let process = Process::start(Launch { name: program.name(), program: &path, args, folder: folder.path() }).map_err(failed)?;
    folder.remember(&process).map_err(failed)?;
    Ok(process)
}

/// A port that was free a moment ago.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

async fn client(kubeconfig: &Path) -> Result<Client, Error> {
    let failed = |source| Error::Kubeconfig { path: kubeconfig.to_owned(), source: Box::new(source) };
    let parsed = Kubeconfig::read_from(kubeconfig).map_err(failed)?;
    let config = Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await.map_err(failed)?;
    Client::try_from(config).map_err(api("make a client for the API server"))
}

//! The start of etcd and the API server, until it is ready.

use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::components;
use super::error::Error;
use super::options::ControlPlaneOptions;
use crate::base::cache::make_private_folder;
use crate::base::names::SERVER_NAME;
use crate::base::process::{Launch, Process};
use crate::base::progress::Progress;
use crate::cluster::certificates::Authority;
use crate::cluster::run_folder::RunFolder;
use crate::cluster::tools::{Bundle, Program, Tools};

/// The user of the operator's kubeconfig.
pub const OPERATOR_USER: &str = "freehold";

/// How long the API server may take to be ready: 3 s on an idle machine, many times that on one that compiles
/// meanwhile.
const READY_LIMIT: Duration = Duration::from_secs(180);
/// How often readiness is asked.
const READY_POLL: Duration = Duration::from_millis(100);
/// How often the start is tried when another process took the port between its choice and its use.
const PORT_ATTEMPTS: u32 = 5;

pub fn api(doing: &str) -> impl FnOnce(kube::Error) -> Error + use<> {
    let doing = doing.to_owned();
    move |source| Error::Api { doing, source: Box::new(source) }
}

/// Waits until `is_so`, and fails early when a process ends meanwhile.
pub async fn wait(
    processes: &mut [Process],
    what: &str,
    blame: Program,
    is_so: impl AsyncFn() -> bool,
) -> Result<(), Error> {
    let started = Instant::now();
    loop {
        if tokio::time::timeout(READY_LIMIT, is_so()).await.unwrap_or(false) {
            return Ok(());
        }
        for process in processes.iter_mut() {
            if let Some(status) = process.ended() {
                return Err(Error::Ended {
                    name: process.name().to_owned(),
                    status: status.to_string(),
                    log: process.log_tail(),
                });
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

/// etcd and the API server.
pub struct Servers {
    pub server: String,
    pub port: u16,
    pub authority: Authority,
    pub processes: Vec<Process>,
}

/// etcd and the API server of a run folder of their own.
pub struct Opened {
    pub tools: Tools,
    pub folder: RunFolder,
    pub servers: Servers,
    /// A client that may do everything.
    pub client: Client,
}

/// Builds the programs if they are not in the cache, showing progress on standard error, makes a run folder,
/// and starts etcd and the API server there.
pub async fn open(options: &ControlPlaneOptions) -> Result<Opened, Error> {
    let tools = Tools::ensure(&options.cache, Bundle::VIRTUAL, &Progress::on_stderr()).await?;
    let folder = RunFolder::create(&options.cache, &options.name)
        .map_err(|source| Error::System { doing: "make the run folder in the cache".to_owned(), source })?;
    let servers = start(&tools, &folder, options).await?;
    let client = client(&folder.path().join("box.kubeconfig")).await?;
    Ok(Opened { tools, folder, servers, client })
}

/// Starts etcd and the API server and waits until it is ready; again with another port if that was taken
/// meanwhile.
async fn start(tools: &Tools, folder: &RunFolder, options: &ControlPlaneOptions) -> Result<Servers, Error> {
    let path = folder.path();
    let system = |doing: &str| {
        let doing = doing.to_owned();
        move |source| Error::System { doing, source }
    };
    for (file, text) in
        [("audit-policy.yaml", components::AUDIT_POLICY), ("kwok.yaml", components::KWOK_CONFIG)]
    {
        std::fs::write(path.join(file), text).map_err(system(&format!("write {file} in the run folder")))?;
    }
    // What machines and tokens that outlive this run rely on is kept beside the data.
    let state = options.state.clone().unwrap_or_else(|| path.to_owned());
    let data = state.join("etcd");
    make_private_folder(&data).map_err(system(&format!("make the folder {}", data.display())))?;
    let authority = Authority::load_or_create(&state, path)?;
    authority
        .server("api-server", &["127.0.0.1", "localhost", components::FIRST_SERVICE_ADDRESS, SERVER_NAME])?;
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
        let ready = wait(&mut processes, "the API server being ready", Program::ApiServer, async || {
            is_ready(&client).await
        });
        match ready.await {
            Ok(()) => return Ok(Servers { server, port, authority, processes }),
            Err(Error::Ended { log, .. })
                if log.contains("address already in use") && attempt < PORT_ATTEMPTS =>
            {
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

pub fn launch(
    tools: &Tools,
    folder: &RunFolder,
    program: Program,
    args: Vec<String>,
) -> Result<Process, Error> {
    let failed = |source| Error::System { doing: format!("start {}", program.name()), source };
    let path = tools.program(program);
    let variables = components::variables(program).iter().map(|&variable| variable.to_owned());
    let args = variables.chain([path.display().to_string()]).chain(args).collect();
    let launch =
        Launch { name: program.name(), program: Path::new("/usr/bin/env"), args, folder: folder.path() };
    let process = Process::start(launch).map_err(failed)?;
    folder.remember(&process).map_err(failed)?;
    Ok(process)
}

/// A port that was free a moment ago.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

pub async fn client(kubeconfig: &Path) -> Result<Client, Error> {
    let failed = |source| Error::Kubeconfig { path: kubeconfig.to_owned(), source: Box::new(source) };
    let parsed = Kubeconfig::read_from(kubeconfig).map_err(failed)?;
    let config =
        Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await.map_err(failed)?;
    Client::try_from(config).map_err(api("make a client for the API server"))
}

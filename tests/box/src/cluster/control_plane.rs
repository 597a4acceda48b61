//! A real Kubernetes control plane in processes of this machine: starts it, waits until it is usable, stops
//! it.

mod api_server;
mod components;
mod error;
mod objects;
mod options;
mod servers;
mod timing;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Node, ServiceAccount};
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use api_server::ApiServer;
pub use components::FIRST_SERVICE_ADDRESS;
pub use error::Error;
pub use objects::{PLATFORM_NODE, STORAGE_CLASS, machine_status};
pub use options::ControlPlaneOptions;
pub use servers::OPERATOR_USER;
pub use timing::NodeTiming;

use crate::base::process::Process;
use crate::cluster::certificates::Authority;
use crate::cluster::run_folder::RunFolder;
use crate::cluster::tools::{Program, Tools};
use crate::cluster::virtual_kubelet;

/// How long the API server may take for its graceful stop. Its own limit is a minute, for clients that a box
/// does not have.
const API_SERVER_GRACE: Duration = Duration::from_secs(5);
/// How long the others may take.
const GRACE: Duration = Duration::from_secs(3);
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
    /// Starts etcd, the API server, the controller-manager, the scheduler and kwok, makes the objects that
    /// every box has, and returns when the platform's own Node is Ready. Builds the programs first when they
    /// are not in the cache, showing progress on standard error. Takes about 6 s.
    ///
    /// The tasks of its virtual kubelet run on the current tokio runtime.
    pub async fn start(options: ControlPlaneOptions) -> Result<Self, Error> {
        let servers::Opened { tools, folder, servers: started, client } = servers::open(&options).await?;
        let path = folder.path();

        let mut processes = started.processes;
        for (program, args) in [
            (Program::ControllerManager, components::controller_manager(options.timing)),
            (Program::Scheduler, components::scheduler()),
            (Program::Kwok, components::kwok(options.timing)),
        ] {
            processes.push(servers::launch(&tools, &folder, program, args)?);
        }
        // Stopped from the front: the API server first (it hangs in its graceful stop when etcd is gone
        // before), etcd last.
        if let Some(etcd) = processes.iter().position(|process| process.name() == Program::Etcd.name()) {
            let etcd = processes.remove(etcd);
            processes.push(etcd);
        }

        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        objects::apply(&client).await.map_err(servers::api("make the objects that every box has"))?;
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

    /// The kubeconfig of the operator: [`OPERATOR_USER`], which the audit log names. It has no rights at
    /// first.
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

    /// The UID of the namespace kube-system: by it an operator knows the cluster, unless it is told another
    /// id.
    pub async fn cluster_id(&self) -> Result<String, Error> {
        let namespace = Api::<Namespace>::all(self.client.clone()).get("kube-system").await;
        let namespace = namespace.map_err(servers::api("read the namespace kube-system"))?;
        Ok(namespace.metadata.uid.unwrap_or_default())
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

    /// The API server's audit log: one JSON event a line for each request that was answered, with user and
    /// user agent; [`crate::cluster::audit`] reads it.
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
        // The API server waits for its clients' connections, so they are asked to end with it; it must end
        // before etcd does.
        for process in self.processes.iter_mut().filter(|process| process.name() != Program::Etcd.name()) {
            process.ask_to_end();
        }
        for process in &mut self.processes {
            let grace = if process.name() == Program::ApiServer.name() { API_SERVER_GRACE } else { GRACE };
            process.stop(grace).await;
        }
    }

    /// The API server answers; usable means that the controllers work too (a service account was made), that
    /// kwok works (the platform's Node is Ready), and so that a pod can be created and scheduled.
    async fn wait_until_usable(&mut self) -> Result<(), Error> {
        let accounts = Api::<ServiceAccount>::namespaced(self.client.clone(), "default");
        self.wait("the default service account", Program::ControllerManager, async || {
            accounts.get("default").await.is_ok()
        })
        .await?;
        let nodes = Api::<Node>::all(self.client.clone());
        self.wait("the platform's Node being Ready", Program::Kwok, async || {
            nodes.get(PLATFORM_NODE).await.is_ok_and(|node| virtual_kubelet::is_ready(&node))
        })
        .await
    }

    async fn wait(&mut self, what: &str, blame: Program, is_so: impl AsyncFn() -> bool) -> Result<(), Error> {
        servers::wait(&mut self.processes, what, blame, is_so).await
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

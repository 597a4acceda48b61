//! etcd and the API server alone: no controller, scheduler or kubelet changes what a client writes.

use kube::Client;

use super::error::Error;
use super::options::ControlPlaneOptions;
use super::servers;
use crate::base::process::Process;
use crate::base::progress::Progress;
use crate::cluster::run_folder::RunFolder;
use crate::cluster::tools::{Bundle, Tools};

/// A running API server; dropped, it is killed and its folder removed.
pub struct ApiServer {
    client: Client,
    // The processes end before their folder is removed.
    _processes: Vec<Process>,
    _folder: RunFolder,
}

impl ApiServer {
    /// Starts both, and returns when the API server is ready. Builds the programs first when they are not in
    /// the cache, showing progress on standard error.
    pub async fn start(options: ControlPlaneOptions) -> Result<Self, Error> {
        let tools = Tools::ensure(&options.cache, Bundle::VIRTUAL, &Progress::on_stderr()).await?;
        let folder = RunFolder::create(&options.cache, &options.name).map_err(|source| Error::System {
            doing: "make the run folder in the cache".to_owned(),
            source,
        })?;
        let started = servers::start(&tools, &folder, &options).await?;
        let client = servers::client(&folder.path().join("box.kubeconfig")).await?;
        Ok(Self { client, _processes: started.processes, _folder: folder })
    }

    /// A client that may do everything, on the runtime that started the API server.
    pub fn client(&self) -> Client {
        self.client.clone()
    }
}

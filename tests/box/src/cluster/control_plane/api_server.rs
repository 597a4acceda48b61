//! etcd and the API server alone: no controller, scheduler or kubelet changes what a client writes.

use kube::Client;

use super::error::Error;
use super::options::ControlPlaneOptions;
use super::servers::{Opened, open};
use crate::base::process::Process;
use crate::cluster::run_folder::RunFolder;

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
        let Opened { folder, servers, client, .. } = open(&options).await?;
        Ok(Self { client, _processes: servers.processes, _folder: folder })
    }

    /// A client that may do everything, on the runtime that started the API server.
    pub fn client(&self) -> Client {
        self.client.clone()
    }
}

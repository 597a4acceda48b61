//! A test environment: a namespace, an EC2, a NodeClass and an operator of its own, on the control plane that
//! all tests share.

mod beside;
mod databases;
mod end;
mod operator;
mod options;
mod start;

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use ec2sim::Simulator;
use freehold_box::account::Site;
use freehold_box::cluster::control_plane::ControlPlane;
pub use freehold_box::cluster::shared::run;
use freehold_box::legacy::{Account, Legacy, Order};
use kube::Client;

use super::env::Env;
use super::permits::Permit;
pub use super::process::OPERATOR;
use super::process::Operator;
use super::proxy::Proxy;
use super::tap::Tap;
use super::wait::LIMIT;
pub use beside::{Beside, short_terms};
pub use options::Options;
pub use start::{ELECTION, control_plane, install};

/// A test environment.
pub struct TestEnv {
    /// The name of its namespace, its NodeClass and its cluster in tags.
    pub name: String,
    /// A client of the test's own.
    pub client: Client,
    /// Its EC2, and what plays the machines.
    pub site: Site,
    /// What passes between the operator and the API server.
    pub tap: Arc<Tap>,
    /// How much faster time passes.
    pub scale: u32,
    /// Object UIDs whose deletion was asked for, with the last entry of the journal at that time.
    pub deleted: Vec<(String, u64)>,
    settings: Vec<String>,
    environment: [(&'static str, String); 6],
    proxies: Vec<Proxy>,
    operator: Option<Operator>,
    starts: usize,
    folder: tempfile::TempDir,
    /// None on a control plane of its own.
    _permit: Option<Permit>,
    /// The control plane that it is on.
    pub control_plane: Arc<ControlPlane>,
}

impl TestEnv {
    /// The address of EC2 as the operator has it: of the tap, if that is before EC2.
    pub fn tapped_ec2(&self) -> &str {
        let found = self.environment.iter().find(|(name, _)| *name == "AWS_ENDPOINT_URL_EC2");
        &found.unwrap().1
    }

    /// kubectl with the administrator's rights in this namespace.
    pub fn kubectl(&self) -> Command {
        let mut kubectl = Command::new(self.control_plane.kubectl());
        kubectl.arg("--kubeconfig").arg(self.control_plane.kubeconfig()).args(["--namespace", &self.name]);
        kubectl
    }
}

impl Env for TestEnv {
    fn client(&self) -> Client {
        self.client.clone()
    }

    fn namespace(&self) -> &str {
        &self.name
    }

    fn class(&self) -> &str {
        &self.name
    }

    fn cluster(&self) -> &str {
        &self.name
    }

    fn ec2(&self) -> &Simulator {
        self.site.simulator()
    }

    fn limit(&self) -> Duration {
        LIMIT
    }

    async fn legacy(&self, order: Order<'_>) -> Legacy {
        Legacy::create(&self.client, &Account::of(&self.site), order).await.unwrap()
    }
}

//! A test environment: a namespace, an EC2, a NodeClass and an operator of its own, on the control plane that
//! all tests share.

mod beside;
mod databases;
mod end;
mod operator;
mod options;
mod start;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;

use ec2sim::{Fate, InstanceState, JournalEntry, Simulator};
use freehold_box::account::Site;
use freehold_box::cluster::control_plane::ControlPlane;
pub use freehold_box::cluster::shared::run;
use k8s_openapi::NamespaceResourceScope;
use kube::api::ListParams;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use super::permits::Permit;
pub use super::process::OPERATOR;
use super::process::Operator;
use super::proxy::Proxy;
use super::tap::Tap;
pub use beside::{Beside, as_in_production};
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
    /// The simulated EC2.
    pub fn ec2(&self) -> &Simulator {
        self.site.simulator()
    }

    /// The address of EC2 as the operator has it: of the tap, if that is before EC2.
    pub fn tapped_ec2(&self) -> &str {
        let found = self.environment.iter().find(|(name, _)| *name == "AWS_ENDPOINT_URL_EC2");
        &found.unwrap().1
    }

    /// The API of one kind in the test environment's namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// The objects of one kind in the test environment's namespace.
    pub async fn list<K>(&self) -> Vec<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        self.api::<K>().list(&ListParams::default()).await.unwrap().items
    }

    /// The operator's calls to EC2 since this entry of the journal.
    pub fn calls_since(&self, entry: u64) -> Vec<JournalEntry> {
        self.ec2().journal_since(entry).into_iter().filter(|entry| entry.caller == OPERATOR).collect()
    }

    /// The last entry of the journal.
    pub fn mark(&self) -> u64 {
        self.ec2().journal().last().map_or(0, |entry| entry.seq)
    }

    /// The operator's mutating calls that EC2 carried out, by action.
    pub fn mutations(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for entry in self.calls_since(0) {
            if matches!(entry.fate, Fate::Committed | Fate::Lost) {
                *counts.entry(entry.action).or_default() += 1;
            }
        }
        counts
    }

    /// The instances that are not terminated or about to be.
    pub fn live_instances(&self) -> Vec<ec2sim::InstanceView> {
        let ended = [InstanceState::ShuttingDown, InstanceState::Terminated];
        self.ec2().instances().into_iter().filter(|instance| !ended.contains(&instance.state)).collect()
    }

    /// The EBS volumes that are no instance's root.
    pub fn data_volumes(&self) -> Vec<ec2sim::VolumeView> {
        let volumes = self.ec2().volumes();
        volumes.into_iter().filter(|volume| volume.tags.contains_key("freehold.dev/volume-uid")).collect()
    }

    /// kubectl with the administrator's rights in this namespace.
    pub fn kubectl(&self) -> Command {
        let mut kubectl = Command::new(self.control_plane.kubectl());
        kubectl.arg("--kubeconfig").arg(self.control_plane.kubeconfig()).args(["--namespace", &self.name]);
        kubectl
    }
}

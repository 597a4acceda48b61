//! What a machine is made from: what it shares with the others of its site, and what is its own.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::certificates::Authority;
use crate::machines::images::Template;
use crate::machines::network::Network;

/// What the machines of a site share.
#[derive(Debug)]
pub struct SiteResources {
    /// Their network.
    pub network: Network,
    /// Who says who they are.
    pub authority: Arc<Authority>,
    /// Their programs: kubelet, containerd, its shim, runc, ctr, and the network plugins ptp, host-local and
    /// loopback. Each machine has them in /opt/freehold-box/bin.
    pub programs: Vec<PathBuf>,
    /// The images that every machine has from the start.
    pub template: Template,
    /// How long the lease of a Node lasts.
    pub lease: Duration,
}

/// Which machine.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The instance's id.
    pub instance: String,
    /// The region.
    pub region: String,
    /// The zone.
    pub zone: String,
    /// The instance's type.
    pub instance_type: String,
    /// Its address.
    pub private_ip: Ipv4Addr,
    /// Its host name, which is also its Node's.
    pub private_dns: String,
    /// What runs on its first boot.
    pub user_data: Option<String>,
    /// The folder that is its disk.
    pub disk: PathBuf,
    /// Which of the 256 pod networks of its site is its own.
    pub slot: u8,
}

/// Takes the lines that a machine writes to its console.
pub type Console = Arc<dyn Fn(&str) + Send + Sync>;

//! The real machines of a site: each follows the instance that EC2 shows, through boot, reboot, shut-down,
//! power cut and its end.

mod instance;
mod place;
mod shared;

use std::collections::{BTreeMap, HashSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use box_materials::real::Real;
use ec2sim::Simulator;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::base::host_cleanup::Watcher;
use crate::cluster::control_plane::ControlPlane;
use crate::cluster::tools::Program;
use crate::machines::disks;
use crate::machines::machine::{Machine, SiteResources};
use crate::machines::network::{self, API_SERVER_PORT};

pub use place::Place;

use shared::Shared;

/// What a machine has in /opt/freehold-box/bin.
const PROGRAMS: [Program; 9] = [
    Program::EbsDriver,
    Program::Kubelet,
    Program::Containerd,
    Program::ContainerdShim,
    Program::Ctr,
    Program::Runc,
    Program::CniPtp,
    Program::CniHostLocal,
    Program::CniLoopback,
];

/// The machines of a site; clones are the same ones.
#[derive(Clone)]
pub struct Machines {
    shared: Arc<Shared>,
}

impl Machines {
    /// Lets machines follow the instances of this simulator, as tasks of the current runtime.
    pub async fn start(
        control_plane: &ControlPlane,
        place: Place,
        simulator: (Simulator, SocketAddr),
        (boot, real, volumes): (Duration, &Real, disks::Disks),
        (tasks, stop): (TaskTracker, CancellationToken),
    ) -> Result<(Self, Watcher), network::Error> {
        let Place { network, watcher, folder } = place;
        network
            .forward(API_SERVER_PORT, SocketAddr::from((Ipv4Addr::LOCALHOST, control_plane.port())))
            .await?;
        network.forward(simulator.1.port(), simulator.1).await?;
        let resources = SiteResources {
            network,
            authority: control_plane.authority(),
            programs: PROGRAMS.into_iter().map(|program| real.tools.program(program)).collect(),
            template: real.template.clone(),
            lease: control_plane.timing().lease,
        };
        let shared = Shared {
            resources: Arc::new(resources),
            simulator: simulator.0,
            folder,
            boot,
            volumes,
            running: Mutex::default(),
            slots: Mutex::default(),
            leaders: watch::Sender::default(),
            stop,
        };
        let machines = Self { shared: Arc::new(shared) };
        tasks.spawn(machines.clone().follow());
        Ok((machines, watcher))
    }

    /// The number of their network.
    pub fn number(&self) -> u8 {
        self.shared.resources.network.number()
    }

    /// The host as machines see it: the API server is at port 6443, EC2 at its own port.
    pub fn gateway(&self) -> Ipv4Addr {
        self.shared.resources.network.gateway()
    }

    /// The machine of this instance, if it runs.
    pub fn get(&self, instance: &str) -> Option<Arc<Machine>> {
        self.shared.machine(instance)
    }

    /// The machines that run: the process that holds each one's namespaces, by instance id; after a boot it
    /// is another one.
    pub fn leaders(&self) -> watch::Receiver<BTreeMap<String, u32>> {
        self.shared.leaders.subscribe()
    }

    /// The power of one machine fails, and EC2 does not know: what its disks had not been given is lost, and
    /// it stays dark until it is rebooted, or stopped and started. Says whether it ran.
    pub async fn cut_power(&self, instance: &str) -> bool {
        self.shared.cut_power(instance).await
    }

    /// Each instance gets a task when it is first seen; it ends with the instance, or with the site.
    async fn follow(self) {
        let mut seen: HashSet<String> = HashSet::new();
        let followers = TaskTracker::new();
        let mut changes = self.shared.simulator.changes();
        while !self.shared.stop.is_cancelled() {
            changes.mark_unchanged();
            for instance in self.shared.simulator.instances() {
                if seen.insert(instance.id.clone()) {
                    followers.spawn(instance::follow(self.shared.clone(), instance.id));
                }
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = self.shared.stop.cancelled() => {}
            }
        }
        followers.close();
        followers.wait().await;
        self.shared.resources.network.stop().await;
    }
}

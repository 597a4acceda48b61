//! The real machines of a site: each follows the instance that EC2 shows, through boot, reboot, shut-down, power cut and its end.

mod instance;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ec2sim::Simulator;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::base::cache::{Cache, make_private_folder};
use crate::base::error_chain::chain;
use crate::base::progress::Progress;
use crate::cluster::control_plane::ControlPlane;
use crate::cluster::tools::{self, Bundle, Program, Tools};
use crate::machines::disks;
use crate::machines::images::{self, Containerd, Template};
use crate::machines::machine::{Disks, Ground, Machine, Watcher};
use crate::machines::network::{self, API_SERVER_PORT, Network, system};

/// How long the machines may take to shut down at the end of a site.
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// What real machines are made of.
#[derive(Clone, Debug)]
pub struct Real {
    /// Their programs, and those of the CSI driver.
    pub tools: Tools,
    /// The images of every machine.
    pub template: Template,
}

/// Why there is nothing to make real machines of.
#[derive(Debug, thiserror::Error)]
pub enum Unmade {
    /// Their programs.
    #[error(transparent)]
    Tools(#[from] tools::Error),

    /// Their images.
    #[error(transparent)]
    Images(#[from] images::Error),
}

impl Real {
    /// From the cache; builds the programs and makes the images that are not in it, showing progress.
    pub async fn ensure(cache: &Cache, progress: &Progress) -> Result<Self, Unmade> {
        let tools = Tools::ensure(cache, Bundle::REAL, progress).await?;
        let containerd = Containerd { daemon: tools.program(Program::Containerd), ctr: tools.program(Program::Ctr) };
        let template = Template::ensure(cache, &containerd, progress).await?;
        Ok(Self { tools, template })
    }
}

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

/// The number of a kept site, in its folder.
const NUMBER: &str = "number";

/// The machines of a site; clones are the same ones.
#[derive(Clone)]
pub struct Machines {
    shared: Arc<Shared>,
}

struct Shared {
    ground: Arc<Ground>,
    simulator: Simulator,
    folder: PathBuf,
    boot: Duration,
    volumes: disks::Disks,
    running: Mutex<HashMap<String, Arc<Machine>>>,
    slots: Mutex<HashMap<String, u8>>,
    leaders: watch::Sender<BTreeMap<String, u32>>,
    stop: CancellationToken,
}

/// A claimed network, with the process that gives everything back.
pub struct Place {
    /// The network.
    pub network: Network,
    watcher: Watcher,
    /// Where the machines' disks and the volumes are.
    pub folder: PathBuf,
}

impl Place {
    /// Claims a network for machines whose disks are in the state folder, or in the run's folder if there is none. A state folder's
    /// machines have the same network in each run.
    pub async fn claim(control_plane: &ControlPlane, state: Option<&Path>) -> Result<Self, network::Error> {
        let run = control_plane.folder();
        let (folder, disks) = match state {
            Some(state) => (state.join("machines"), Disks::Keep),
            None => (tempfile_in(run)?, Disks::Remove),
        };
        make_private_folder(&folder).map_err(system(format!("make the folder {}", folder.display())))?;
        let folder = folder.canonicalize().map_err(system(format!("find {}", folder.display())))?;
        let kept = std::fs::read_to_string(folder.join(NUMBER)).ok().and_then(|text| text.trim().parse().ok());
        let network = Network::claim(&folder, kept).await?;
        let watcher = Watcher::start(network.number(), &folder, disks, run).map_err(system("start the process that clears up"))?;
        std::fs::write(folder.join(NUMBER), network.number().to_string()).map_err(system("remember the network's number"))?;
        Ok(Self { network, watcher, folder })
    }
}

/// A new folder for the machines of a site that nobody keeps: a control plane may have several sites.
fn tempfile_in(run: &Path) -> Result<PathBuf, network::Error> {
    let made: io::Result<PathBuf> = tempfile::Builder::new().prefix("machines-").tempdir_in(run).map(tempfile::TempDir::keep);
    made.map_err(system("make a folder for the machines"))
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
        network.forward(API_SERVER_PORT, SocketAddr::from((Ipv4Addr::LOCALHOST, control_plane.port()))).await?;
        network.forward(simulator.1.port(), simulator.1).await?;
        let ground = Ground {
            network,
            authority: control_plane.authority(),
            programs: PROGRAMS.into_iter().map(|program| real.tools.program(program)).collect(),
            template: real.template.clone(),
            lease: control_plane.timing().lease,
        };
        let shared = Shared {
            ground: Arc::new(ground),
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
        self.shared.ground.network.number()
    }

    /// The host as machines see it: the API server is at port 6443, EC2 at its own port.
    pub fn gateway(&self) -> Ipv4Addr {
        self.shared.ground.network.gateway()
    }

    /// The machine of this instance, if it runs.
    pub fn get(&self, instance: &str) -> Option<Arc<Machine>> {
        self.shared.machine(instance)
    }

    /// The machines that run: the process that holds each one's namespaces, by instance id; after a boot it is another one.
    pub fn leaders(&self) -> watch::Receiver<BTreeMap<String, u32>> {
        self.shared.leaders.subscribe()
    }

    /// The power of one machine fails, and EC2 does not know: what its disks had not been given is lost, and it stays dark until it is
    /// rebooted, or stopped and started. Says whether it ran.
    pub async fn cut_power(&self, instance: &str) -> bool {
        self.shared.cut_power(instance).await
    }

    /// Each instance gets a task when it is first seen; it ends with the instance, or with the site.
    async fn follow(self) {
        let mut seen: HashSet<String> = HashSet::new();
        let keepers = TaskTracker::new();
        let mut changes = self.shared.simulator.changes();
        while !self.shared.stop.is_cancelled() {
            changes.mark_unchanged();
            for instance in self.shared.simulator.instances() {
                if seen.insert(instance.id.clone()) {
                    keepers.spawn(instance::keep(self.shared.clone(), instance.id));
                }
            }
            tokio::select! {
                _ = changes.changed() => {}
                () = self.shared.stop.cancelled() => {}
            }
        }
        keepers.close();
        keepers.wait().await;
        self.shared.ground.network.stop().await;
    }
}

impl Shared {
    fn machine(&self, instance: &str) -> Option<Arc<Machine>> {
        lock(&self.running).get(instance).cloned()
    }

    async fn cut_power(&self, instance: &str) -> bool {
        let Some(machine) = self.machine(instance) else { return false };
        let (volumes, id) = (self.volumes.clone(), instance.to_owned());
        let cut = move || {
            if let Err(error) = volumes.cut_power(&id) {
                tracing::error!(instance = id, error = chain(&error), "the disks of a machine could not be cut off with it");
            }
        };
        machine.cut_power(cut).await;
        self.is_gone(&machine);
        true
    }

    async fn shut_down(&self, instance: &str, grace: Duration) {
        let Some(machine) = self.machine(instance) else { return };
        machine.shut_down(grace).await;
        self.is_gone(&machine);
    }

    fn runs(&self, machine: Machine) {
        let (id, pid) = (machine.spec().instance.clone(), machine.pid());
        lock(&self.running).insert(id.clone(), Arc::new(machine));
        self.leaders.send_modify(|leaders| {
            leaders.insert(id, pid);
        });
    }

    fn is_gone(&self, machine: &Machine) {
        let id = &machine.spec().instance;
        lock(&self.running).remove(id);
        self.leaders.send_modify(|leaders| {
            leaders.remove(id);
        });
    }

    /// The lowest pod network that no machine has.
    fn slot(&self, instance: &str) -> u8 {
        let mut slots = lock(&self.slots);
        let taken: HashSet<u8> = slots.values().copied().collect();
        let free = (0..u8::MAX).find(|slot| !taken.contains(slot)).unwrap_or(u8::MAX);
        *slots.entry(instance.to_owned()).or_insert(free)
    }

    fn free_slot(&self, instance: &str) {
        lock(&self.slots).remove(instance);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! One AWS account with its machines: joins the instances of one simulator to a control plane.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use box_materials::real::Real;
use ec2sim::{Simulator, World};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::account::context::Context;
use crate::account::real_machines::{Machines, Place};
use crate::account::virtual_machines::{attacher, nodes, provisioner, resizer};
use crate::account::{cloud, cloud_controller, user_data};
use crate::base::host_cleanup::Watcher;
use crate::cluster::control_plane::{ControlPlane, STORAGE_CLASS};
use crate::machines::csi::{self, Controller, Setup};
use crate::machines::disks::{self, Disks, Violation};
use crate::machines::network;

/// How long the site's tasks may take to end: they only have to notice it, but real machines shut down.
const STOP_LIMIT: Duration = Duration::from_secs(20);

/// Counts the sites of this process. Each has ids and addresses, and so names of Nodes, that no other had:
/// their machines and disks share a control plane, whose controllers go on with a volume and a Node of a name
/// long after their site has ended.
static STARTED: AtomicU64 = AtomicU64::new(0);

/// How many sites have their addresses in one network `<n>.0.0.0/8`: those of real machines, which are the
/// host's and not the process', come after them in the first.
const NUMBERS: u8 = network::NUMBERS.start;

/// How a site behaves.
#[derive(Clone, Debug)]
pub struct SiteOptions {
    /// The simulated EC2. The seed and the subnets' addresses are shifted, for each site of a process
    /// otherwise.
    pub simulator: ec2sim::Options,
    /// What its instances are made of when they are machines of this host, with kubelets; without, they are
    /// Nodes in name, on which pods run in name.
    pub real: Option<Real>,
    /// Where the disks of real machines are kept beyond this run.
    pub state: Option<PathBuf>,
    /// From an instance's start to its Node, or with real machines to the start of its operating system, on
    /// the wall clock.
    pub boot: Duration,
    /// From a machine's end to the deletion of its Node by the cloud-controller, on the wall clock.
    pub node_removal: Duration,
}

impl SiteOptions {
    /// Fractions of seconds.
    pub fn fast() -> Self {
        let (boot, node_removal) = (Duration::from_millis(200), Duration::from_millis(500));
        Self { simulator: ec2sim::Options::default(), real: None, state: None, boot, node_removal }
    }

    /// No time at all for what is AWS', but for the cloud-controller, which looks when it looks.
    pub fn zero() -> Self {
        let simulator = ec2sim::Options { delays: ec2sim::Delays::zero(), ..ec2sim::Options::default() };
        Self {
            simulator,
            real: None,
            state: None,
            boot: Duration::ZERO,
            node_removal: Duration::from_secs(10),
        }
    }

    /// As AWS and Amazon Linux take: 30 s from the call to the start of the operating system, 20 s to a stop
    /// or an end, 3 s to attach.
    pub fn realistic() -> Self {
        let (stop, realistic) = (Duration::from_secs(20), ec2sim::Delays::realistic());
        let delays = ec2sim::Delays { stopping: stop, shutting_down: stop, ..realistic };
        let simulator = ec2sim::Options { delays, ..ec2sim::Options::default() };
        let (boot, node_removal) =
            (Duration::from_secs(30).saturating_sub(realistic.pending), Duration::from_secs(10));
        Self { simulator, real: None, state: None, boot, node_removal }
    }
}

/// Why a site could not be started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The simulator's files.
    #[error("failed to start the simulated EC2: check its journal and state folder")]
    Simulator(#[source] io::Error),

    /// Its port.
    #[error("failed to listen on a port of the loopback for the simulated EC2")]
    Listen(#[source] io::Error),

    /// The network of its real machines.
    #[error(transparent)]
    Network(#[from] network::Error),

    /// Their volumes.
    #[error(transparent)]
    Volumes(#[from] disks::Error),

    /// The EBS CSI driver.
    #[error(transparent)]
    Driver(#[from] csi::Error),
}

/// A running site; dropped, its tasks end.
pub struct Site {
    simulator: Simulator,
    world: World,
    endpoint: String,
    real: Option<Parts>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// What only a site of real machines has.
struct Parts {
    machines: Machines,
    volumes: Disks,
    watcher: Watcher,
}

impl Site {
    /// Starts EC2's HTTP server on a free port and the tasks of machines, cloud-controller, CSI attacher,
    /// provisioner and resizer. They run on the current tokio runtime.
    pub async fn start(control_plane: &ControlPlane, options: SiteOptions) -> Result<Self, Error> {
        let place = match &options.real {
            Some(_) => Some(Place::claim(control_plane, options.state.as_deref()).await?),
            None => None,
        };
        let before = STARTED.fetch_add(1, Ordering::Relaxed);
        let addresses = place.as_ref().map_or_else(|| numbered(before), |place| [0, place.network.number()]);
        let mut settings = options.simulator;
        settings.seed = settings.seed.wrapping_add(before << 32);
        for subnet in &mut settings.world.subnets {
            subnet.cidr = shifted(&subnet.cidr, addresses);
        }
        let world = settings.world.clone();
        let simulator = Simulator::new(settings).map_err(Error::Simulator)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(Error::Listen)?;
        let address = listener.local_addr().map_err(Error::Listen)?;
        let endpoint = format!("http://{address}");

        let context = Context {
            simulator: simulator.clone(),
            client: control_plane.client(),
            cloud: cloud::client(&endpoint, &world.region),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        let (tasks, stop) = (context.tasks.clone(), context.stop.clone());
        let (server, server_stop) = (simulator.clone(), stop.clone());
        tasks.spawn(async move {
            if let Err(error) = server.serve(listener, server_stop).await {
                tracing::error!(%error, "the simulated EC2 stopped serving");
            }
        });
        tasks.spawn(cloud_controller::run(context.clone(), options.node_removal));
        let real = if let (Some(real), Some(place)) = (options.real, place) {
            Some(start_real(control_plane, &context, address, &real, (place, options.boot)).await?)
        } else {
            tasks.spawn(nodes::run(context.clone(), options.boot));
            tasks.spawn(attacher::run(context.clone()));
            tasks.spawn(provisioner::run(context.clone()));
            tasks.spawn(resizer::run(context));
            None
        };
        Ok(Self { simulator, world, endpoint, real, tasks, stop })
    }

    /// The simulated EC2.
    pub fn simulator(&self) -> &Simulator {
        &self.simulator
    }

    /// EC2's URL, for `AWS_ENDPOINT_URL_EC2`.
    pub fn endpoint(&self) -> String {
        self.endpoint.clone()
    }

    /// What the account has: region, zones, subnets, images, security groups, profiles, keys, types. A
    /// `NodeClass` names these.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// A `NodeClass` of this name, as an object for the API server: the account's first image and group, all
    /// its subnets and types, and user data by which machines join as Freehold wants them.
    pub fn node_class(&self, name: &str) -> Value {
        node_class(name, &self.world)
    }

    /// The region.
    pub fn region(&self) -> &str {
        &self.world.region
    }

    /// The real machines, if that is what its instances are.
    pub fn machines(&self) -> Option<&Machines> {
        self.real.as_ref().map(|parts| &parts.machines)
    }

    /// What must never happen: volumes that were taken from machines which had them mounted.
    pub fn violations(&self) -> Vec<Violation> {
        self.real.as_ref().map(|parts| parts.volumes.violations()).unwrap_or_default()
    }

    /// Ends the tasks and the server; real machines shut down. The Nodes of its machines stay, silent; stop
    /// the machines first to see them go.
    pub async fn stop(mut self) {
        self.stop.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(STOP_LIMIT, self.tasks.wait()).await;
        if let Some(Parts { machines, volumes, watcher }) = self.real.take() {
            drop((machines, volumes));
            watcher.clear().await;
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Starts the machines, their volumes, and the EBS CSI driver.
async fn start_real(
    control_plane: &ControlPlane,
    context: &Context,
    endpoint: SocketAddr,
    real: &Real,
    (place, boot): (Place, Duration),
) -> Result<Parts, Error> {
    let volumes = Disks::open(&place.folder.join("volumes"))?;
    let running = (context.tasks.clone(), context.stop.clone());
    let ec2 = (context.simulator.clone(), endpoint);
    let (machines, watcher) =
        Machines::start(control_plane, place, ec2, (boot, real, volumes.clone()), running).await?;
    context.tasks.spawn(volumes.clone().run(
        context.simulator.clone(),
        machines.leaders(),
        context.stop.clone(),
    ));
    let setup = Setup {
        tools: &real.tools,
        folder: control_plane.folder(),
        kubeconfig: &control_plane.csi_kubeconfig(),
        endpoint: &format!("http://{endpoint}"),
        region: &context.simulator.world().region,
    };
    let controller = Controller::start(setup).await?;
    context.tasks.spawn(controller.run(context.stop.clone()));
    let of = machines.clone();
    let machine = move |instance: &str| of.get(instance);
    context.tasks.spawn(csi::run_nodes(
        context.client.clone(),
        machines.leaders(),
        machine,
        context.stop.clone(),
    ));
    Ok(Parts { machines, volumes, watcher })
}

/// By how much the first two bytes of a site's addresses are shifted when this many were started before it.
fn numbered(before: u64) -> [u8; 2] {
    let byte = |number: u64| u8::try_from(number).unwrap_or(u8::MAX);
    [byte(before / u64::from(NUMBERS)), byte(before % u64::from(NUMBERS))]
}

/// `10.0.16.0/20` shifted by `[1, 7]` is `11.7.16.0/20`.
fn shifted(cidr: &str, by: [u8; 2]) -> String {
    let mut parts: Vec<String> = cidr.split('.').map(str::to_owned).collect();
    for (part, by) in parts.iter_mut().zip(by) {
        *part = part.parse::<u8>().unwrap_or_default().wrapping_add(by).to_string();
    }
    parts.join(".")
}

/// A NodeClass of this account: its first image, and every subnet.
pub fn node_class(name: &str, world: &World) -> Value {
    json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "NodeClass",
        "metadata": {"name": name},
        "spec": {
            "imageID": world.images.first().map(|image| &image.id),
            "subnets": world.subnets.iter().map(|subnet| json!({"id": subnet.id,
            "zone": subnet.zone})).collect::<Vec<_>>(),
            "securityGroupIDs": world.security_groups.first().map(|group| [&group.id]),
            "instanceProfile": world.instance_profiles.first(),
            "userData": user_data::DEDICATED,
            "instanceTypes": ["*"],
            "storageClassName": STORAGE_CLASS,
        },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_site_has_addresses_of_its_own_however_many_there_are() {
        let all: HashSet<String> =
            (0..1000).map(|before| shifted("10.0.16.0/20", numbered(before))).collect();
        assert_eq!(all.len(), 1000);
        assert_eq!(shifted("10.0.16.0/20", numbered(0)), "10.0.16.0/20");
        assert_eq!(shifted("10.0.16.0/20", numbered(107)), "11.7.16.0/20");
    }
}

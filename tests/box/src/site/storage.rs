//! The storage of real machines: block devices for the volumes, and the CSI driver that brings them to the pods.

use std::path::Path;

use ec2sim::Simulator;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::machines::{Machines, PowerCut};
use crate::cli::chain;
use crate::control_plane::ControlPlane;
use crate::csi;
use crate::disks::{self, Disks};
use crate::tools::Tools;

/// Why there is no storage.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The volumes.
    #[error(transparent)]
    Disks(#[from] disks::Error),

    /// The driver.
    #[error(transparent)]
    Driver(#[from] csi::Error),
}

/// The volumes below this folder, and what is to be done with them when a machine loses its power.
pub fn open(folder: &Path) -> Result<(Disks, PowerCut), Error> {
    let disks = Disks::open(&folder.join("disks"))?;
    let cut = disks.clone();
    let on_power_cut = PowerCut(std::sync::Arc::new(move |instance: &str| {
        if let Err(error) = cut.cut_power(instance) {
            tracing::error!(instance, error = chain(&error), "the devices of a machine were not cut off: this was no power cut");
        }
    }));
    Ok((disks, on_power_cut))
}

/// Lets the volumes follow EC2, and starts the driver: its controllers here, its node part in each machine. They act on every object of
/// the driver, so a control plane with real machines has one site.
pub async fn start(
    control_plane: &ControlPlane,
    tools: &Tools,
    disks: &Disks,
    machines: &Machines,
    (simulator, endpoint, region): (&Simulator, &str, &str),
    (tasks, stop): (&TaskTracker, &CancellationToken),
) -> Result<(), Error> {
    tasks.spawn(disks.clone().run(simulator.clone(), machines.leaders(), stop.clone()));
    let (folder, kubeconfig) = (control_plane.folder(), control_plane.kubeconfig());
    let controller = csi::Controller::start(csi::Setup { tools, folder, kubeconfig, endpoint, region }).await?;
    tasks.spawn(controller.run(stop.clone()));
    let of = machines.clone();
    tasks.spawn(csi::run_nodes(control_plane.client(), machines.leaders(), move |id| of.get(id), stop.clone()));
    Ok(())
}

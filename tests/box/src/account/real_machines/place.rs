//! Where a site of real machines is on this host: its network, its folder, and the process that removes it.

use std::io;
use std::path::{Path, PathBuf};

use crate::base::cache::make_private_folder;
use crate::base::host_cleanup::{Disks, Watcher};
use crate::cluster::control_plane::ControlPlane;
use crate::machines::network::{self, NUMBERS, Network, system};

/// The number of a kept site, in its folder.
const NUMBER: &str = "number";

/// A claimed network, with the process that removes everything at the end.
pub struct Place {
    /// The network.
    pub network: Network,
    pub(super) watcher: Watcher,
    /// Where the machines' disks and the volumes are.
    pub folder: PathBuf,
}

impl Place {
    /// Claims a network for machines whose disks are in the state folder, or in the run's folder if there is
    /// none. A state folder's machines have the same network in each run.
    pub async fn claim(control_plane: &ControlPlane, state: Option<&Path>) -> Result<Self, network::Error> {
        let run = control_plane.folder();
        let (folder, disks) = match state {
            Some(state) => (state.join("machines"), Disks::Keep),
            None => (tempfile_in(run)?, Disks::Remove),
        };
        make_private_folder(&folder).map_err(system(format!("make the folder {}", folder.display())))?;
        let folder = folder.canonicalize().map_err(system(format!("find {}", folder.display())))?;
        let kept =
            std::fs::read_to_string(folder.join(NUMBER)).ok().and_then(|text| text.trim().parse().ok());
        let candidates: Vec<u8> = match (kept, state) {
            (Some(number), _) => vec![number],
            // From the other end: no box that begins while this one is down takes the number that it comes
            // back to, as long as there are others.
            (None, Some(_)) => NUMBERS.rev().collect(),
            (None, None) => NUMBERS.collect(),
        };
        let network = Network::claim(&folder, &candidates).await?;
        let watcher = Watcher::start(network.number(), &folder, disks, run)
            .map_err(system("start the process that clears up"))?;
        std::fs::write(folder.join(NUMBER), network.number().to_string())
            .map_err(system("remember the network's number"))?;
        Ok(Self { network, watcher, folder })
    }
}

/// A new folder for the machines of a site whose state is not kept: a control plane may have several sites.
fn tempfile_in(run: &Path) -> Result<PathBuf, network::Error> {
    let made: io::Result<PathBuf> =
        tempfile::Builder::new().prefix("machines-").tempdir_in(run).map(tempfile::TempDir::keep);
    made.map_err(system("make a folder for the machines"))
}

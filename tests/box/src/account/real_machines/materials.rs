//! What real machines are made of: programs and images.

use crate::base::cache::Cache;
use crate::base::progress::Progress;
use crate::cluster::tools::{self, Bundle, Program, Tools};
use crate::machines::images::{self, Containerd, Template};

/// What real machines are made of.
#[derive(Clone, Debug)]
pub struct Real {
    /// Their programs, and those of the CSI driver.
    pub tools: Tools,
    /// The images of every machine.
    pub template: Template,
}

/// Why the programs or images of real machines could not be made.
#[derive(Debug, thiserror::Error)]
pub enum MaterialsError {
    /// Their programs.
    #[error(transparent)]
    Tools(#[from] tools::Error),

    /// Their images.
    #[error(transparent)]
    Images(#[from] images::Error),
}

impl Real {
    /// From the cache; builds the programs and makes the images that are not in it, showing progress.
    pub async fn ensure(cache: &Cache, progress: &Progress) -> Result<Self, MaterialsError> {
        let tools = Tools::ensure(cache, Bundle::REAL, progress).await?;
        let containerd = Containerd { daemon: tools.program(Program::Containerd), ctr: tools.program(Program::Ctr) };
        let template = Template::ensure(cache, &containerd, progress).await?;
        Ok(Self { tools, template })
    }
}

/// What a machine has in /opt/freehold-box/bin.
pub(super) const PROGRAMS: [Program; 9] = [
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

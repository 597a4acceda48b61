//! Why a machine is not what it should be.

use crate::cluster::certificates;
use crate::machines::{images, network};

/// Why a machine is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its network, or a program of the host.
    #[error(transparent)]
    Network(#[from] network::Error),

    /// Its images.
    #[error(transparent)]
    Images(#[from] images::Error),

    /// Its certificates.
    #[error(transparent)]
    Certificates(#[from] certificates::Error),

    /// Its namespaces.
    #[error("failed to boot the machine of {instance}: {output}")]
    Boot {
        /// Whose machine.
        instance: String,
        /// What its init said.
        output: String,
    },
}

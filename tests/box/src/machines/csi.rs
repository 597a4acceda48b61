//! The AWS EBS CSI driver of a site of real machines, with csi-attacher and csi-resizer: the programs that AWS and Kubernetes publish,
//! nothing of them changed. On EKS they are pods; here they are processes, of this host and of the machines.
//!
//! ```text
//!   API server ◄── csi-attacher, csi-resizer ──► driver (controller) ──► EC2
//!   kubelet ──► driver (node), in its machine          registrar: tells the kubelet that it is there
//! ```

mod controller;
mod node;
mod registrar;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

pub use controller::{Controller, Setup};
pub use node::run as run_nodes;

/// The name by which the journal of the simulator tells the driver from the operator.
pub const CALLER: &str = "csi-driver";

/// Why the driver does not work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A process could not be started.
    #[error("failed to start {name}")]
    Start {
        /// What.
        name: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },

    /// The driver does not answer.
    #[error("failed to wait for the EBS CSI driver: no {socket} after {} s; its log says:\n{log}", limit.as_secs())]
    NotReady {
        /// Where it should listen.
        socket: PathBuf,
        /// How long it was waited for.
        limit: Duration,
        /// The end of its log.
        log: String,
    },
}

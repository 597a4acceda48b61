//! The AWS EBS CSI driver of a site of real machines, with csi-attacher, csi-provisioner and csi-resizer: the
//! programs that AWS and Kubernetes publish, nothing of them changed. On EKS they are pods; here they are
//! processes, of this host and of the machines.
//!
//! ```text
//!   API server ◄── csi-attacher, csi-provisioner, csi-resizer ──► driver (controller) ──► EC2
//!   kubelet ──► driver (node), in its machine                     registrar: announces it to the kubelet
//! ```

mod controller;
mod error;
mod node;
mod registrar;

pub use controller::{CALLER, Controller, Setup};
pub use error::Error;
pub use node::run as run_nodes;

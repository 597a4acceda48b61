//! What virtual machines need that real ones bring: their Nodes, and the attacher, provisioner and resizer of
//! the CSI driver, in this process.

pub mod attacher;
mod error;
pub mod nodes;
pub mod provisioner;
pub mod resizer;

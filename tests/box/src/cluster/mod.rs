//! The Kubernetes cluster: its programs, its control plane, the kubelet of all virtual machines, and the
//! audit log.

pub mod audit;
pub mod certificates;
pub mod control_plane;
pub mod helm;
pub mod run_folder;
pub mod shared;
pub mod virtual_kubelet;

pub use box_materials::tools;

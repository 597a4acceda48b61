//! The simulated AWS account: EC2, and the machines and controllers that join its instances to a cluster.

pub(crate) mod cloud;
mod cloud_controller;
mod context;
mod membership;
pub mod node_kind;
pub mod platform;
pub mod real_machines;
pub mod site;
pub mod user_data;
mod virtual_machines;

pub use real_machines::{Machines, MaterialsError, Real};
pub use site::{Error, Site, SiteOptions};

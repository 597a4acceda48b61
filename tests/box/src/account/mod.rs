//! The simulated AWS account: EC2, and the machines and controllers that join its instances to a cluster.

pub(crate) mod cloud;
mod cloud_controller;
mod context;
mod membership;
pub mod platform;
pub mod policy;
pub mod real_machines;
pub mod site;
pub mod user_data;
mod virtual_machines;

pub use box_materials::node_kind;
pub use box_materials::real::{MaterialsError, Real};
pub use real_machines::Machines;
pub use site::{Error, Site, SiteOptions};

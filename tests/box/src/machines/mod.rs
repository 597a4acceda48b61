//! Real machines on this host: their images, network, volumes and CSI driver. Nothing here knows which
//! instance EC2 shows.

pub mod csi;
pub mod disks;
pub mod machine;
pub mod network;
pub mod turns;
pub mod user_data;

pub use box_materials::images;

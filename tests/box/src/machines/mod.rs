//! Real machines on this host: their images, network, volumes and CSI driver. Nothing here knows which instance EC2 shows.

pub mod csi;
pub mod disks;
pub mod images;
pub mod machine;
pub mod network;

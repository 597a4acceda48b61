//! Scenarios on real machines: a real kubelet, the real EBS CSI driver, real engines, and rows that are
//! counted.

mod adopted;
mod archived;
mod backup;
mod configuration;
mod example;
mod faults;
mod kept;
mod legacy;
mod lost;
mod lost_cluster;
mod operator;
mod release;
mod rotation;
mod tls;
mod upgrade;
mod users;

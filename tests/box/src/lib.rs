//! The box: a real Kubernetes control plane, virtual machines that join it, and a simulated EC2, on one Linux host.
//!
//! ```text
//!   tools ──► control_plane ──► kubelet            etcd, API server, controllers, scheduler, kwok; pods of virtual machines
//!                   ▲
//!                 site ──► ec2sim                  one AWS account: machines that join, cloud-controller, CSI attacher, resizer
//!                   ▲
//!         cli ──► daemon ◄── demo ──► writer       `cargo box up | down | status | env`, `cargo demo`; a client that counts its rows
//!                             └─► measure          `cargo box measure`: outages in their parts
//! ```
//!
//! Several sites may share one control plane: each acts only on Nodes whose providerID names one of its own instances.

#![expect(clippy::disallowed_methods, reason = "the rule is the operator's: the box plays machines, whose clock is the real one")]

pub mod audit;
pub mod cache;
pub mod certificates;
pub mod cli;
pub mod control_plane;
pub mod csi;
pub mod daemon;
pub mod demo;
pub mod disks;
pub mod helm;
pub mod images;
pub mod kubelet;
pub mod machine;
pub mod measure;
pub mod network;
pub mod nodes;
pub mod platform;
pub mod process;
pub mod progress;
pub mod quantity;
pub mod run_folder;
pub mod shared;
pub mod site;
pub mod tools;
pub mod watching;
pub mod writer;

//! The box: a real Kubernetes control plane, machines that join it, and a simulated EC2, on one Linux host.
//!
//! ```text
//!   presentation ──► legacy ──► account ──► machines ──► cluster ──► base ──► the crate box-materials
//!                      └──────► writer ───────────────────────────────┘
//! ```
//!
//! | folder | what it is |
//! |---|---|
//! | `base` | what every other part uses: files, processes, errors, sizes, watches |
//! | `cluster` | etcd, the API server, its controllers and kwok, run as processes; the kubelet of all virtual machines |
//! | `machines` | real machines as namespaces of this host: kubelet, containers, volumes, network, CSI driver |
//! | `account` | one AWS account: the simulated EC2, and the machines, real or virtual, that join its instances to a cluster |
//! | `writer` | a database client that writes numbered rows and says which of them must be found |
//! | `legacy` | databases that Freehold never made, for the demo and tests of what adopts them |
//! | `presentation` | `cargo box up`, `down`, `status`, `env`, `demo`, `measure`, `cost` and `image` |
//!
//! Programs and images are made by the crate box-materials, which needs neither the operator nor the AWS SDK;
//! its modules stand in `base`, `cluster`, `machines` and `account` as if they were theirs.
//! A folder uses those to the right of it and no other. Inside a folder no files use each other in a circle.
//! `tests/it/imports.rs` reads the sources for both. Which tests need virtual machines, and which need real
//! ones: `docs/testing.md`.
//!
//! Several accounts may share one control plane: each acts only on Nodes whose providerID names one of its
//! own instances.

#![expect(
    clippy::disallowed_methods,
    reason = "the rule is the operator's: the box simulates machines, whose clock is the real one"
)]

pub mod account;
pub mod base;
pub mod cluster;
pub mod legacy;
pub mod machines;
pub mod presentation;
pub mod writer;

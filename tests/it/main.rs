//! The integration tests: one binary, so that it is linked once.
//!
//! Scenarios run the shipped binary on a real control plane against a simulated EC2; [`kit`] is what they
//! stand on.

#![expect(clippy::unwrap_used, clippy::panic, reason = "the helpers of tests fail a test as tests do")]

mod adopted_machine;
mod adopting;
mod adopting_many;
mod adoption;
mod backend;
mod backups;
mod chart;
mod cloud;
mod crashes;
mod deletion;
mod disks;
mod fleet;
mod iam;
mod imports;
mod in_place;
mod kit;
mod leadership;
mod legacy;
mod life;
mod lives;
mod loss;
mod model_cloud;
mod moving;
mod node_class;
mod pages;
mod postgresql;
mod properties;
mod purity;
mod real;
mod reference;
mod releasing;
mod repair_table;
mod rig;
mod rules;
mod same_api;
mod schema;
mod sdk;
mod storage;
mod strangers;
mod tenants;
mod transcripts;
mod trouble;
mod users;
mod world;

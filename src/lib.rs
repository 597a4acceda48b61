//! Freehold: a machine of its own for every database. A `Database` owns a `Node` (one EC2 instance) and a
//! `Volume` (one EBS volume).
//!
//! ```text
//!             ┌──────────────────────── one pass of one controller ────────────────────────┐
//!  trigger ─► observe ──► Observed ──► plan ──► Plan ──► act ──► Acted ──► status ──► Status ──► one status patch
//!             (only reads)  plain      (pure)   plain  (only writes)       (pure)   plain
//!                                                                          remember ──► memory, for later passes
//!             └────────── nothing flows back; the next pass observes again ───────────────┘
//! ```
//!
//! * [`api`]: what people write; knows nothing.
//! * [`cloud`]: EC2; the only place that names the AWS SDK; knows `api`.
//! * [`cluster`]: the API server: apply, finalizer, events; knows `api`.
//! * [`engine`]: what a database engine needs; knows `api`.
//! * [`controller`]: the six controllers; knows all of these.
//! * [`leadership`]: which operator acts; [`term`]: until when it may write.
//! * [`adopt`], [`backups`], [`orphans`], [`release`], [`retained`]: commands for people; [`command`] is
//!   what they have in common.

pub mod adopt;
pub mod api;
pub mod backups;
pub mod clock;
pub mod cloud;
pub mod cluster;
pub mod command;
pub mod controller;
pub mod definitions;
pub mod engine;
pub mod error_chain;
pub mod leadership;
pub mod metrics;
pub mod operator;
pub mod orphans;
pub mod release;
pub mod retained;
pub mod server;
pub mod settings;
pub mod term;
pub mod time;

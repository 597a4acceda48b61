//! The rig: a Kubernetes API server in memory, behind kube's client, without sockets, threads or real time.
//!
//! ```text
//!   kube::Client ──► server ──► request ──► handle ──► write, delete, read, watch ──► store
//!                      │                                  │
//!               fault, journal                 object, defaults, admission, managed
//! ```
//!
//! It is believed for what `tests/it/same_api` shows: scripts of requests that are sent to it and to a real
//! kube-apiserver, and whose answers are compared. The README lists where the two differ.

mod admission;
mod answer;
mod apply;
mod clock;
mod cluster;
mod decode;
mod defaults;
mod delete;
mod fault;
mod fields;
mod handle;
mod immutable;
mod journal;
mod json;
mod kind;
mod managed;
mod object;
mod pattern;
mod read;
mod request;
mod schema;
mod selector;
mod server;
mod signal;
mod state;
mod store;
mod strategic;
mod text;
mod validate;
mod watch;
mod write;

pub use clock::Clock;
pub use cluster::{Cluster, Controls, Hand, Violations};
pub use fault::{Decide, Fault};
pub use journal::{Change, Write};
pub use request::{Call, Verb};
pub use server::Server;

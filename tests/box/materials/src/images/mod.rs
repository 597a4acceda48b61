//! Images without a registry: made from pinned inputs and this host's packages, and held ready in a machine
//! image.
//!
//! ```text
//!   system ─┬─ java ─┬─ questdb 8.2.0, 9.2.3, 9.3.4 ─┐
//!           │        │                               ├──► oci (one archive) ──► template: a containerd root, unpacked
//!           ├─ postgresql ─┬─────────────────────────┤         each machine takes it by hard links
//!           │              └─ barman ────────────────┤
//!           └─ postgresql 18.3, 18.4 ────────────────┤
//!   pause ───────────────────────────────────────────┘
//! ```
//!
//! Every layer is made once per key: this module's sources and the marks of the host's files that go into it.
//! The images carry the names of the published ones, so a pod that asks for those finds them and nothing is
//! pulled.

mod barman;
mod error;
pub mod host;
mod maven;
pub mod oci;
mod operator;
mod parts;
mod pause;
mod postgresql;
mod questdb;
pub mod servers;
mod system;
mod template;
pub mod tree;

pub use barman::REPOSITORY as POSTGRESQL_WITH_BARMAN;
pub use error::Error;
pub use operator::{NAME as OPERATOR, OperatorImage, Written, write_operator_image};
pub use pause::NAME as PAUSE;
pub use postgresql::version as postgresql_version;
pub use template::{Containerd, NAMESPACE, SECONDS, Template, WHAT, import_arguments};

/// The tags of QuestDB's images.
pub const QUESTDB_VERSIONS: [&str; 3] =
    [questdb::RELEASES[0].version, questdb::RELEASES[1].version, questdb::RELEASES[2].version];

//! What every other part uses and what uses none of them: files, processes, errors, sizes, watches.

pub mod host_cleanup;
pub mod names;
pub mod persistent_volume;
pub mod quantity;
pub mod watching;

pub use box_materials::base::{cache, error_chain, process, progress};

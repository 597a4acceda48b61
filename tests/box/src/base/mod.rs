//! What every other part uses and what uses none of them: files, processes, errors, sizes, watches.

pub mod cache;
pub mod error_chain;
pub mod host_cleanup;
pub mod names;
pub mod process;
pub mod progress;
pub mod quantity;
pub mod watching;

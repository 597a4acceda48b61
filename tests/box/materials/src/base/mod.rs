//! What every other part uses: folders, processes, errors, progress.

pub mod cache;
pub mod error_chain;
pub mod process;
pub mod progress;
pub mod workspace;

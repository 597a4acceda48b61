//! What this process remembers between passes. Nothing in it is state that a restart would miss: each file
//! says what a restart costs.

pub mod backup_turns;
pub mod checks;
pub mod disk_usage;
pub mod flushes;
pub mod issued_requests;
pub mod launch_checks;
pub mod references;
pub mod repairs;
pub mod sends;
mod task;

//! What the commands for people have in common.

pub mod difference;
pub mod finding;
pub mod progress;
pub mod target;
pub mod text;

//! The create protocol: how anything is created in EC2 exactly once.

pub mod act;
pub mod answer;
pub mod judge;
pub mod messages;
pub mod next;

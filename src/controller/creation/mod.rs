//! The create protocol: how anything is created in EC2 exactly once.

pub mod judge;

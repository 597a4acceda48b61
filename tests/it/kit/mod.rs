//! What the scenarios stand on: a test environment of their own on the shared control plane, and what can be
//! done to its operator.

pub mod adopter;
pub mod aws;
pub mod chart;
pub mod env;
pub mod installed;
pub mod invariants;
pub mod metrics;
pub mod notes;
pub mod objects;
pub mod page;
pub mod permits;
pub mod process;
pub mod proxy;
pub mod real;
pub mod rig_env;
pub mod rights;
pub mod s3;
pub mod shell;
pub mod statements;
pub mod tap;
pub mod test_env;
pub mod wait;

mod tests;

/// Whether a variable of the environment is set, and not empty.
pub fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

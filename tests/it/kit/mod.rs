//! What the scenarios stand on: a house of their own on the shared control plane, and what can be done to its operator.

pub mod chart;
pub mod house;
pub mod invariants;
pub mod objects;
pub mod outage;
pub mod process;
pub mod proxy;
pub mod real;
pub mod rights;
pub mod tap;
pub mod wait;

mod tests;

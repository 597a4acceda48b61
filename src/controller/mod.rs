//! The three controllers, each of the same four steps: observe, plan, act, status.

pub mod conditions;
pub mod creation;
pub mod database;
pub mod memory;
pub mod node;
pub mod pass;
pub mod retention;
pub mod safety;
pub mod volume;
pub mod waiting;

//! The three controllers, each of the same four files: observe, plan, act, status.

pub mod acting;
pub mod conditions;
pub mod context;
pub mod database;
pub mod driver;
pub mod fleet;
pub mod launch;
pub mod node;
pub mod retained;
pub mod retry;
pub mod safety;
pub mod volume;
pub mod waiting;

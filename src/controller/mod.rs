//! The three controllers, each of the same four files: observe, plan, act, status.

pub mod database;

//! What people see: the command line, the background process of a named box, the demo and the measurements.

pub mod cli;
pub mod cost;
pub mod daemon;
pub mod demo;
pub mod measure;

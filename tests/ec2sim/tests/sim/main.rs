//! The simulator from outside: its truths, its wire face, and its check of other endpoints. One binary, since
//! each costs as much to compile and link as its tests.

#![expect(clippy::unwrap_used, reason = "a test that can't go on says so by panicking")]

mod truths;
mod verify;
mod wire;

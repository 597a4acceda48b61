//! The wire face over real sockets, with raw HTTP: the protocol, the faults, the control API, the kept state.

#![expect(clippy::unwrap_used, reason = "a test that can't go on says so by panicking")]

mod control;
mod faults;
mod http;
mod kept;
mod policies;
mod program;
mod protocol;

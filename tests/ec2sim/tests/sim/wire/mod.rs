//! The wire face over real sockets, with raw HTTP: the protocol, the faults, the control API, the kept state.

mod control;
mod faults;
mod http;
mod kept;
mod policies;
mod program;
mod protocol;

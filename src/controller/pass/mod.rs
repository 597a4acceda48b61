//! One pass, as every controller makes it: what it is given, how it is driven, what became of its plan, how
//! it ends.

pub mod acted;
pub mod call_blocked;
pub mod close;
pub mod context;
pub mod drive;
pub mod enough;
pub mod pulse;
pub mod result;
pub mod retry;
pub mod settling;
pub mod triggers;
pub mod woken;

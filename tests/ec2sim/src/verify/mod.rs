//! Asks any EC2 whether the truths hold there: a real one, this simulator, or another.
//!
//! It is a client like any other, over HTTP, and knows nothing of the model: `checks` has a function for each
//! truth that a client can see, and says of each other truth why none can see it. `target` is the EC2 that is
//! asked, `wire` one signed request, `make` short ways to make what a check needs, `cleanup` removes it,
//! `cost` says before what it costs, `report` is the table.

mod answer;
mod checks;
mod cleanup;
mod cost;
mod element;
mod inventory;
mod make;
mod place;
mod report;
mod run;
mod target;
mod wire;

pub use answer::Verdict;
pub use place::Wanted;
pub use report::Report;
pub use run::{Settings, Whom, clean, run};
pub use target::say;

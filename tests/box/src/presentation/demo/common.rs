//! What all parts of the demo and of the measurement share: the name of their box, and their error.

use std::error::Error as StdError;

/// The demo's box, beside any box of the developer's own.
pub const BOX: &str = "demo";

/// How many times faster than real time the operator and EC2's clock run.
pub const SPEED: f64 = 5.0;

/// Why a step could not be verified.
pub type Failure = Box<dyn StdError + Send + Sync>;

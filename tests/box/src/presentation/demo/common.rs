//! What all parts of the demo and of the measurements share: the name of their box, their error, and how a
//! report is written.

use std::error::Error as StdError;
use std::path::Path;

/// The demo's box, beside any box of the developer's own.
pub const BOX: &str = "demo";

/// How many times faster than real time the operator and EC2's clock run.
pub const SPEED: f64 = 5.0;

/// Writes a report to this file, if one is wanted, and prints where it is: `what` and the file.
pub fn write_report(path: Option<&Path>, what: &str, text: impl AsRef<[u8]>) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    std::fs::write(path, text).map_err(|error| format!("failed to write {}: {error}", path.display()))?;
    println!("{what} {}", path.display());
    Ok(())
}

/// Why a step could not be verified.
pub type Failure = Box<dyn StdError + Send + Sync>;

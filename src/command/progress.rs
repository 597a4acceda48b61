//! Waits for what the operator does, and prints what it reports meanwhile.

use std::time::Duration;

use clap::ValueEnum;
use tokio::time::{Instant, sleep};

/// How often an object is read while it is awaited: a person watches.
const PAUSE: Duration = Duration::from_secs(2);

/// How the report of a command is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

impl Output {
    /// Prints a line of what is done; beside a report for programs to the standard error.
    pub fn say(self, line: &str) {
        match self {
            Self::Text => println!("  {line}"),
            Self::Json => eprintln!("{line}"),
        }
    }
}

/// What one look at an object showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// What was awaited is there. With a last line, if there is one.
    Over(Option<String>),
    /// It is not; this is said meanwhile.
    Awaited(String),
}

/// Looks until what is awaited is there, for at most this long, and prints each line that differs from the
/// one before; whether it is there.
pub async fn watch<E>(
    say: &(dyn Fn(&str) + Sync),
    limit: Duration,
    mut look: impl AsyncFnMut() -> Result<Look, E>,
) -> Result<bool, E> {
    let end = Instant::now() + limit;
    let mut said = String::new();
    loop {
        let (line, is_over) = match look().await? {
            Look::Over(line) => (line.unwrap_or_default(), true),
            Look::Awaited(line) => (line, false),
        };
        if line != said && !line.is_empty() {
            say(&line);
            said = line;
        }
        if is_over {
            return Ok(true);
        }
        if Instant::now() >= end {
            return Ok(false);
        }
        sleep(PAUSE).await;
    }
}

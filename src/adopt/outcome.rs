//! How `freehold adopt` ends, and how it prints.

use clap::ValueEnum;

/// How the report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

impl Output {
    /// Prints a line about what is being done: with JSON, to the standard error.
    pub fn say(self, line: &str) {
        match self {
            Self::Text => println!("  {line}"),
            Self::Json => eprintln!("{line}"),
        }
    }
}

/// How it ended, other than by an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The database can be adopted, or is; of many, all of them.
    Adoptable,
    /// A blocker stands before it, or before one of many; of that database nothing was changed.
    Blocked,
    /// Of many, one was not adopted or could not be read, for a cause that was printed.
    Failed,
}

//! How `freehold adopt` ends.

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

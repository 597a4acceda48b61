//! What the name of an action says of it.

/// Whether an action only reads.
pub fn reads(action: &str) -> bool {
    action.starts_with("Describe") || action.starts_with("Get")
}

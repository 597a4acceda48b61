//! Patterns of names, as `spec.instanceTypes` of a NodeClass has them: `*` is any run of characters.

/// Whether the pattern matches the whole text.
pub fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, rest)) => text.strip_prefix(head).is_some_and(|tail| {
            tail.char_indices().map(|(at, _)| at).chain([tail.len()]).any(|at| matches(rest, &tail[at..]))
        }),
    }
}

//! The patterns of a NodeClass: what its lists of instance types and images allow. Pure.

/// Whether one of the patterns is the text. `*` stands for any characters.
pub fn is_any(patterns: &[String], text: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, text))
}

fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, rest)) => text.strip_prefix(head).is_some_and(|tail| {
            tail.char_indices().map(|(at, _)| at).chain([tail.len()]).any(|at| matches(rest, &tail[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_allow_what_they_say() {
        for (pattern, name, allowed) in [
            ("r7i.*", "r7i.large", true),
            ("r7i.*", "r7id.large", false),
            ("*.large", "m7i.large", true),
            ("r*.large", "r6i.xlarge", false),
            ("r*.*large", "r6i.xlarge", true),
            ("r7i.large", "r7i.large", true),
            ("r7i.large", "r7i.large2", false),
            ("registry.example/*", "registry.example/db:1", true),
            ("registry.example/*", "registry.example.org/db:1", false),
            ("*", "anything", true),
        ] {
            assert_eq!(matches(pattern, name), allowed, "{pattern} {name}");
        }
        assert!(!is_any(&[], "x.y"));
    }
}

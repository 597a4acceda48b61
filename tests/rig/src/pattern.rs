//! Patterns, compiled once a thread: objects are validated again at each write.

use std::cell::RefCell;
use std::collections::BTreeMap;

use regex::Regex;

thread_local! {
    static COMPILED: RefCell<BTreeMap<String, Option<Regex>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Whether the text matches; nothing matches a pattern that is none.
pub fn matches(pattern: &str, text: &str) -> bool {
    COMPILED.with_borrow_mut(|compiled| {
        if !compiled.contains_key(pattern) {
            compiled.insert(pattern.to_owned(), Regex::new(pattern).ok());
        }
        compiled.get(pattern).and_then(Option::as_ref).is_some_and(|it| it.is_match(text))
    })
}

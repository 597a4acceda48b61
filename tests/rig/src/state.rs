//! Everything that changes while the server runs, under one lock.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::journal::Write;
use super::kind::Kind;
use super::request::Verb;
use super::store::Store;
use super::text::Texts;

/// The letters of generated names, as the API server has them: none that could form a word.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// The state.
#[derive(Debug, Default)]
pub struct State {
    /// The objects.
    pub store: Store,
    /// What is served.
    pub kinds: Vec<Arc<Kind>>,
    /// The writes so far.
    pub journal: Vec<Write>,
    /// How many requests there were so far, of each caller, verb and `plural.group`.
    pub requests: BTreeMap<(String, Verb, String), usize>,
    /// What was sent of the objects last.
    pub texts: Texts,
    made: u64,
    addresses: u32,
}

impl State {
    /// Nothing but kinds.
    pub fn new(kinds: Vec<Arc<Kind>>) -> Self {
        Self { kinds, ..Self::default() }
    }

    /// The kind of this path.
    pub fn kind(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Kind>> {
        let found =
            self.kinds.iter().find(|it| it.group == group && it.version == version && it.plural == plural);
        found.cloned()
    }

    /// A UID that no other object has. The same requests in the same order get the same UIDs.
    pub fn next_uid(&mut self) -> String {
        self.made += 1;
        format!("00000000-0000-4000-8000-{:012x}", self.made)
    }

    /// The end of a generated name.
    pub fn next_suffix(&mut self) -> String {
        let mut rest = self.made.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let letter = |_| {
            let at = usize::try_from(rest % 27).unwrap_or_default();
            rest /= 27;
            char::from(LETTERS[at])
        };
        (0..5).map(letter).collect()
    }

    /// An address of a Service.
    pub fn next_address(&mut self) -> String {
        self.addresses += 1;
        let [_, _, third, fourth] = self.addresses.to_be_bytes();
        format!("10.96.{third}.{fourth}")
    }
}

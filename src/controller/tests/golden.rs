//! Golden files: what the tests of the controllers compare with a file that a person reads.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::Path;

use strum::VariantNames;

use crate::api::Reason;

/// One line of a file of sentences.
pub struct Sentence {
    name: String,
    /// The reason and whether nothing changes until a person does something, of what is waited for.
    wait: Option<(Reason, bool)>,
    message: String,
}

impl Sentence {
    /// What is waited for.
    pub fn wait(name: String, reason: Reason, is_stalled: bool, message: String) -> Self {
        assert!(!message.is_empty(), "{name}");
        Self { name, wait: Some((reason, is_stalled)), message }
    }

    /// Any other sentence.
    pub fn other(name: &str, message: String) -> Self {
        Self { name: name.to_owned(), wait: None, message }
    }

    fn line(&self) -> String {
        let (reason, stalled) = match self.wait {
            Some((reason, true)) => (reason.as_str(), "stalled"),
            Some((reason, false)) => (reason.as_str(), "-"),
            None => ("-", "-"),
        };
        format!("{} | {reason} | {stalled} | {}\n", self.name, self.message)
    }
}

/// The name of the variant of a value.
pub fn variant(value: &impl Debug) -> String {
    format!("{value:?}").chars().take_while(|it| it.is_alphanumeric()).collect()
}

/// The examples, which must have every variant of their type.
pub fn complete<T: Debug + VariantNames>(examples: impl IntoIterator<Item = T>) -> Vec<T> {
    let examples: Vec<T> = examples.into_iter().collect();
    let shown: BTreeSet<String> = examples.iter().map(variant).collect();
    let every: BTreeSet<String> = T::VARIANTS.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(shown, every, "an example of every variant");
    examples
}

/// Compares the sentences of a kind with `messages.golden.txt`.
pub fn compare_sentences(kind: &str, sentences: &[Sentence]) {
    let text: String = sentences.iter().map(Sentence::line).collect();
    compare(&format!("src/controller/{kind}/messages.golden.txt"), &text);
}

/// Compares a text with a file of the repository. `FREEHOLD_BLESS=1` writes the file anew.
pub fn compare(path: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("FREEHOLD_BLESS").is_some_and(|value| !value.is_empty()) {
        std::fs::write(&file, text).unwrap();
    }
    let golden = std::fs::read_to_string(&file).unwrap_or_default();
    pretty_assertions::assert_eq!(golden, text, "FREEHOLD_BLESS=1 writes {path} anew");
}

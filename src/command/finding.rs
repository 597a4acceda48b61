//! What a check found: how bad it is, of which object, and the way out.

use serde::Serialize;
use strum::IntoStaticStr;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Level {
    /// The command does not begin before this is mended.
    Blocker,
    /// Something that a person must know and agree with.
    Warning,
    /// Something that is good to know.
    Note,
}

impl Level {
    /// The name in the list.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// One line of the checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// Of which object, with its kind.
    pub object: String,
    /// What was found, as a sentence.
    pub message: String,
    /// What a person can do; a command where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way_out: Option<String>,
}

impl Finding {
    fn new(level: Level, object: impl Into<String>, message: impl Into<String>) -> Self {
        Self { level, object: object.into(), message: message.into(), way_out: None }
    }

    /// The command does not begin.
    pub fn blocker(object: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Level::Blocker, object, message)
    }

    /// The command begins all the same.
    pub fn warning(object: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Level::Warning, object, message)
    }

    /// Is good to know.
    pub fn note(object: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Level::Note, object, message)
    }

    /// With the way out.
    #[must_use]
    pub fn way_out(mut self, text: impl Into<String>) -> Self {
        self.way_out = Some(text.into());
        self
    }
}

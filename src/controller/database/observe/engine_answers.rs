//! What an engine answers to the questions of a pass. Pure.

use crate::engine::archiver::Archiver;
use crate::engine::reload::Verdict;

/// What an engine answers to the questions of a pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineAnswers {
    /// Of a change of its settings, or why it says nothing; asked only while there is one.
    pub settings: Option<Result<Verdict, String>>,
    /// Of the archive of its log, or that it says nothing; asked each minute while the spec requests one.
    pub archiver: Option<Option<Archiver>>,
}

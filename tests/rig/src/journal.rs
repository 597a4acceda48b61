//! What was written, for rules about the way that led to a state.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::request::Verb;

/// One request that may have written, as it was answered.
#[derive(Clone, Debug)]
pub struct Write {
    /// When.
    pub at: Timestamp,
    /// Which client.
    pub caller: String,
    /// What was asked for.
    pub verb: Verb,
    /// `plural` or `plural.group`.
    pub resource: String,
    /// The namespace; empty for none.
    pub namespace: String,
    /// The name, of a creation the one in the answer.
    pub name: String,
    /// `status` and so on; empty for the object itself.
    pub subresource: String,
    /// The media type of the body: of a patch, which patch it is.
    pub content_type: String,
    /// The field manager.
    pub manager: String,
    /// The body.
    pub body: Value,
    /// The HTTP status of the answer, whether the client got it or not.
    pub code: u16,
    /// The resourceVersion of the server before the request.
    pub before: u64,
    /// The same after it; equal if nothing was written.
    pub after: u64,
}

/// One object's change, by a request or by what follows from one.
#[derive(Clone, Debug)]
pub struct Change {
    /// When.
    pub at: Timestamp,
    /// Whose request made it.
    pub caller: String,
    /// `plural` or `plural.group`.
    pub resource: String,
    /// The object before; none if it was created.
    pub old: Option<Arc<Value>>,
    /// The object after; none if it was removed.
    pub new: Option<Arc<Value>>,
}

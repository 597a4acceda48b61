//! The texts of objects, each made once: an answer, the watches of its kind and later reads send the same.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

/// How many texts are kept: of about as many objects as a cluster with one database has.
const KEPT: usize = 64;

/// The texts that were made last.
#[derive(Debug, Default)]
pub struct Texts(VecDeque<(Arc<Value>, Bytes)>);

impl Texts {
    /// The object as JSON.
    pub fn of(&mut self, object: &Arc<Value>) -> Bytes {
        if let Some((_, text)) = self.0.iter().rev().find(|(it, _)| Arc::ptr_eq(it, object)) {
            return text.clone();
        }
        let text = Bytes::from(object.to_string());
        // What only the caller holds is not stored, and is sent once.
        if Arc::strong_count(object) > 1 {
            if self.0.len() == KEPT {
                self.0.pop_front();
            }
            self.0.push_back((Arc::clone(object), text.clone()));
        }
        text
    }
}

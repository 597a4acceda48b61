//! When a dry run of a launch of each NodeClass was last sent, and of which generation of its spec.
//!
//! A restart forgets it, and one dry run of each NodeClass is sent at once. The answer is in its status.

use std::collections::HashMap;

use jiff::Timestamp;
use parking_lot::Mutex;

/// The last dry run of each NodeClass, by its UID.
#[derive(Default)]
pub struct LaunchChecks {
    last: Mutex<HashMap<String, (Option<i64>, Timestamp)>>,
}

impl LaunchChecks {
    /// When the last one of this generation was sent.
    pub fn last(&self, uid: &str, generation: Option<i64>) -> Option<Timestamp> {
        let last = self.last.lock();
        last.get(uid).filter(|(of, _)| *of == generation).map(|(_, at)| *at)
    }

    /// One was sent.
    pub fn note(&self, uid: &str, generation: Option<i64>, at: Timestamp) {
        self.last.lock().insert(uid.to_owned(), (generation, at));
    }

    /// The NodeClass is gone.
    pub fn forget(&self, uid: &str) {
        self.last.lock().remove(uid);
    }
}

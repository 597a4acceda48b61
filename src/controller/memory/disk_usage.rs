//! What kubelets last said of the databases' file systems.
//!
//! A restart forgets it, and it is read again within a minute.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use parking_lot::Mutex;

use crate::api::database::Unmeasured;
use crate::cluster::kubelet::DiskUsage;

/// One reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// When the kubelet was asked.
    pub at: Timestamp,
    /// Its answer.
    pub usage: Result<DiskUsage, Unmeasured>,
}

/// The last reading of each Database, by its UID.
#[derive(Default)]
pub struct DiskReadings {
    of: Mutex<HashMap<String, Noted>>,
}

struct Noted {
    namespace: String,
    reading: Reading,
}

impl DiskReadings {
    /// The last reading of this Database.
    pub fn of(&self, uid: &str) -> Option<Reading> {
        self.of.lock().get(uid).map(|noted| noted.reading.clone())
    }

    /// Notes a reading; the one before it.
    pub fn note(&self, namespace: &str, uid: &str, reading: Reading) -> Option<Reading> {
        let noted = Noted { namespace: namespace.to_owned(), reading };
        self.of.lock().insert(uid.to_owned(), noted).map(|before| before.reading)
    }

    /// Only these Databases of those in this namespace, or in all, are read any more.
    pub fn keep(&self, namespace: Option<&str>, uids: &HashSet<String>) {
        let is_other = |it: &Noted| namespace.is_some_and(|namespace| namespace != it.namespace);
        self.of.lock().retain(|uid, noted| uids.contains(uid) || is_other(noted));
    }
}

//! What the rules judge.

use ec2sim::{JournalEntry, Transition};
use freehold_rig::{Change, Write};
use jiff::Timestamp;

/// What happened in a life.
#[derive(Clone)]
pub struct Record {
    /// The cluster's id.
    pub cluster: String,
    /// The operator's access key id.
    pub operator: String,
    /// The requests that may have written.
    pub writes: Vec<Write>,
    /// The changes of objects.
    pub changes: Vec<Change>,
    /// The calls to EC2.
    pub calls: Vec<JournalEntry>,
    /// The changes of EC2's resources.
    pub transitions: Vec<Transition>,
    /// When which operator, by its name in the Lease, sent a request that may change something; nothing where
    /// only one ever runs.
    pub sends: Vec<(Timestamp, String)>,
    /// What the machines saw that must never be.
    pub violations: Vec<(Timestamp, String)>,
}

//! What has happened in a house, for the rules.

use super::house::{CLUSTER, House};
use crate::properties::record::Record;
use crate::world::OPERATOR;

impl House {
    /// What has happened so far.
    pub fn record(&self) -> Record {
        Record {
            cluster: CLUSTER.to_owned(),
            operator: OPERATOR.to_owned(),
            writes: self.server.journal(),
            changes: self.server.changes(),
            calls: self.ec2.journal(),
            transitions: self.ec2.transitions(),
            sends: self.chaos.sends(),
            violations: self.violations.lock().clone(),
        }
    }
}

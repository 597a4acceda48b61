//! The operator's IAM policy: in every test it has the one that is shipped and no other, and which of its
//! statements allowed something is noted.

use std::collections::BTreeSet;

use ec2sim::Simulator;
use freehold_box::account::policy;

use super::notes;
use super::process::OPERATOR;

/// The name of the notes.
const NOTES: &str = "statements-used";

/// An account in which the operator of this cluster has the shipped policy, unless the test has given it
/// another.
pub fn enforced(mut account: ec2sim::Options, cluster_id: &str) -> ec2sim::Options {
    let shipped = policy::shipped(&account.world, cluster_id);
    account.policies.entry(OPERATOR.to_owned()).or_insert(shipped);
    account
}

/// Notes which statements have allowed something so far.
pub fn note(account: &Simulator) {
    notes::add(NOTES, &account.used_statements(OPERATOR));
}

/// The statements that were noted.
pub fn used() -> BTreeSet<String> {
    notes::read(NOTES)
}

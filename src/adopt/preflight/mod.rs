//! Every check before a database is adopted, in one list. Pure.

mod database;
mod machine;
mod operator;
mod storage;
mod workload;

use super::found::Found;
use super::wanted::Wanted;
use crate::command::finding::{Finding, Level};

/// One check.
type Check = fn(&Found, &Wanted) -> Vec<Finding>;

/// All of them, in the order in which a person mends what they find.
const CHECKS: [Check; 17] = [
    database::names,
    database::class,
    workload::stateful_set,
    workload::managers,
    workload::pod,
    workload::neighbours,
    workload::template,
    storage::claims,
    storage::persistent_volume,
    storage::retention,
    storage::volume,
    storage::attachments,
    machine::machine,
    machine::groups,
    machine::zones,
    machine::tags,
    database::choices,
];

/// What all checks found, the worst first. What passes them is checked as the operator does it.
pub fn check(found: &Found, wanted: &Wanted) -> Vec<Finding> {
    let mut findings: Vec<Finding> = CHECKS.iter().flat_map(|check| check(found, wanted)).collect();
    if !findings.iter().any(|finding| finding.level == Level::Blocker) {
        findings.extend(operator::refusal(found, wanted));
    }
    findings.sort_by_key(|finding| finding.level);
    findings
}

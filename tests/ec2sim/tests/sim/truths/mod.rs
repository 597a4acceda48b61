//! Each truth about EC2, stated once with its source, and run both ways: with the behaviour in it holds, and
//! with the behaviour taken out the same check is seen to fail.

mod attachments;
mod instances;
mod kit;
mod lists;
mod modifications;
mod policies;
mod quotas;
mod rates;
mod refusals;
mod requests;
mod snapshots;
mod tokens;
mod volumes;

use ec2sim::Truth;
use strum::IntoEnumIterator;

/// The sources that state truths.
const STATEMENTS: [&str; 12] = [
    include_str!("attachments.rs"),
    include_str!("instances.rs"),
    include_str!("lists.rs"),
    include_str!("modifications.rs"),
    include_str!("policies.rs"),
    include_str!("quotas.rs"),
    include_str!("rates.rs"),
    include_str!("refusals.rs"),
    include_str!("requests.rs"),
    include_str!("snapshots.rs"),
    include_str!("tokens.rs"),
    include_str!("volumes.rs"),
];

#[test]
fn each_truth_is_stated_once() {
    for truth in Truth::iter() {
        let statement = format!("both_ways(Truth::{truth:?},");
        let times: usize = STATEMENTS.iter().map(|source| source.matches(&statement).count()).sum();
        assert_eq!(times, 1, "{truth:?} must be stated once");
    }
}

#[test]
fn each_statement_has_its_source() {
    for source in STATEMENTS {
        let tests = source.matches("#[test]").count();
        let sources = source.matches("/// Source: ").count();
        assert_eq!(
            tests,
            sources,
            "each test of {} begins with its source",
            source.lines().next().unwrap_or_default()
        );
    }
}

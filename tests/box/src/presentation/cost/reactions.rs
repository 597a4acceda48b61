//! How long it took from a change of each database until the operator did the first thing about it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::requests::{is_event, is_operators};
use crate::cluster::audit::Request;

/// The times from the changes to the first writes that followed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reactions {
    /// Of the database that was changed last.
    pub last: Option<Duration>,
    /// 99 of 100 took no longer.
    pub p99: Option<Duration>,
    /// How many databases were changed and not written about.
    pub unanswered: usize,
}

impl Reactions {
    /// Those of these requests, the times of which are all of the API server's own clock. A change is the
    /// first one of a Database that is not the operator's; about it is every write but of an event to an
    /// object that has its name, or one that begins with it.
    pub fn of(requests: &[Request]) -> Self {
        let mut changes: BTreeMap<&str, Timestamp> = BTreeMap::new();
        for request in requests.iter().filter(|request| is_change(request)) {
            let at = changes.entry(&request.name).or_insert(request.received);
            *at = request.received.min(*at);
        }
        let mut times = BTreeMap::new();
        for request in requests.iter().filter(|it| is_operators(it) && it.is_write() && !is_event(it)) {
            for (name, took) in answered(&changes, request) {
                let first = times.entry(name).or_insert(took);
                *first = took.min(*first);
            }
        }
        let last = changes.iter().max_by_key(|(_, at)| **at).and_then(|(name, _)| times.get(name).copied());
        let unanswered = changes.len() - times.len();
        Self { last, p99: percentile(times.into_values().collect(), 99), unanswered }
    }
}

/// The changed databases that a write is about, with the time since their change.
fn answered<'a>(
    changes: &BTreeMap<&'a str, Timestamp>,
    request: &Request,
) -> impl Iterator<Item = (&'a str, Duration)> {
    let is_about = |name: &str| {
        request.name.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    changes.iter().filter(move |(name, _)| is_about(name)).filter_map(|(name, at)| {
        let took = Duration::try_from(request.received.duration_since(*at)).ok()?;
        Some((*name, took))
    })
}

/// Whether someone else changes a Database.
fn is_change(request: &Request) -> bool {
    !is_operators(request)
        && (request.group.as_str(), request.resource.as_str()) == ("freehold.dev", "databases")
        && ["create", "patch", "delete"].contains(&request.verb.as_str())
}

/// The least of these that so many of a hundred do not exceed.
fn percentile(mut times: Vec<Duration>, of_hundred: usize) -> Option<Duration> {
    times.sort_unstable();
    let rank = (times.len() * of_hundred).div_ceil(100);
    times.get(rank.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::super::requests::tests::request;
    use super::*;
    use crate::cluster::control_plane::OPERATOR_USER;

    const MILLIS: fn(u64) -> Duration = Duration::from_millis;

    fn change(at: i64, verb: &str, name: &str) -> Request {
        request(at, "admin", verb, "freehold.dev databases", name)
    }

    fn write(at: i64, verb: &str, what: &str, name: &str) -> Request {
        request(at, OPERATOR_USER, verb, what, name)
    }

    #[test]
    fn the_first_write_about_each_database_counts_and_an_event_does_not() {
        let reactions = Reactions::of(&[
            change(1000, "create", "db-0"),
            change(1010, "create", "db-1"),
            write(1020, "create", "events.k8s.io events", "db-0.1"),
            write(1100, "patch", "freehold.dev databases", "db-0"),
            write(1200, "create", "freehold.dev nodes", "db-0-0"),
            write(1310, "create", "freehold.dev volumes", "db-1"),
            write(1030, "get", "freehold.dev databases", "db-1"),
        ]);
        let expected = Reactions { last: Some(MILLIS(300)), p99: Some(MILLIS(300)), unanswered: 0 };
        assert_eq!(reactions, expected);
    }

    #[test]
    fn a_write_before_the_change_or_about_another_database_is_no_answer() {
        let reactions = Reactions::of(&[
            change(1000, "patch", "db-1"),
            write(900, "patch", "freehold.dev databases", "db-1"),
            write(1100, "patch", "freehold.dev databases", "db-10"),
        ]);
        assert_eq!(reactions, Reactions { last: None, p99: None, unanswered: 1 });
    }

    #[test]
    fn without_a_change_there_is_no_reaction() {
        let reactions = Reactions::of(&[write(900, "patch", "freehold.dev databases", "db-1")]);
        assert_eq!(reactions, Reactions::default());
    }

    #[test]
    fn one_of_a_hundred_may_take_longer() {
        assert_eq!(percentile((1..=100).map(MILLIS).collect(), 99), Some(MILLIS(99)));
        assert_eq!(percentile((1..=50).map(MILLIS).collect(), 99), Some(MILLIS(50)));
        assert_eq!(percentile(Vec::new(), 99), None);
    }
}

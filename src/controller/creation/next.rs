//! The next step of a creation whose attempt has no id yet, the same for every kind. Pure.

use std::time::Duration;

use jiff::Timestamp;

use super::judge::{Doubt, Facts, Verdict, judge};
use crate::api::creation::Refusal;
use crate::cloud::error::{self, Class};
use crate::cloud::quota::Quota;
use crate::time::later;

/// What follows for an attempt that has no id yet.
#[derive(Debug)]
pub enum Next<Id> {
    /// Record this id.
    Adopt(Id),
    /// EC2 refused the attempt for certain: [`after_refusal`] says when another one may follow.
    Refused(Refusal),
    /// The attempt is proven to have created nothing: begin another one.
    Another,
    /// Send the identical call again.
    Resend,
    /// Nothing now; at the latest until then.
    Wait(Pending, Option<Timestamp>),
}

/// What an attempt without an id waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pending {
    /// This quota of the AWS account is reached.
    Quota(Quota),
    /// EC2 throttled the call and created nothing.
    Throttled,
    /// Whether EC2 carried the attempt out is not known.
    InDoubt(Doubt),
}

/// Says what follows. `reached`: this quota of the account is reached, and nothing is sent before that time.
pub fn next<Id>(
    facts: Facts<Id>,
    reached: Option<(Quota, Timestamp)>,
    client_token_max_age: Duration,
    now: Timestamp,
) -> Next<Id> {
    let is_in_doubt = facts.sent.is_none_or(|sent| sent.in_doubt);
    match judge(facts, client_token_max_age, now) {
        Verdict::Adopt(id) => Next::Adopt(id),
        Verdict::Refused(refusal) => Next::Refused(refusal),
        Verdict::ProvenAbsent(_) => Next::Another,
        Verdict::Resend => match reached {
            Some((quota, until)) => Next::Wait(Pending::Quota(quota), Some(until)),
            None => Next::Resend,
        },
        Verdict::Wait(Doubt::Pause, Some(until)) if !is_in_doubt => match reached {
            Some((quota, until)) => Next::Wait(Pending::Quota(quota), Some(until)),
            None => Next::Wait(Pending::Throttled, Some(until)),
        },
        Verdict::Wait(doubt, until) => Next::Wait(Pending::InDoubt(doubt), until),
    }
}

/// What follows a definite refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterRefusal {
    /// Another attempt.
    Another,
    /// EC2 did not allow the call, does not know what it names, or gave a code that is not in the table:
    /// another attempt then.
    Forbidden(Timestamp),
    /// EC2 had no capacity: another attempt then.
    NoCapacity(Timestamp),
    /// EC2 refused the request as invalid, and another attempt would make the same one.
    Invalid,
}

/// How long another attempt waits after a refusal.
#[derive(Clone, Copy, Debug)]
pub struct Pauses {
    /// After a call that EC2 did not allow.
    pub forbidden: Duration,
    /// After EC2 had no capacity; `None` when the next attempt chooses another offering.
    pub no_capacity: Option<Duration>,
}

/// Says what follows a definite refusal. `is_same_request`: whether another attempt would request exactly
/// what was refused.
pub fn after_refusal(
    refusal: &Refusal,
    pauses: Pauses,
    now: Timestamp,
    is_same_request: impl FnOnce() -> bool,
) -> AfterRefusal {
    let unless_over = |pause: Duration, wait: fn(Timestamp) -> AfterRefusal| {
        let until = later(refusal.at.0, pause);
        if now < until { wait(until) } else { AfterRefusal::Another }
    };
    match (error::classify(Some(&refusal.code), &refusal.message, None), pauses.no_capacity) {
        // A code that is not in the table was recorded for its status, which is not.
        (Class::Forbidden | Class::NotYetUsable | Class::NotFound | Class::Refused | Class::InDoubt, _) => {
            unless_over(pauses.forbidden, AfterRefusal::Forbidden)
        }
        (Class::Capacity, Some(pause)) => unless_over(pause, AfterRefusal::NoCapacity),
        (Class::Invalid, _) if is_same_request() => AfterRefusal::Invalid,
        (
            Class::Capacity
            | Class::Invalid
            | Class::Throttled
            | Class::Quota
            | Class::Token
            | Class::State
            | Class::ModificationBudget,
            _,
        ) => AfterRefusal::Another,
    }
}

//! Waiting is data: what an object waits for, and what EC2's answers mean for it.

use jiff::Timestamp;

use super::context::{Context, later};
use crate::api::Reason;
use crate::cloud::limits::Action as Call;
use crate::cloud::{Class, CloudError};

/// What an object waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// For the conditions.
    pub reason: Reason,
    /// In words.
    pub message: String,
    /// Nothing changes until a person does something.
    pub stalled: bool,
}

impl Waiting {
    /// It will pass by itself.
    pub fn on(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), stalled: false }
    }

    /// It will not pass by itself.
    pub fn stalled(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), stalled: true }
    }
}

/// An answer of EC2 that is waited for, and is no failure of the pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldUp {
    /// For the conditions.
    pub reason: Reason,
    /// In words.
    pub message: String,
    /// Look again then.
    pub until: Option<Timestamp>,
}

/// Our own budget of calls is used up until then.
pub fn throttled(until: Timestamp) -> HeldUp {
    HeldUp { reason: Reason::Throttled, message: "the budget of calls to EC2 is used up for the moment".to_owned(), until: Some(until) }
}

/// What an error of EC2 means for the object, and for everybody: buckets slow down, gates close.
pub fn held_up(call: Call, error: &CloudError, ctx: &Context) -> HeldUp {
    let now = ctx.clock.now();
    let timing = &ctx.timing;
    let (reason, until) = match error.class {
        Class::InDoubt | Class::Token => (Reason::InDoubt, Some(later(now, timing.recheck))),
        Class::Throttled => {
            ctx.limits.throttled(call, now);
            (Reason::Throttled, Some(later(now, timing.recheck)))
        }
        Class::Capacity => (Reason::InsufficientCapacity, Some(now)),
        Class::Quota => {
            ctx.offerings.close_quota_gate(now);
            (Reason::QuotaExceeded, Some(later(now, timing.quota_pause)))
        }
        Class::Forbidden => (Reason::Forbidden, Some(later(now, timing.forbidden_pause))),
        Class::Invalid | Class::DryRun => (Reason::InvalidRequest, None),
        Class::NotYetUsable => (Reason::InvalidRequest, Some(later(now, timing.recheck))),
        Class::NotFound | Class::State | Class::ModificationBudget => (Reason::Progressing, Some(later(now, timing.recheck))),
    };
    HeldUp { reason, message: error.to_string(), until }
}

//! What an error of EC2 means for the object whose call it answers, and for all objects: rate limits slow down, gates close.

use jiff::Timestamp;

use super::context::Context;

use crate::api::Reason;
use crate::cloud::call::Call;
use crate::cloud::{Class, CloudError};
use crate::controller::conditions::whole_second;
use crate::controller::waiting::HeldUp;
use crate::time::later;

/// Our own budget of calls is used up until then.
pub fn throttled(until: Timestamp) -> HeldUp {
    let message = "the operator's own rate limit for calls to EC2 is reached; the call is made later".to_owned();
    HeldUp { reason: Reason::Throttled, class: None, message, until: Some(until) }
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
        // A launch has other types and zones to try at once; nothing else has.
        Class::Capacity if call == Call::RunInstances => (Reason::InsufficientCapacity, Some(now)),
        Class::Capacity => (Reason::InsufficientCapacity, Some(later(now, timing.offering_pause))),
        Class::Quota => {
            ctx.offerings.close_quota_gate(now);
            (Reason::QuotaExceeded, Some(later(now, timing.quota_pause)))
        }
        Class::Forbidden => (Reason::Forbidden, Some(later(now, timing.forbidden_pause))),
        Class::Invalid if call == Call::ModifyVolume => (Reason::ModificationRefused, None),
        Class::Invalid => (Reason::InvalidRequest, None),
        Class::NotYetUsable => (Reason::InvalidRequest, Some(later(now, timing.recheck))),
        // EC2 does not say when; others may have used it up. An hour is soon enough for a budget of a day, and no call is wasted.
        Class::ModificationBudget => (Reason::ModificationBudget, Some(later(now, timing.modification_window / 24))),
        // A volume's last modification still goes on.
        Class::State if call == Call::ModifyVolume => (Reason::Modifying, Some(later(now, timing.recheck))),
        Class::NotFound | Class::State => (Reason::Progressing, Some(later(now, timing.recheck))),
    };
    let message = match (error.class, until) {
        (Class::ModificationBudget, Some(until)) => format!("{error} (the call is made again after {})", whole_second(until)),
        _ => error.to_string(),
    };
    HeldUp { reason, class: Some(error.class), message, until }
}

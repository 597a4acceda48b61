//! What an error of EC2 means for the object whose call it answers, and for all objects: rate limits slow
//! down.

use super::context::Context;
use crate::cloud::call::Call;
use crate::cloud::{Class, CloudError};
use crate::controller::call_blocked::CallBlocked;
use crate::time::later;

/// What an error of EC2 means for the object, and for everybody: buckets slow down.
pub fn call_blocked(call: Call, error: &CloudError, ctx: &Context) -> CallBlocked {
    let now = ctx.clock.now();
    let timing = &ctx.timing;
    let until = match error.class {
        Class::Throttled => {
            ctx.limits.throttled(call, now);
            Some(later(now, timing.requeue_interval))
        }
        // A launch has other types and zones to try at once; nothing else has.
        Class::Capacity | Class::Quota if call == Call::RunInstances => Some(now),
        Class::Capacity => Some(later(now, timing.unavailable_offering_ttl)),
        Class::Quota => Some(later(now, timing.quota_retry_interval)),
        Class::Forbidden | Class::Refused => Some(later(now, timing.forbidden_retry_interval)),
        // A person must change the spec.
        Class::Invalid => None,
        // EC2 does not say when; others may have used it up. An hour is soon enough for a budget of a day,
        // and no call is wasted.
        Class::ModificationBudget => Some(later(now, timing.modify_budget_window / 24)),
        Class::InDoubt | Class::Token | Class::NotYetUsable | Class::NotFound | Class::State => {
            Some(later(now, timing.requeue_interval))
        }
    };
    CallBlocked::Refused { call, error: error.clone(), until }
}

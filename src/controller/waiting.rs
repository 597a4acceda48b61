//! Waiting is data: what an object waits for, and what EC2's answers mean for it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::acting::ActError;
use super::conditions::whole_second;
use super::context::{Context, later};
use super::driver::Chain;
use crate::api::Reason;
use crate::cloud::call::Call;
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

/// Why the first condition that does not hold does not: what just failed, else what EC2 just answered, else what the plan waits for.
pub fn why(error: Option<&ActError>, held_up: Option<&HeldUp>, waiting: Option<&Waiting>) -> (Reason, String) {
    if let Some(error) = error {
        return (Reason::Progressing, format!("a step failed and is tried again: {}", Chain(error)));
    }
    if let Some(held_up) = held_up {
        return (held_up.reason, held_up.message.clone());
    }
    waiting.map_or((Reason::AsExpected, String::new()), |waiting| (waiting.reason, waiting.message.clone()))
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

/// The last time that this process asked EC2 to change or end something that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// When.
    pub at: Timestamp,
    /// EC2's answer, when it did not accept.
    pub held_up: Option<HeldUp>,
}

/// Whether the same may be asked of EC2 once more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Again<'a> {
    /// It was never asked for, or EC2 has had its time.
    Now,
    /// It was accepted, and no look at EC2 can show it yet.
    OnceShown,
    /// It was refused, or its answer lost, and is asked for again then.
    Later(&'a HeldUp, Timestamp),
}

/// Whether to ask again, given the start of the last complete look at EC2. A pass is woken by its own writes, long before EC2 shows
/// what was asked for: without this every pass would ask again, and would hammer a refusal.
pub fn again(asked: Option<&Asked>, swept_at: Option<Timestamp>, recheck: Duration, now: Timestamp) -> Again<'_> {
    match asked {
        None => Again::Now,
        Some(Asked { at, held_up: None }) if swept_at.is_some_and(|swept_at| swept_at > later(*at, recheck)) => Again::Now,
        Some(Asked { held_up: None, .. }) => Again::OnceShown,
        Some(Asked { at, held_up: Some(held_up) }) => {
            // Without a time it was refused as invalid: a person must act, and nothing tells when that has happened.
            let until = held_up.until.unwrap_or_else(|| later(*at, recheck.saturating_mul(12)));
            if now < until { Again::Later(held_up, until) } else { Again::Now }
        }
    }
}

/// What this process last asked of EC2, by call and resource. A restart forgets it, and asks once more.
#[derive(Default)]
pub struct Asks {
    last: Mutex<HashMap<(Call, String), Asked>>,
}

impl Asks {
    /// The call was made; `held_up` unless EC2 accepted.
    pub fn note(&self, call: Call, id: &str, at: Timestamp, held_up: Option<HeldUp>) {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).insert((call, id.to_owned()), Asked { at, held_up });
    }

    /// The last time that this was asked for.
    pub fn of(&self, call: Call, id: &str) -> Option<Asked> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).get(&(call, id.to_owned())).cloned()
    }

    /// The resource is gone.
    pub fn forget(&self, id: &str) {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).retain(|(_, other), _| other != id);
    }
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
        (Class::ModificationBudget, Some(until)) => format!("{error} (it is asked again after {})", whole_second(until)),
        _ => error.to_string(),
    };
    HeldUp { reason, message, until }
}

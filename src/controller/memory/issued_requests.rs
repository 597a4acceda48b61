//! The requests to change or end something in EC2 that this process has made, by call and resource.
//!
//! A restart forgets them and makes each of them once more; EC2 takes a repeated stop, termination or deletion as one.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;

use crate::cloud::call::Call;
use crate::controller::waiting::HeldUp;
use crate::time::later;

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
        self.last.lock().insert((call, id.to_owned()), Asked { at, held_up });
    }

    /// The last time that this was asked for.
    pub fn of(&self, call: Call, id: &str) -> Option<Asked> {
        self.last.lock().get(&(call, id.to_owned())).cloned()
    }

    /// The resource is gone.
    pub fn forget(&self, id: &str) {
        self.last.lock().retain(|(_, other), _| other != id);
    }
}

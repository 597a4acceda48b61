//! The requests to change or end something in EC2 that this process has made, by call and resource.
//!
//! A restart forgets them and makes each of them once more; EC2 takes a repeated stop, termination or
//! deletion as one.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;

use crate::cloud::call::Call;
use crate::controller::call_blocked::CallBlocked;
use crate::time::later;

/// The last time that this process requested of EC2 to change or end something that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedRequest {
    /// When.
    pub at: Timestamp,
    /// EC2's answer, when it did not accept.
    pub call_blocked: Option<CallBlocked>,
}

/// Whether the same may be requested of EC2 once more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Again<'a> {
    /// It was never requested, or EC2 has had its time.
    Now,
    /// It was accepted, and no look at EC2 can show it yet.
    OnceShown,
    /// It was refused, or its answer lost, and is requested again then.
    Later(&'a CallBlocked, Timestamp),
}

/// Whether to repeat a request, given the start of the last full EC2 inventory sync. A pass is woken by its
/// own writes, long before EC2 shows what was requested: without this every pass would repeat the request,
/// and would hammer a refusal.
pub fn again(
    issued: Option<&IssuedRequest>,
    swept_at: Option<Timestamp>,
    recheck: Duration,
    now: Timestamp,
) -> Again<'_> {
    match issued {
        None => Again::Now,
        Some(IssuedRequest { at, call_blocked: None })
            if swept_at.is_some_and(|swept_at| swept_at > later(*at, recheck)) =>
        {
            Again::Now
        }
        Some(IssuedRequest { call_blocked: None, .. }) => Again::OnceShown,
        Some(IssuedRequest { at, call_blocked: Some(call_blocked) }) => {
            // Without a time it was refused as invalid: a person must act, and nothing shows when that has
            // happened.
            let until = call_blocked.until().unwrap_or_else(|| later(*at, recheck.saturating_mul(12)));
            if now < until { Again::Later(call_blocked, until) } else { Again::Now }
        }
    }
}

/// What this process last requested of EC2, by call and resource. A restart forgets it, and each request is
/// made once more.
#[derive(Default)]
pub struct IssuedRequests {
    last: Mutex<HashMap<(Call, String), IssuedRequest>>,
}

impl IssuedRequests {
    /// The call was made; `call_blocked` unless EC2 accepted.
    pub fn note(&self, call: Call, id: &str, at: Timestamp, call_blocked: Option<CallBlocked>) {
        self.last.lock().insert((call, id.to_owned()), IssuedRequest { at, call_blocked });
    }

    /// The last time that this was requested.
    pub fn of(&self, call: Call, id: &str) -> Option<IssuedRequest> {
        self.last.lock().get(&(call, id.to_owned())).cloned()
    }

    /// The resource is gone.
    pub fn forget(&self, id: &str) {
        self.last.lock().retain(|(_, other), _| other != id);
    }
}

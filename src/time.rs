//! Arithmetic of moments and pauses. Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// The shortest pause before the next pass of an object: two passes never follow each other at once.
pub const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

/// `now` plus a duration, or the end of time.
pub fn later(now: Timestamp, duration: Duration) -> Timestamp {
    SignedDuration::try_from(duration)
        .ok()
        .and_then(|duration| now.checked_add(duration).ok())
        .unwrap_or(Timestamp::MAX)
}

/// How long it is from `now` to a moment, and never so short that a pass follows at once.
pub fn until(moment: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(moment.duration_since(now)).unwrap_or_default().max(SHORTEST_PAUSE)
}

/// The sooner of two moments to look again.
pub fn sooner(one: Duration, other: Option<Duration>) -> Duration {
    other.map_or(one, |other| one.min(other))
}

/// The pause before the same is tried again, after so many times: 2 s, doubling, at most a minute; `unit` is
/// 5 s by default.
pub fn growing_pause(times: u32, unit: Duration) -> Duration {
    let first = unit.mul_f64(0.4);
    first.saturating_mul(1 << times.saturating_sub(1).min(5)).min(unit.saturating_mul(12))
}

/// The times of Kubernetes' objects have whole seconds: a finer one would differ from what is read back.
pub fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

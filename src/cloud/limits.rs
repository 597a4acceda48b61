//! EC2's request limits, kept on our side: one token bucket for each limit, and slower ones after a throttle.
//!
//! The figures are per account and Region (EC2 developer guide, "Request throttling for the Amazon EC2 API").
//! Where the guide leaves open whether calls share a bucket they share one here: that can only be too
//! careful.

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use super::call::Call;
use super::turns::{Caller, Priority, Turns};

/// One of EC2's limits.
#[derive(Clone, Copy)]
enum Limit {
    FilteredRead,
    UnfilteredRead,
    Mutating,
    Launch,
    Terminate,
    Storage,
}

impl Limit {
    const ALL: [Self; 6] = [
        Self::FilteredRead,
        Self::UnfilteredRead,
        Self::Mutating,
        Self::Launch,
        Self::Terminate,
        Self::Storage,
    ];

    /// The limit that this call counts against.
    fn of(call: Call) -> Self {
        match call {
            Call::RunInstances => Self::Launch,
            Call::TerminateInstances => Self::Terminate,
            // Every list of ours has a filter, pages or ids.
            Call::DescribeInstances
            | Call::DescribeInstanceStatus
            | Call::DescribeVolumes
            | Call::DescribeVolumeStatus
            | Call::DescribeVolumesModifications
            | Call::DescribeSnapshots
            | Call::DescribeImages
            | Call::DescribeSubnets
            | Call::DescribeTags
            | Call::DescribeSecurityGroups
            | Call::DescribeInstanceTypes => Self::FilteredRead,
            Call::GetConsoleOutput => Self::UnfilteredRead,
            // EC2's figures for tags are higher; so few are put on that they need no bucket of their own.
            Call::CreateVolume
            | Call::DeleteVolume
            | Call::CreateSnapshot
            | Call::DeleteSnapshot
            | Call::CreateTags
            | Call::DeleteTags => Self::Storage,
            Call::ModifyVolume | Call::StopInstances => Self::Mutating,
        }
    }

    /// Requests: burst, and refill per second.
    fn figures(self) -> (f64, f64) {
        match self {
            Self::FilteredRead => (100.0, 20.0),
            Self::UnfilteredRead => (50.0, 10.0),
            Self::Mutating => (50.0, 5.0),
            Self::Launch => (5.0, 2.0),
            Self::Terminate | Self::Storage => (100.0, 5.0),
        }
    }
}

/// The bucket is empty, or what is in it is for those that come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// When to try again.
    pub until: Timestamp,
}

/// The share of a bucket that all others leave to repairs.
const RESERVE: f64 = 0.2;

/// The longest that a call waits until it comes again, in seconds of EC2's clock: what waited before it may
/// be gone long before its turn.
const LONGEST_WAIT_SECONDS: f64 = 30.0;

/// How much later than told a call may come again and still have its place. Real time: a pass waits for other
/// passes, and calls a real API server, however fast EC2's clock runs.
const PLACE_KEPT_FOR: SignedDuration = SignedDuration::from_secs(5);

/// How long a throttled bucket takes to get back to its full refill.
const RECOVERY_SECONDS: f64 = 60.0;

/// The slowest that throttles make a bucket: a sixteenth of its refill, so that it always recovers.
const SLOWEST: f64 = 1.0 / 16.0;

/// The token buckets of one account and Region.
#[derive(Debug)]
pub struct Limits {
    buckets: Mutex<[Bucket; 6]>,
    /// Seconds on EC2's clock for each second on ours: 1 except in tests.
    speed: f64,
}

impl Limits {
    /// `share` is the part of EC2's figures that this operator takes (above 0, at most 1). `speed` is 1 in
    /// production; tests against a simulator with a faster clock give its speed.
    pub fn new(share: f64, speed: f64) -> Self {
        let share = share.clamp(0.01, 1.0);
        let buckets = Limit::ALL.map(|limit| {
            let (burst, refill) = limit.figures();
            Bucket::full((burst * share).max(1.0), refill * share)
        });
        Self { buckets: Mutex::new(buckets), speed: if speed > 0.0 { speed } else { 1.0 } }
    }

    /// Takes one request of this call, or returns when to try again. Nothing is given to a caller while the
    /// bucket holds no more than what those that come before it wait for.
    pub fn try_take(&self, call: Call, caller: &Caller<'_>, now: Timestamp) -> Result<(), Wait> {
        let speed = self.speed;
        self.with(call, |bucket| bucket.try_take(caller, now, speed))
    }

    /// Takes one request of this call that no other call misses: only while the bucket is full and no call
    /// waits. It keeps no place in the order of calls; the time to try again is when the bucket is full.
    pub fn try_take_spare(&self, call: Call, now: Timestamp) -> Result<(), Wait> {
        let speed = self.speed;
        self.with(call, |bucket| bucket.try_take_spare(now, speed))
    }

    /// The object of this UID is gone: it waits for nothing.
    pub fn forget(&self, object: &str) {
        for bucket in self.buckets.lock().iter_mut() {
            bucket.turns.forget(object);
        }
    }

    /// EC2 throttled this call: its bucket is empty now and fills at half the pace, recovering over a minute.
    pub fn throttled(&self, call: Call, now: Timestamp) {
        let speed = self.speed;
        self.with(call, |bucket| bucket.throttled(now, speed));
    }

    fn with<R>(&self, call: Call, act: impl FnOnce(&mut Bucket) -> R) -> R {
        let mut buckets = self.buckets.lock();
        let [filtered, unfiltered, mutating, launch, terminate, storage] = &mut *buckets;
        act(match Limit::of(call) {
            Limit::FilteredRead => filtered,
            Limit::UnfilteredRead => unfiltered,
            Limit::Mutating => mutating,
            Limit::Launch => launch,
            Limit::Terminate => terminate,
            Limit::Storage => storage,
        })
    }
}

/// One token bucket. Times are kept as the caller gives them, so it has no clock of its own.
#[derive(Clone, Debug)]
struct Bucket {
    capacity: f64,
    refill_per_second: f64,
    tokens: f64,
    /// 1 is the full refill; a throttle halves it, and it grows back to 1 in `RECOVERY_SECONDS`.
    pace: f64,
    updated: Option<Timestamp>,
    turns: Turns,
}

impl Bucket {
    fn full(capacity: f64, refill_per_second: f64) -> Self {
        Self {
            capacity,
            refill_per_second,
            tokens: capacity,
            pace: 1.0,
            updated: None,
            turns: Turns::default(),
        }
    }

    fn try_take(&mut self, caller: &Caller<'_>, now: Timestamp, speed: f64) -> Result<(), Wait> {
        self.advance(now, speed);
        let reserve = if caller.priority == Priority::Repair { 0.0 } else { self.reserve() };
        let ahead = u32::try_from(self.turns.ahead(caller)).map_or(f64::MAX, f64::from);
        let needed = 1.0 + reserve + ahead;
        if self.tokens >= needed {
            self.tokens -= 1.0;
            self.turns.served(caller);
            return Ok(());
        }
        let until = self.holds_at(needed, now, speed);
        self.turns.wait(caller, until.checked_add(PLACE_KEPT_FOR).unwrap_or(until));
        Err(Wait { until })
    }

    fn try_take_spare(&mut self, now: Timestamp, speed: f64) -> Result<(), Wait> {
        self.advance(now, speed);
        if self.tokens < self.capacity || self.turns.has_waiting() {
            return Err(Wait { until: self.holds_at(self.capacity, now, speed) });
        }
        self.tokens -= 1.0;
        Ok(())
    }

    /// When it holds so many, if no call takes one before.
    fn holds_at(&self, needed: f64, now: Timestamp, speed: f64) -> Timestamp {
        // At today's pace: while the bucket recovers this is a little late, never early. The millisecond
        // covers rounding.
        let seconds = (needed - self.tokens) / (self.refill_per_second * self.pace * speed) + 0.001;
        let wait = SignedDuration::try_from_secs_f64(seconds.min(LONGEST_WAIT_SECONDS / speed))
            .unwrap_or(SignedDuration::from_secs(1));
        now.checked_add(wait).unwrap_or(now)
    }

    fn throttled(&mut self, now: Timestamp, speed: f64) {
        self.advance(now, speed);
        self.tokens = 0.0;
        self.pace = (self.pace / 2.0).max(SLOWEST);
    }

    /// The reserve for repairs: a fifth, at least one request, and never so much that nothing else could go
    /// at all.
    fn reserve(&self) -> f64 {
        (self.capacity * RESERVE).max(1.0).min(self.capacity - 1.0)
    }

    fn advance(&mut self, now: Timestamp, speed: f64) {
        // A clock that was set back gives nothing.
        let since = self.updated.map_or(SignedDuration::ZERO, |updated| now.duration_since(updated));
        let elapsed = since.as_secs_f64().max(0.0) * speed;
        self.updated = Some(now);
        // And no place is kept until a time that is far away now. Passes read the clock before they come,
        // so a moment is nothing.
        if since < -PLACE_KEPT_FOR {
            self.turns = Turns::default();
        }
        let recovered = (self.pace + elapsed / RECOVERY_SECONDS * 0.5).min(1.0);
        let gained = elapsed * self.refill_per_second * f64::midpoint(self.pace, recovered);
        self.tokens = (self.tokens + gained).min(self.capacity);
        self.pace = recovered;
        self.turns.expire(now);
        if self.tokens >= self.capacity {
            self.turns.rest();
        }
    }
}

#[cfg(test)]
mod tests;

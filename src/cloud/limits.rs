//! EC2's request limits, kept on our side: one token bucket for each limit, and slower ones after a throttle.
//!
//! The figures are per account and Region (EC2 developer guide, "Request throttling for the Amazon EC2 API").
//! Where the guide leaves open whether calls share a bucket they share one here: that can only be too
//! careful.

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use super::call::Call;

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
            // Every list of ours has a filter or pages.
            Call::DescribeInstances
            | Call::DescribeInstanceStatus
            | Call::DescribeVolumes
            | Call::DescribeVolumesModifications
            | Call::DescribeSnapshots
            | Call::DescribeImages
            | Call::DescribeSubnets
            | Call::DescribeSecurityGroups
            | Call::DescribeInstanceTypes => Self::FilteredRead,
            Call::GetConsoleOutput => Self::UnfilteredRead,
            // EC2's figures for tags are higher; so few are put on that they need no bucket of their own.
            Call::CreateVolume | Call::DeleteVolume | Call::CreateSnapshot | Call::CreateTags => {
                Self::Storage
            }
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

/// Which requests come first when a bucket runs low.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Deletions, reads, and the needs of a database that exists: may take the last token.
    Repair,
    /// The needs of a new database: leave a reserve.
    Create,
}

/// The bucket is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// When to try again.
    pub until: Timestamp,
}

/// The share of a bucket that creations leave to repairs.
const RESERVE: f64 = 0.2;

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

    /// Takes one request of this call, or returns when to try again.
    pub fn try_take(&self, call: Call, priority: Priority, now: Timestamp) -> Result<(), Wait> {
        let speed = self.speed;
        self.with(call, |bucket| bucket.try_take(priority, now, speed))
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
}

impl Bucket {
    fn full(capacity: f64, refill_per_second: f64) -> Self {
        Self { capacity, refill_per_second, tokens: capacity, pace: 1.0, updated: None }
    }

    fn try_take(&mut self, priority: Priority, now: Timestamp, speed: f64) -> Result<(), Wait> {
        self.advance(now, speed);
        let needed = match priority {
            Priority::Repair => 1.0,
            Priority::Create => 1.0 + self.reserve(),
        };
        if self.tokens >= needed {
            self.tokens -= 1.0;
            return Ok(());
        }
        // At today's pace: while the bucket recovers this is a little late, never early. The millisecond
        // covers rounding.
        let seconds = (needed - self.tokens) / (self.refill_per_second * self.pace * speed) + 0.001;
        let wait = SignedDuration::try_from_secs_f64(seconds).unwrap_or(SignedDuration::from_secs(1));
        Err(Wait { until: now.checked_add(wait).unwrap_or(now) })
    }

    fn throttled(&mut self, now: Timestamp, speed: f64) {
        self.advance(now, speed);
        self.tokens = 0.0;
        self.pace = (self.pace / 2.0).max(SLOWEST);
    }

    /// The reserve that creations leave: a fifth, at least one request, and never so much that a creation
    /// could not go at all.
    fn reserve(&self) -> f64 {
        (self.capacity * RESERVE).max(1.0).min(self.capacity - 1.0)
    }

    fn advance(&mut self, now: Timestamp, speed: f64) {
        // A clock that was set back gives nothing.
        let elapsed =
            self.updated.map_or(0.0, |updated| now.duration_since(updated).as_secs_f64().max(0.0) * speed);
        self.updated = Some(now);
        let recovered = (self.pace + elapsed / RECOVERY_SECONDS * 0.5).min(1.0);
        let gained = elapsed * self.refill_per_second * f64::midpoint(self.pace, recovered);
        self.tokens = (self.tokens + gained).min(self.capacity);
        self.pace = recovered;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(1_800_000_000_000 + millis).unwrap()
    }

    fn taken(limits: &Limits, call: Call, priority: Priority, now: Timestamp) -> usize {
        (0..1000).take_while(|_| limits.try_take(call, priority, now).is_ok()).count()
    }

    #[test]
    fn a_bucket_holds_the_published_burst_times_the_share() {
        let rows = [
            (Call::RunInstances, 5),
            (Call::TerminateInstances, 100),
            (Call::DescribeInstances, 100),
            (Call::GetConsoleOutput, 50),
            (Call::CreateVolume, 100),
            (Call::ModifyVolume, 50),
        ];
        for (call, burst) in rows {
            assert_eq!(taken(&Limits::new(1.0, 1.0), call, Priority::Repair, at(0)), burst, "{call:?}");
            assert_eq!(
                taken(&Limits::new(0.5, 1.0), call, Priority::Repair, at(0)),
                burst / 2,
                "{call:?} at half"
            );
        }
    }

    #[test]
    fn an_empty_bucket_returns_when_to_try_again_and_then_gives() {
        let limits = Limits::new(0.5, 1.0);
        taken(&limits, Call::RunInstances, Priority::Repair, at(0));
        let wait = limits.try_take(Call::RunInstances, Priority::Repair, at(0)).unwrap_err();
        assert!(wait.until > at(0) && wait.until <= at(1002), "{wait:?}");
        assert!(limits.try_take(Call::RunInstances, Priority::Repair, wait.until).is_ok());
    }

    #[test]
    fn a_thousand_launches_take_no_less_than_ec2_allows() {
        let limits = Limits::new(1.0, 1.0);
        let mut now = at(0);
        for _ in 0..1000 {
            while let Err(wait) = limits.try_take(Call::RunInstances, Priority::Repair, now) {
                now = wait.until;
            }
        }
        let seconds = now.duration_since(at(0)).as_secs_f64();
        assert!((497.5..499.5).contains(&seconds), "{seconds}");
    }

    #[test]
    fn creations_leave_a_reserve_to_deletions_in_the_same_bucket() {
        let limits = Limits::new(1.0, 1.0);
        assert_eq!(taken(&limits, Call::CreateVolume, Priority::Create, at(0)), 80);
        assert_eq!(taken(&limits, Call::DeleteVolume, Priority::Repair, at(0)), 20);
    }

    #[test]
    fn even_the_smallest_share_lets_a_creation_go() {
        let limits = Limits::new(0.01, 1.0);
        assert_eq!(taken(&limits, Call::RunInstances, Priority::Create, at(0)), 1);
    }

    #[test]
    fn a_throttle_empties_the_bucket_halves_its_refill_and_wears_off_in_a_minute() {
        let limits = Limits::new(1.0, 1.0);
        limits.throttled(Call::ModifyVolume, at(0));
        let wait = limits.try_take(Call::ModifyVolume, Priority::Repair, at(0)).unwrap_err();
        // 5 a second, halved: one token takes 0.4 s.
        assert!((at(399)..at(403)).contains(&wait.until), "{wait:?}");
        limits.try_take(Call::ModifyVolume, Priority::Repair, at(61_000)).unwrap();
        taken(&limits, Call::ModifyVolume, Priority::Repair, at(61_000));
        let wait = limits.try_take(Call::ModifyVolume, Priority::Repair, at(61_000)).unwrap_err();
        assert!((at(61_199)..at(61_203)).contains(&wait.until), "{wait:?}");
    }

    #[test]
    fn throttle_upon_throttle_never_stops_a_bucket_for_good() {
        let limits = Limits::new(1.0, 1.0);
        for _ in 0..100 {
            limits.throttled(Call::RunInstances, at(0));
        }
        let wait = limits.try_take(Call::RunInstances, Priority::Repair, at(0)).unwrap_err();
        assert!(wait.until <= at(8_100), "{wait:?}");
    }

    #[test]
    fn a_throttle_of_one_call_leaves_the_other_buckets_alone() {
        let limits = Limits::new(1.0, 1.0);
        limits.throttled(Call::RunInstances, at(0));
        assert!(limits.try_take(Call::TerminateInstances, Priority::Repair, at(0)).is_ok());
    }

    #[test]
    fn a_faster_clock_refills_faster() {
        let limits = Limits::new(1.0, 20.0);
        taken(&limits, Call::RunInstances, Priority::Repair, at(0));
        assert_eq!(taken(&limits, Call::RunInstances, Priority::Repair, at(51)), 2);
    }

    #[test]
    fn a_clock_that_is_set_back_gives_nothing() {
        let limits = Limits::new(1.0, 1.0);
        taken(&limits, Call::RunInstances, Priority::Repair, at(0));
        assert!(limits.try_take(Call::RunInstances, Priority::Repair, at(-60_000)).is_err());
    }
}

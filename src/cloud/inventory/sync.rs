//! The loops that fill the inventory, one for each kind: when the next full sync is due, and what follows a
//! failure.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::coverage::Coverage;
use super::{Inventory, kinds};
use crate::cloud::CloudError;
use crate::cloud::call::Call;
use crate::cloud::error::Class;
use crate::cloud::identity::Kind;
use crate::cloud::turns::{Caller, Priority};

/// How many times `pending_sync_interval` a sync may be old for what takes up to hours: a minute by default.
/// One object of that kind would keep all of an account's resources listed every few seconds.
const SLOWER: u32 = 15;

/// What one loop remembers between two syncs.
pub(super) struct Schedule {
    kind: Kind,
    pub started: Instant,
    failures: u32,
}

impl Schedule {
    pub fn new(kind: Kind, now: Instant) -> Self {
        Self { kind, started: now, failures: 0 }
    }
}

impl Inventory {
    /// Syncs one kind until the token is cancelled: at once, unless the kind is idle until something is
    /// awaited, and then as often as what is awaited needs.
    pub(super) async fn run_loop(&self, kind: Kind, stop: &CancellationToken) {
        let mut schedule = Schedule::new(kind, Instant::now());
        let signal = self.lock().signal(kind);
        let mut is_due = (kinds::of(kind).idle)(&self.timing).is_some();
        while !stop.is_cancelled() {
            if is_due {
                schedule.started = Instant::now();
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = self.sync(&mut schedule) => {}
                }
            }
            // A signal only says that the time may have changed: the loop computes it again.
            is_due = tokio::select! {
                () = stop.cancelled() => return,
                () = at(self.due(&schedule)) => true,
                () = signal.notified() => false,
            };
        }
    }

    /// The kind whose syncs have stopped: it has attempted none for longer than this beyond its interval, and
    /// for how long. One that fails is attempted again.
    pub fn silent(&self, longest: Duration, now: Instant) -> Option<(Kind, Duration)> {
        let state = self.lock();
        let mut silences = state.attempts.iter().map(|(kind, at)| (*kind, now.duration_since(*at)));
        silences.find(|(kind, silence)| {
            (kinds::of(*kind).idle)(&self.timing).is_some_and(|idle| *silence > longest + idle)
        })
    }

    /// When the next sync is due; `None`: not until something is awaited or a sync is requested.
    pub(super) fn due(&self, schedule: &Schedule) -> Option<Instant> {
        let (is_pending, is_slow, is_requested) = {
            let mut state = self.lock();
            let store = state.store(schedule.kind);
            (store.is_pending(), store.is_slow(), store.is_requested())
        };
        let idle = (kinds::of(schedule.kind).idle)(&self.timing);
        let slow = self.timing.pending_sync_interval.saturating_mul(SLOWER);
        let wanted = if is_requested {
            Some(self.timing.pending_sync_interval / 4)
        } else if is_pending {
            Some(self.timing.pending_sync_interval)
        } else if is_slow {
            Some(idle.map_or(slow, |idle| idle.min(slow)))
        } else {
            idle
        };
        if schedule.failures == 0 {
            return wanted.map(|wait| schedule.started + wait);
        }
        // A failed sync is repeated soon, then less and less often, but no less often than instances are
        // synced when idle.
        let calm = self
            .timing
            .pending_sync_interval
            .saturating_mul(1 << schedule.failures.min(6))
            .min(self.timing.instance_sync_interval);
        wanted.map(|_| schedule.started + calm)
    }

    /// One sync of a kind, with its result noted.
    pub(super) async fn sync(&self, schedule: &mut Schedule) {
        self.lock().attempts.insert(schedule.kind, schedule.started);
        match (kinds::of(schedule.kind).sync)(self, schedule.started).await {
            Ok(()) => schedule.failures = 0,
            Err(error) => self.note_failure(schedule, &error),
        }
    }

    /// Acquires the list call of a full sync, which answers every request for a sync that came before.
    /// Returns its start.
    pub(super) async fn begin(&self, kind: Kind, call: Call) -> Timestamp {
        self.acquire(call, 1).await;
        self.lock().store(kind).begin();
        self.clock.now()
    }

    /// Waits until the rate limits allow this many requests of this call.
    pub(super) async fn acquire(&self, call: Call, requests: usize) {
        let caller = Caller { namespace: "", object: call.as_str(), priority: Priority::Repair };
        for _ in 0..requests {
            while let Err(wait) = self.limits.try_take(call, &caller, self.clock.now()) {
                let pause =
                    Duration::try_from(wait.until.duration_since(self.clock.now())).unwrap_or(Duration::ZERO);
                // At least a moment, so that a clock that stands still does not make this loop spin.
                tokio::time::sleep(pause.max(Duration::from_millis(10))).await;
            }
        }
    }

    /// The same answer; a throttle slows the bucket of its call.
    pub(super) fn slowed<T>(&self, answer: Result<T, CloudError>) -> Result<T, CloudError> {
        answer.inspect_err(|error| self.slow(error))
    }

    fn slow(&self, error: &CloudError) {
        if error.class == Class::Throttled
            && let Ok(call) = error.action.parse::<Call>()
        {
            self.limits.throttled(call, self.clock.now());
        }
    }

    /// Logs once that a full sync is suspect, before it is taken.
    pub(super) fn report_suspect(&self, kind: Kind, coverage: Coverage) {
        if !self.stats(kind).is_suspect {
            let (kind, Coverage { named, shown }) = (kind.as_str(), coverage);
            tracing::error!(
                kind,
                named,
                shown,
                "EC2 shows fewer than half of the resources that statuses name: no absence is proven by such a \
                sync; check the account and the Region of the operator's role, and the tags of the resources"
            );
        }
    }

    fn note_failure(&self, schedule: &mut Schedule, error: &CloudError) {
        schedule.failures = schedule.failures.saturating_add(1);
        self.slow(error);
        let (kind, failures) = (schedule.kind.as_str(), schedule.failures);
        tracing::warn!(kind, failures, %error, "EC2 inventory sync failed; keeping the previous data");
        self.lock().store(schedule.kind).note_failure(error.to_string());
    }
}

/// Sleeps until this time; without one, for ever.
async fn at(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

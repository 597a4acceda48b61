//! The term of the operator that leads: until when it may write, by two clocks.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::clock::Clock;

/// Until when this process may change anything. Nothing is permitted before the first renewal, nor after the
/// renew deadline, which ends before another operator takes the Lease.
///
/// Both clocks must permit it. The monotonic one cannot be set, but stands still while a virtual machine is
/// suspended; the wall clock goes on then, but can be set back.
pub struct Term {
    clock: Arc<dyn Clock>,
    until: Mutex<Option<Until>>,
}

/// The end of what the last renewal permits.
#[derive(Clone, Copy)]
struct Until {
    sent: Timestamp,
    lasts: Duration,
    deadline: Instant,
}

/// The write was not sent, since the term is over.
#[derive(Debug, thiserror::Error)]
#[error("this operator does not lead any more: nothing was sent")]
pub struct TermOver;

/// The start of a renewal, read from both clocks before it is sent: the term counts from there, since the
/// API server cannot have carried the renewal out earlier.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// By the monotonic clock.
    pub instant: Instant,
    /// By the wall clock.
    pub time: Timestamp,
}

impl Term {
    /// A term that has not begun.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, until: Mutex::default() }
    }

    /// Both clocks, before a renewal is sent.
    pub fn about_to_renew(&self) -> Sent {
        Sent { instant: Instant::now(), time: self.clock.now() }
    }

    /// The renewal that was sent then was carried out, and permits writes for so long.
    pub fn renewed(&self, sent: Sent, lasts: Duration) {
        *self.until.lock() = Some(Until { sent: sent.time, lasts, deadline: sent.instant + lasts });
    }

    /// Nothing is permitted from now on.
    pub fn end(&self) {
        *self.until.lock() = None;
    }

    /// Whether anything may be written now.
    pub fn may_act(&self) -> bool {
        self.until.lock().is_some_and(|until| {
            Instant::now() < until.deadline && is_within(until.lasts, until.sent, self.clock.now())
        })
    }

    /// The same as a result.
    pub fn check(&self) -> Result<(), TermOver> {
        self.may_act().then_some(()).ok_or(TermOver)
    }

    /// Comes when the monotonic clock has reached the end of the term, whatever was renewed meanwhile; at
    /// once if there is none.
    pub async fn over(&self) {
        loop {
            let deadline = self.until.lock().map(|until| until.deadline);
            match deadline {
                Some(deadline) if Instant::now() < deadline => tokio::time::sleep_until(deadline).await,
                Some(_) | None => return,
            }
        }
    }
}

/// Whether less than `lasts` has passed by the wall clock. One that was set back proves nothing: the
/// monotonic clock decides then.
fn is_within(lasts: Duration, sent: Timestamp, now: Timestamp) -> bool {
    now.duration_since(sent) < SignedDuration::try_from(lasts).unwrap_or(SignedDuration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wall clock that the test sets.
    struct Set(Mutex<Timestamp>);

    impl Clock for Set {
        fn now(&self) -> Timestamp {
            *self.0.lock()
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    const LASTS: Duration = Duration::from_secs(7);

    fn term() -> (Arc<Set>, Term) {
        let clock = Arc::new(Set(Mutex::new(at(1000))));
        (Arc::clone(&clock), Term::new(clock))
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_permitted_before_the_first_renewal_nor_after_the_end() {
        let (_, term) = term();
        assert!(!term.may_act());
        let sent = term.about_to_renew();
        term.renewed(sent, LASTS);
        assert!(term.check().is_ok());
        term.end();
        assert!(term.check().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn it_counts_from_before_the_renewal_was_sent_and_ends_to_the_moment() {
        let (_, term) = term();
        let sent = term.about_to_renew();
        tokio::time::advance(Duration::from_secs(3)).await;
        term.renewed(sent, LASTS);
        tokio::time::advance(Duration::from_millis(3999)).await;
        assert!(term.may_act(), "6.999 s after the renewal was sent");
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!term.may_act(), "7 s after the renewal was sent");
    }

    #[tokio::test(start_paused = true)]
    async fn a_suspended_machine_whose_monotonic_clock_stood_still_may_not_act() {
        let (clock, term) = term();
        term.renewed(term.about_to_renew(), LASTS);
        *clock.0.lock() = at(1007);
        assert!(!term.may_act());
    }

    #[tokio::test(start_paused = true)]
    async fn a_wall_clock_that_was_set_back_prolongs_nothing() {
        let (clock, term) = term();
        term.renewed(term.about_to_renew(), LASTS);
        *clock.0.lock() = at(10);
        assert!(term.may_act());
        tokio::time::advance(LASTS).await;
        assert!(!term.may_act());
    }

    #[tokio::test(start_paused = true)]
    async fn its_end_is_awaited_over_renewals() {
        let (_, term) = term();
        let began = Instant::now();
        term.renewed(term.about_to_renew(), LASTS);
        let renewing = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            term.renewed(term.about_to_renew(), LASTS);
        };
        tokio::join!(term.over(), renewing);
        assert_eq!(began.elapsed(), Duration::from_secs(12));
    }
}

//! The term of the operator that leads: until when it may write, by two clocks.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::clock::Clock;

/// By how much the wall clock may part from the monotonic one in a term, all corrections together. The
/// shortest span that something is proven by is `--absence-window`, which has five minutes more than AWS
/// accepts a signed request for; and a leap second, or what a time service corrects in days, is far less.
const MOST_SET: SignedDuration = SignedDuration::from_secs(60);

/// How soon it is noticed that the wall clock was set, if nothing is written before.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

/// Until when this process may change anything. Nothing is permitted before the first renewal, nor after the
/// renew deadline, which ends before another operator takes the Lease.
///
/// Both clocks must permit it. The monotonic one cannot be set, but stands still while a virtual machine is
/// suspended; the wall clock goes on then, but can be set back.
///
/// Passes measure by the wall clock. Set forward, it would make a proof of absence out of two lists, and an
/// end out of each grace period; set back, it would make a client token young again. So a term in which it
/// was set is over, and every span that passes measure within one has passed by the monotonic clock, too, but
/// for a minute.
pub struct Term {
    clock: Arc<dyn Clock>,
    until: Mutex<Option<Until>>,
}

/// The end of what the last renewal permits.
#[derive(Clone, Copy)]
struct Until {
    /// When the first renewal of the term was sent.
    began: Sent,
    sent: Timestamp,
    lasts: Duration,
    deadline: Instant,
    /// The clocks were seen to have parted: what was measured meanwhile is not believed, even if the wall
    /// clock is set right again.
    clock_was_set: bool,
}

impl Until {
    /// Whether the two clocks have parted since the term began.
    fn have_parted(&self, now: Sent) -> bool {
        let by_wall = now.time.duration_since(self.began.time);
        let by_monotonic = now.instant.saturating_duration_since(self.began.instant);
        let by_monotonic = SignedDuration::try_from(by_monotonic).unwrap_or(SignedDuration::MAX);
        by_wall.saturating_sub(by_monotonic).abs() > MOST_SET
    }
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
        let mut until = self.until.lock();
        let (began, clock_was_set) = until.map_or((sent, false), |until| (until.began, until.clock_was_set));
        let deadline = sent.instant + lasts;
        *until = Some(Until { began, sent: sent.time, lasts, deadline, clock_was_set });
    }

    /// Nothing is permitted from now on.
    pub fn end(&self) {
        *self.until.lock() = None;
    }

    /// Whether anything may be written now.
    pub fn may_act(&self) -> bool {
        let now = self.about_to_renew();
        self.look(now).is_some_and(|until| {
            now.instant < until.deadline
                && is_within(until.lasts, until.sent, now.time)
                && !until.clock_was_set
        })
    }

    /// Whether the wall clock was set in this term, which has ended it: no renewal permits anything any more.
    pub fn clock_was_set(&self) -> bool {
        self.look(self.about_to_renew()).is_some_and(|until| until.clock_was_set)
    }

    fn look(&self, now: Sent) -> Option<Until> {
        let mut until = self.until.lock();
        let until = until.as_mut()?;
        until.clock_was_set |= until.have_parted(now);
        Some(*until)
    }

    /// The same as a result.
    pub fn check(&self) -> Result<(), TermOver> {
        self.may_act().then_some(()).ok_or(TermOver)
    }

    /// Comes when the monotonic clock has reached the end of the term, whatever was renewed meanwhile, or the
    /// wall clock was set; at once if there is no term.
    pub async fn over(&self) {
        loop {
            let deadline = self.until.lock().map(|until| until.deadline);
            let now = Instant::now();
            match deadline {
                Some(deadline) if now < deadline && !self.clock_was_set() => {
                    tokio::time::sleep_until(deadline.min(now + LOOK_PERIOD)).await;
                }
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
        *clock.0.lock() = at(941);
        assert!(term.may_act(), "by less than a minute");
        tokio::time::advance(LASTS).await;
        assert!(!term.may_act());
    }

    #[tokio::test(start_paused = true)]
    async fn a_term_in_which_the_wall_clock_is_set_is_over_whatever_is_renewed() {
        for (name, by, is_over) in [
            ("set forward by 21 minutes", 21 * 60, true),
            ("set forward by more than a minute", 61, true),
            ("set forward by a minute", 60, false),
            ("a leap second", -1, false),
            ("set back by a minute", -60, false),
            ("set back by more than a minute", -61, true),
        ] {
            let (clock, term) = term();
            for _ in 0..3 {
                term.renewed(term.about_to_renew(), LASTS);
                tokio::time::advance(Duration::from_secs(2)).await;
                *clock.0.lock() += Duration::from_secs(2);
            }
            assert!(term.may_act(), "{name}");
            *clock.0.lock() += SignedDuration::from_secs(by);
            term.renewed(term.about_to_renew(), LASTS);
            assert_eq!((term.clock_was_set(), term.may_act()), (is_over, !is_over), "{name}");
            if is_over {
                let began = Instant::now();
                term.over().await;
                assert_eq!(began.elapsed(), Duration::ZERO, "{name}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn that_the_wall_clock_was_set_is_noticed_within_a_second_and_not_forgotten() {
        let (clock, term) = term();
        term.renewed(term.about_to_renew(), LASTS);
        let began = Instant::now();
        let setting = async {
            tokio::time::sleep(Duration::from_millis(1500)).await;
            *clock.0.lock() = at(9000);
        };
        tokio::join!(term.over(), setting);
        assert_eq!(began.elapsed(), Duration::from_secs(2));
        *clock.0.lock() = at(1002);
        term.renewed(term.about_to_renew(), LASTS);
        assert!(!term.may_act(), "what was measured meanwhile is not believed");
    }

    #[tokio::test(start_paused = true)]
    async fn small_corrections_add_up() {
        let (clock, term) = term();
        term.renewed(term.about_to_renew(), LASTS);
        for (by, may_act) in [(40, true), (-40, true), (40, true), (40, false)] {
            *clock.0.lock() += SignedDuration::from_secs(by);
            term.renewed(term.about_to_renew(), LASTS);
            assert_eq!(term.may_act(), may_act, "{by}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_term_counts_from_its_own_beginning() {
        let (clock, term) = term();
        term.renewed(term.about_to_renew(), LASTS);
        *clock.0.lock() = at(9000);
        term.end();
        term.renewed(term.about_to_renew(), LASTS);
        assert!(term.may_act());
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

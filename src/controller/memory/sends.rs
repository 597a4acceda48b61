//! The creating calls that this process has sent, by client token.
//!
//! A restart forgets them: each attempt that the status names without an id counts as in doubt then, and is
//! looked up before it is sent again.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;

use crate::api::ClientToken;
use crate::time::{growing_pause, later};

/// What this process knows of its own sends of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When it was last sent.
    pub last: Timestamp,
    /// How often it was sent.
    pub times: u32,
    /// Some answer left it open whether EC2 carried the call out.
    pub in_doubt: bool,
    /// EC2 refused the call for certain after an answer in doubt: sending it again cannot help, and the doubt
    /// stays.
    pub refused_after_doubt: bool,
    /// Before this it is not sent again.
    pub not_before: Timestamp,
}

/// This process' sends of creating calls, by token.
#[derive(Default)]
pub struct Sends {
    by_token: Mutex<HashMap<ClientToken, Sent>>,
    /// The UIDs of the objects that a creating call was sent for, with the tokens of their calls.
    objects: Mutex<HashMap<String, HashSet<ClientToken>>>,
}

impl Sends {
    /// What is known of this token's sends.
    pub fn of(&self, token: &ClientToken) -> Option<Sent> {
        self.by_token.lock().get(token).copied()
    }

    /// Whether this process has sent a creating call for the object of this UID: what its status forgets,
    /// this does not.
    pub fn has_sent_for(&self, uid: &str) -> bool {
        self.objects.lock().contains_key(uid)
    }

    /// A creating call for the object of this UID is about to be sent, with this token if it has one.
    pub fn note_object(&self, uid: &str, token: Option<&ClientToken>) {
        self.objects.lock().entry(uid.to_owned()).or_default().extend(token.cloned());
    }

    /// The object of this UID is gone, and every attempt for it is over.
    pub fn forget_object(&self, uid: &str) {
        let tokens = self.objects.lock().remove(uid).unwrap_or_default();
        self.by_token.lock().retain(|token, _| !tokens.contains(token));
    }

    /// The call is about to be sent: until its answer is noted, it is in doubt, even if the pass is
    /// abandoned. Returns whether the attempt was in doubt before.
    pub fn starting(&self, token: &ClientToken, now: Timestamp) -> bool {
        let mut by_token = self.by_token.lock();
        let sent = by_token.entry(token.clone()).or_insert(Sent {
            last: now,
            times: 0,
            in_doubt: false,
            refused_after_doubt: false,
            not_before: now,
        });
        let was_in_doubt = sent.in_doubt;
        sent.last = now;
        sent.times += 1;
        sent.in_doubt = true;
        was_in_doubt
    }

    /// An attempt that was found at start-up may have been sent by an earlier process: it is in doubt from
    /// the start.
    pub fn found_at_start(&self, token: &ClientToken, leading_since: Timestamp) {
        self.by_token.lock().entry(token.clone()).or_insert(Sent {
            last: leading_since,
            times: 0,
            in_doubt: true,
            refused_after_doubt: false,
            not_before: leading_since,
        });
    }

    /// The answer left it open whether anything was made; the same call goes out again after a pause.
    pub fn in_doubt(&self, token: &ClientToken, recheck: Duration, now: Timestamp) {
        self.update(token, |sent| sent.not_before = later(now, growing_pause(sent.times, recheck)));
    }

    /// This send did nothing, since EC2 throttled it: the attempt is in doubt only if it was before.
    pub fn not_made(&self, token: &ClientToken, was_in_doubt: bool, not_before: Timestamp) {
        self.update(token, |sent| {
            sent.in_doubt = was_in_doubt;
            sent.not_before = not_before;
        });
    }

    /// EC2 refused for certain after an answer in doubt.
    pub fn refused_after_doubt(&self, token: &ClientToken) {
        self.update(token, |sent| sent.refused_after_doubt = true);
    }

    /// The attempt has its id, or is over.
    pub fn forget(&self, token: &ClientToken) {
        self.by_token.lock().remove(token);
    }

    fn update(&self, token: &ClientToken, change: impl FnOnce(&mut Sent)) {
        if let Some(sent) = self.by_token.lock().get_mut(token) {
            change(sent);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_send_whose_answer_never_came_is_in_doubt_even_if_the_next_one_is_refused() {
        let (sends, token) = (Sends::default(), ClientToken("t".to_owned()));
        assert!(!sends.starting(&token, at(1)), "the first send of an attempt is not in doubt before it");
        assert!(sends.of(&token).unwrap().in_doubt, "an abandoned pass leaves doubt");
        assert!(sends.starting(&token, at(2)));
    }

    #[test]
    fn a_throttled_send_leaves_the_attempt_as_it_was() {
        let (sends, token) = (Sends::default(), ClientToken("t".to_owned()));
        let before = sends.starting(&token, at(1));
        sends.not_made(&token, before, at(9));
        let sent = sends.of(&token).unwrap();
        assert_eq!((sent.in_doubt, sent.not_before), (false, at(9)));
        let before = sends.starting(&token, at(10));
        sends.in_doubt(&token, Duration::from_secs(5), at(11));
        assert!(!before && sends.of(&token).unwrap().in_doubt);
    }

    #[test]
    fn an_object_that_is_gone_leaves_nothing_of_its_attempts_and_another_keeps_its_own() {
        let sends = Sends::default();
        let token = |name: &str| ClientToken(name.to_owned());
        for (uid, name) in [("one", "t1"), ("one", "t2"), ("two", "t3")] {
            sends.note_object(uid, Some(&token(name)));
            sends.starting(&token(name), at(1));
        }
        sends.note_object("three", None);
        sends.forget_object("one");
        sends.forget_object("three");
        assert_eq!(["t1", "t2", "t3"].map(|name| sends.of(&token(name)).is_some()), [false, false, true]);
        assert_eq!(["one", "two", "three"].map(|uid| sends.has_sent_for(uid)), [false, true, false]);
    }

    #[test]
    fn an_attempt_found_at_start_up_is_in_doubt_from_the_start() {
        let (sends, token) = (Sends::default(), ClientToken("t".to_owned()));
        sends.found_at_start(&token, at(5));
        assert!(sends.starting(&token, at(6)));
    }

    #[test]
    fn resends_slow_down_and_stay_below_a_minute() {
        let recheck = Duration::from_secs(5);
        let pauses: Vec<u64> = (1..9).map(|times| growing_pause(times, recheck).as_secs()).collect();
        assert_eq!(pauses, [2, 4, 8, 16, 32, 60, 60, 60]);
    }
}

//! What EC2 answers to a creating call in the models of the kinds' lives, and what the operator notes of it.

use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;

use crate::api::ClientToken;
use crate::api::creation::Attempt;
use crate::cloud::CloudError;
use crate::controller::creation::answer::{Outcome, outcome, outcome_without_token};
use crate::controller::memory::sends::Sends;
use crate::settings::Timing;
use crate::time::later;

/// What EC2 answers to a creating call.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    Made,
    /// It is made, the answer is lost, and EC2 does not list it for 30 s.
    MadeInDoubt,
    /// Nothing is made, and the answer is lost.
    InDoubt,
    Throttled,
    Refused(&'static str),
}

impl Answer {
    /// From when on EC2 lists what it made for the call; `None` if it made nothing.
    pub fn listed_from(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Made => Some(now),
            Self::MadeInDoubt => Some(later(now, Duration::from_secs(30))),
            Self::InDoubt | Self::Throttled | Self::Refused(_) => None,
        }
    }

    /// What the operator has instead of an id; `None` if EC2 answers with the id.
    pub fn error(self) -> Option<CloudError> {
        let refused = |code| CloudError::new("RunInstances", Some(code), "no", Some(400), None);
        match self {
            Self::Made => None,
            Self::MadeInDoubt | Self::InDoubt => Some(CloudError::in_doubt("RunInstances", "no answer")),
            Self::Throttled => Some(refused("RequestLimitExceeded")),
            Self::Refused(code) => Some(refused(code)),
        }
    }

    /// Notes the answer to one send of an attempt as the operator does, in memory and in the attempt. Returns
    /// whether the attempt has its id.
    pub fn note(self, token: &ClientToken, attempt: &mut Attempt, sends: &Sends, now: Timestamp) -> bool {
        let was_in_doubt = sends.starting(token, now) || attempt.in_doubt_since.is_some();
        let Some(error) = self.error() else {
            sends.forget(token);
            return true;
        };
        let recheck = Timing::default().requeue_interval;
        let outcome = outcome(&error, true, was_in_doubt);
        outcome.note(token, sends, later(now, recheck), recheck, now);
        outcome.write(&error, attempt, now);
        if outcome == Outcome::Refused {
            sends.forget(token);
        }
        false
    }

    /// The same for a call that has no token.
    pub fn note_without_token(self, attempt: &mut Attempt, now: Timestamp) -> bool {
        let Some(error) = self.error() else { return true };
        outcome_without_token(&error).write(&error, attempt, now);
        false
    }
}

/// Some answers, among them this refusal for want of capacity; after them EC2 makes what it is asked for.
pub fn answers(no_capacity: &'static str) -> impl Strategy<Value = Vec<Answer>> {
    let answers = vec![
        Answer::Made,
        Answer::MadeInDoubt,
        Answer::InDoubt,
        Answer::Throttled,
        Answer::Refused(no_capacity),
        Answer::Refused("UnauthorizedOperation"),
    ];
    prop::collection::vec(prop::sample::select(answers), 0..6)
}
